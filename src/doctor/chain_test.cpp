#include "doctor/chain.hpp"

#include <gtest/gtest.h>

namespace fencepost::doctor {
namespace {

using namespace std::chrono_literals;

const TimePoint kNow{std::chrono::seconds(1'800'000'000)};

ChainConfig dev_chain() {
  ChainConfig chain;
  chain.name = "dev";
  chain.chain_id = 31337;
  return chain;
}

EndpointFacts good(std::string url, std::chrono::seconds age = 1s) {
  return {.url = std::move(url), .failure = {}, .chain_id = 31337, .block = 120, .block_time = kNow - age};
}

EndpointFacts broken(std::string url, std::string cause, std::string message) {
  return {.url = std::move(url),
          .failure = unavailable("rpc_unavailable", "no RPC endpoint answered; the last one: " + message)
                         .with("cause", std::move(cause))};
}

TEST(doctor_chain, a_good_endpoint_reports_its_newest_block) {
  EXPECT_EQ(assess_chain(dev_chain(), {good("http://127.0.0.1:8545")}, kNow),
            Findings{passed("chain dev", "http://127.0.0.1:8545, chain id 31337, block 120, 1 s old")});
  // The node's clock may be a little ahead of ours.
  EXPECT_EQ(assess_chain(dev_chain(), {good("http://a", -3s)}, kNow)[0].detail,
            "http://a, chain id 31337, block 120, 0 s old");
}

TEST(doctor_chain, an_old_block_is_a_warning) {
  EXPECT_EQ(assess_chain(dev_chain(), {good("http://a", 299s)}, kNow)[0].status, Status::kOk);
  const auto stale = assess_chain(dev_chain(), {good("http://a", 300s)}, kNow)[0];
  EXPECT_EQ(stale.status, Status::kWarn);
  EXPECT_EQ(stale.detail, "http://a, chain id 31337, block 120, 5 min old");
  EXPECT_NE(stale.fix.find("syncing"), std::string::npos);
}

TEST(doctor_chain, an_endpoint_far_behind_another_is_a_warning) {
  const auto findings = assess_chain(dev_chain(), {good("http://a", 90s), good("http://b", 20s)}, kNow);
  EXPECT_EQ(findings[0].status, Status::kWarn);
  EXPECT_EQ(findings[0].detail, "http://a, chain id 31337, block 120, 90 s old, 70 s behind another endpoint");
  EXPECT_EQ(findings[1].status, Status::kOk);
}

TEST(doctor_chain, a_relay_is_judged_by_its_chain_alone) {
  const EndpointFacts relay{.url = "http://r", .failure = {}, .chain_id = 31337, .submits = true};
  const EndpointFacts silent_relay{
      .url = "http://s", .failure = {}, .chain_id = 31337, .submits = true, .has_chain_id = false};
  const EndpointFacts wrong{.url = "http://w", .failure = {}, .chain_id = 1, .submits = true};
  const auto findings = assess_chain(dev_chain(), {good("http://a"), relay, silent_relay, wrong}, kNow);
  EXPECT_EQ(findings[1], passed("chain dev", "http://r, for transactions, chain id 31337"));
  EXPECT_EQ(findings[2], passed("chain dev", "http://s, for transactions, does not tell its chain id"));
  EXPECT_EQ(findings[3],
            failed("chain dev", "http://w is on chain 1, not 31337", "correct chain_id or the URL in submit_urls"));
}

TEST(doctor_chain, another_chain_is_a_failure_even_beside_a_good_endpoint) {
  auto wrong = good("http://b");
  wrong.chain_id = 1;
  const auto findings = assess_chain(dev_chain(), {good("http://a"), wrong}, kNow);
  EXPECT_EQ(findings[0].status, Status::kOk);
  EXPECT_EQ(findings[1].status, Status::kFail);
  EXPECT_EQ(findings[1].detail, "http://b is on chain 1, not 31337");
}

TEST(doctor_chain, a_silent_endpoint_is_a_warning_only_while_another_serves) {
  const auto silent = broken("http://b", "timeout", "the answer did not come in time");
  const auto findings = assess_chain(dev_chain(), {good("http://a"), silent}, kNow);
  EXPECT_EQ(findings[1].status, Status::kWarn);
  EXPECT_EQ(assess_chain(dev_chain(), {silent}, kNow)[0].status, Status::kFail);
  auto wrong = good("http://c");
  wrong.chain_id = 1;
  EXPECT_EQ(assess_chain(dev_chain(), {wrong, silent}, kNow)[1].status, Status::kFail);
}

TEST(doctor_chain, the_reply_of_a_server_is_not_shown) {
  struct Case {
    std::string cause;
    std::string message;
    std::string_view detail;
    std::string_view in_fix;
  };
  const std::vector<Case> cases{
      {"connect_failed", "cannot connect to http://a:1: Connection refused",
       "http://a: cannot connect to http://a:1: Connection refused", "running"},
      {"http_status", "HTTP status 404: \"Cannot POST /v3/geheim\"", "http://a: HTTP status 404", "API key"},
      {"endpoint_sick", "the endpoint refused: \"key geheim is over quota\" (-32005)", "http://a: the endpoint refused",
       "quota"},
      {"tls_failed", "no trusted connection to https://a: self-signed certificate",
       "http://a: no trusted connection to https://a: self-signed certificate", "certificate"},
      {"bad_reply", "expected an object, got \"geheim\"", "http://a: expected an object, got", "EVM node"},
  };
  for (const auto& [cause, message, detail, in_fix] : cases) {
    const auto finding = assess_chain(dev_chain(), {broken("http://a", cause, message)}, kNow)[0];
    EXPECT_EQ(finding.detail, detail);
    EXPECT_NE(finding.fix.find(in_fix), std::string::npos) << finding.fix;
  }
  const EndpointFacts refusing{
      .url = "http://a",
      .failure = Error{ErrorKind::kUnprocessable, "rpc_error", "geheim", {}, {}}.with("rpcCode", "-32601")};
  EXPECT_EQ(assess_chain(dev_chain(), {refusing}, kNow)[0].detail, "http://a: answered with JSON-RPC error -32601");
}

}  // namespace
}  // namespace fencepost::doctor

// The chain is down, slow, or sends malformed answers. Requests that give gas are still accepted, and every transaction
// finishes once the chain works again.
#include <atomic>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "http/client.hpp"
#include "http/http_test_support.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/tx_cluster.hpp"

namespace fencepost::test {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

enum class Mood {
  kWell,
  kHtml,    // 200 with an HTML page, as a gateway may answer
  kHalf,    // 200 with the first half of the answer
  kErrors,  // 200 with an error for every call
  kBusy,    // 503
  kLies,    // forwards broadcasts, but answers that they failed
};

// A proxy between the nodes and anvil that spoils answers as the mood says.
class MoodyChain {
 public:
  explicit MoodyChain(const std::string& url)
      : url_(url), server_([this](http::Router& router) {
          router.add({http::Verb::kPost, "/", http::Access::open(), [this](http::Request& r) { return answer(r); }});
        }) {}

  std::string url() const { return server_.url("/"); }
  void feel(Mood mood) {
    mood_ = mood;
    spoiled_ = 0;
  }
  // The number of spoiled answers since the last feel().
  int spoiled() const { return spoiled_; }

 private:
  static json::value error_for(const json::value& call) {
    return json::object{
        {"jsonrpc", "2.0"}, {"id", call.at("id")}, {"error", {{"code", -32603}, {"message", "internal error"}}}};
  }
  static json::value errors_for(const json::value& request) {
    if (!request.is_array()) return error_for(request);
    json::array out;
    for (const auto& call : request.as_array()) out.push_back(error_for(call));
    return out;
  }

  awaitable<http::Response> answer(http::Request& request) {
    const Mood mood = mood_;
    const std::string body(request.body());
    const bool broadcast = body.find("eth_sendRawTransaction") != std::string::npos;
    if (mood == Mood::kBusy) co_return spoil(http::Response::text(503, "later"));
    if (mood == Mood::kHtml) co_return spoil(http::Response::text(200, "<html><body>It works!</body></html>"));
    if (mood == Mood::kErrors) co_return spoil(http::Response::json(200, errors_for(json::parse(body))));
    const auto executor = co_await this_executor();
    http::Client client(executor, {});
    http::ClientRequest onward{
        .method = "POST", .url = url_, .headers = {{"Content-Type", "application/json"}}, .body = body};
    const auto reply = co_await client.send(std::move(onward));
    if (!reply) co_return http::Response::text(502, reply.error().to_string());
    if (mood == Mood::kLies && broadcast) co_return spoil(http::Response::json(200, errors_for(json::parse(body))));
    if (mood == Mood::kHalf) co_return spoil(http::Response::text(200, reply->body.substr(0, reply->body.size() / 2)));
    co_return http::Response::text(reply->status, reply->body, "application/json");
  }

  http::Response spoil(http::Response response) {
    ++spoiled_;
    return response;
  }

  std::string url_;
  std::atomic<Mood> mood_{Mood::kWell};
  std::atomic<int> spoiled_{0};
  http::testing::TestServer server_;
};

TEST(tx_chain_fault, malformed_answers_and_errors_of_an_endpoint_only_delay_transactions) {
  Anvil anvil({"--block-time", "1"});
  MoodyChain chain(anvil.url());
  TxCluster cluster({.settings = {.resubmit_interval = 1s}, .rpc_urls = {chain.url()}});
  const auto count_on_chain = [&] {
    const auto answer =
        ask({"POST", anvil.url(), "",
             fmt::format(R"({{"jsonrpc":"2.0","id":1,"method":"eth_getTransactionCount","params":["{}",)"
                         R"("latest"]}})",
                         signer(0))});
    return std::stoll(std::string(answer.json().at("result").as_string()), nullptr, 16);
  };
  std::int64_t sent = 0;
  for (const auto mood : {Mood::kHtml, Mood::kHalf, Mood::kErrors, Mood::kBusy, Mood::kLies}) {
    SCOPED_TRACE(static_cast<int>(mood));
    cluster.create(0, transfer(signer(0), fmt::format("before-{}", sent++), 1));
    chain.feel(mood);
    const auto asked = std::chrono::steady_clock::now();
    cluster.create(0, transfer(signer(0), fmt::format("meanwhile-{}", sent++), 1));
    EXPECT_LT(std::chrono::steady_clock::now() - asked, 3s) << "the create waited for the chain";
    ASSERT_TRUE(eventually([&] { return chain.spoiled() > 0; })) << cluster.describe();
    chain.feel(Mood::kWell);
    ASSERT_TRUE(cluster.all_confirmed(60s)) << cluster.describe();
    EXPECT_EQ(count_on_chain(), sent);
  }
  // No transaction that may have been broadcast was signed a second time.
  EXPECT_EQ(cluster.sql("SELECT count(*) FROM tx_attempt"), std::to_string(sent));
}

TEST(tx_chain_fault, transactions_accepted_before_the_chain_was_ever_reachable_get_nonces_once_it_is) {
  TxCluster cluster({.proxied = true, .start = false});
  cluster.chain_proxy(0).refuse();
  cluster.node(0).start();
  std::vector<Ask> asks;
  asks.reserve(20);
  for (int i = 0; i < 20; ++i) asks.push_back(cluster.create_ask(0, transfer(signer(0), fmt::format("e-{}", i), 1)));
  for (const auto& answer : ask_all(asks)) {
    ASSERT_EQ(answer.status, 202U) << answer.body;
    EXPECT_EQ(answer.json().at("state").as_string(), "CREATED");
    EXPECT_TRUE(answer.json().at("nonce").is_null());
  }
  auto without_gas = transfer(signer(0), "no-gas", 1);
  without_gas["payload"].as_object().erase("gas");
  const auto refused = ask(cluster.create_ask(0, without_gas));
  EXPECT_EQ(refused.status, 503U) << refused.body;

  cluster.chain_proxy(0).pass();
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  EXPECT_EQ(cluster.mined_count(signer(0)), 20);
  EXPECT_EQ(cluster.sql("SELECT count(*) FROM tx_view WHERE nonce = creation_seq"), "20");
}

TEST(tx_chain_fault, transactions_survive_an_outage_of_the_chain_and_slow_answers_after_it) {
  TxCluster cluster({.proxied = true});
  auto& wire = cluster.chain_proxy(0);
  cluster.create(0, transfer(signer(0), "s-0", 1));
  wire.blackhole();
  for (int i = 1; i < 6; ++i) cluster.create(0, transfer(signer(0), fmt::format("s-{}", i), 1));
  // A minute is far longer than a lease: the leader must keep its lease during the outage.
  const auto until = cluster.sql("SELECT clock_timestamp() + interval '1 min'");
  ASSERT_TRUE(cluster.sql_becomes("SELECT clock_timestamp() > '" + until + "'", "t", 90s));
  EXPECT_EQ(cluster.leader_of(signer(0)), 0U);
  wire.pass();
  wire.cut();
  wire.delay(200ms, 200ms);
  for (int i = 6; i < 10; ++i) cluster.create(0, transfer(signer(0), fmt::format("s-{}", i), 1));
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  EXPECT_EQ(cluster.mined_count(signer(0)), 10);
  EXPECT_EQ(cluster.balance(recipient()), 10);
  EXPECT_EQ(cluster.sql("SELECT max(fencing_token) FROM signer_lease"), "1");
}

TEST(tx_chain_fault, a_transaction_that_became_stuck_in_an_outage_goes_on_after_it) {
  TxCluster cluster({.settings = {.stuck_after = 2s}, .proxied = true});
  cluster.create(0, transfer(signer(0), "before", 1));
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  cluster.chain_proxy(0).refuse();
  cluster.chain_proxy(0).cut();
  const auto id = cluster.create(0, transfer(signer(0), "during", 1));
  ASSERT_TRUE(cluster.becomes(id, "state", "STUCK")) << cluster.describe();
  cluster.chain_proxy(0).pass();
  EXPECT_TRUE(cluster.all_confirmed()) << cluster.describe();
  EXPECT_EQ(cluster.mined_count(signer(0)), 2);
  EXPECT_EQ(cluster.sql("SELECT count(*) FROM event WHERE type = 'TxResumed'"), "1");
}

// Some endpoints answer null for minutes for the receipt of a transaction that they have.
void expect_no_end_while_answers_are_null(const std::vector<std::string>& methods) {
  TxCluster cluster({.settings = {.stale_receipt_timeout = 1s, .stuck_after = 1s}, .rewritten = true});
  auto& endpoint = cluster.chain_rewriter(0);
  for (const auto& method : methods) endpoint.answer_null(method);

  const auto id = cluster.create(0, transfer(signer(0), "paid", 7));
  ASSERT_TRUE(eventually([&] { return cluster.balance(recipient()) == 7; })) << cluster.describe();
  ASSERT_TRUE(cluster.becomes(id, "state", "STUCK")) << cluster.describe();
  EXPECT_EQ(cluster.node(0).metric("tx_receipts_missing"), 1);
  // Wait until the block is final and was checked several times: two checks are enough to end a transaction whose nonce
  // was used elsewhere.
  const auto final_at = cluster.head() + 5;
  ASSERT_TRUE(eventually([&] { return cluster.head() > final_at; }));
  const auto asked = endpoint.changed("eth_getTransactionReceipt");
  ASSERT_TRUE(eventually([&] { return endpoint.changed("eth_getTransactionReceipt") >= asked + 5; }));
  EXPECT_EQ(cluster.column(id, "state || ' ' || sub_state"), "STUCK no_receipt") << cluster.describe();

  endpoint.pass_all();
  EXPECT_TRUE(cluster.becomes(id, "state", "CONFIRMED")) << cluster.describe();
  EXPECT_EQ(cluster.balance(recipient()), 7);
  EXPECT_TRUE(eventually([&] { return cluster.node(0).metric("tx_receipts_missing") == 0; }));
}

TEST(tx_chain_fault, a_mined_transaction_whose_receipt_is_null_is_confirmed_once_the_receipt_is_served) {
  expect_no_end_while_answers_are_null({"eth_getTransactionReceipt", "eth_getBlockReceipts"});
}

TEST(tx_chain_fault, a_mined_transaction_that_is_null_too_does_not_end) {
  expect_no_end_while_answers_are_null(
      {"eth_getTransactionReceipt", "eth_getBlockReceipts", "eth_getTransactionByHash"});
}

}  // namespace
}  // namespace fencepost::test

// Webhooks on real nodes: over the API, with a node that is killed, and with a receiver that is verified by the
// reference library of the Standard Webhooks specification.
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "outbox/webhook/webhook_test_support.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/fencepost.hpp"
#include "tests/support/process.hpp"
#include "tests/support/source_dir.hpp"
#include "tests/support/tx_cluster.hpp"

namespace fencepost::test {
namespace {

namespace json = boost::json;
using outbox::testing::HttpReceiver;
using testing::HasSubstr;

const std::vector<std::string> kQuick{"FENCEPOST_WEBHOOKS_ALLOW_PRIVATE=true", "FENCEPOST_WEBHOOKS_ALLOW_HTTP=true",
                                      "FENCEPOST_WEBHOOKS_RETRY_INITIAL=50ms", "FENCEPOST_WEBHOOKS_RETRY_CAP=500ms"};

class Webhooks : public testing::Test {
 protected:
  void start(std::size_t nodes, std::vector<std::string> env = kQuick) {
    cluster_.emplace(TxClusterOptions{.nodes = nodes, .start = false, .own_events = true});
    for (std::size_t i = 0; i < nodes; ++i) cluster_->node(i).start(env);
    const auto made =
        fencepost({"apikey", "create", "--dsn", cluster_->dsn(), "--json", "--label", "w", "--scope", "admin"});
    key_ = std::string(json::parse(made.out).at("key").as_string());
  }
  Answer call(const std::string& method, const std::string& path, const json::value& body = nullptr,
              std::size_t node = 0) {
    return ask({.method = method,
                .url = cluster_->node(node).url("/api/v1/webhooks" + path),
                .key = key_,
                .body = body.is_null() ? "" : json::serialize(body)});
  }
  std::string create(json::object body = {}) {
    if (!body.contains("url")) body["url"] = receiver_.url();
    const auto answer = call("POST", "", body);
    EXPECT_EQ(answer.status, 201U) << answer.body;
    secret_ = std::string(answer.json().at("secret").as_string());
    return std::string(answer.json().at("id").as_string());
  }
  void append(int count, int subjects = 10) {
    cluster_->sql(
        fmt::format("INSERT INTO event (type, subject, data) SELECT 'TxConfirmed', 'tx/' || n % {}, "
                    "jsonb_build_object('signer', '0xa', 'chainId', 31337) FROM generate_series(1, {}) AS n",
                    subjects, count));
  }
  std::size_t distinct() const {
    const auto ids = receiver_.delivered();
    return std::set<std::string>(ids.begin(), ids.end()).size();
  }

  HttpReceiver receiver_;
  std::optional<TxCluster> cluster_;
  std::string key_;
  std::string secret_;
};

TEST_F(Webhooks, another_node_goes_on_when_the_serving_node_is_killed) {
  start(2);
  create();
  append(300);
  ASSERT_TRUE(eventually([&] { return distinct() > 50; }));
  const auto claims = [&](std::size_t i) { return cluster_->node(i).metric("event_consumers_claimed"); };
  const std::size_t owner = claims(0) > 0 ? 0 : 1;
  append(2000);
  cluster_->node(owner).kill();
  const auto died = std::chrono::steady_clock::now();
  append(300);
  ASSERT_TRUE(eventually([&] { return claims(1 - owner) > 0; }));
  EXPECT_LT(std::chrono::steady_clock::now() - died, std::chrono::seconds(12));
  EXPECT_TRUE(eventually([&] { return distinct() == 2600; }, std::chrono::seconds(60))) << distinct();
  for (const auto& [subject, seqs] : receiver_.by_subject()) EXPECT_TRUE(std::ranges::is_sorted(seqs)) << subject;
}

TEST_F(Webhooks, the_api_creates_shows_changes_tests_and_removes) {
  start(1);
  const auto id = create({{"types", {"TxConfirmed"}}, {"description", "mine"}});
  EXPECT_THAT(secret_, HasSubstr("whsec_"));
  const auto shown = call("GET", "/" + id);
  EXPECT_EQ(shown.status, 200U);
  EXPECT_EQ(shown.json().at("types").as_array().size(), 1U);
  EXPECT_FALSE(shown.json().as_object().contains("secret"));
  EXPECT_EQ(call("GET", "").json().at("items").as_array().size(), 1U);
  EXPECT_EQ(call("POST", "/" + id + "/test").json().at("delivered"), true);
  EXPECT_EQ(call("PATCH", "/" + id, json::object{{"paused", true}}).json().at("state"), "paused");
  EXPECT_EQ(call("PATCH", "/" + id, json::object{{"paused", false}}).json().at("state"), "active");
  const auto rotated = call("POST", "/" + id + "/rotate-secret");
  EXPECT_NE(rotated.json().at("secret").as_string(), secret_);
  append(3);
  ASSERT_TRUE(eventually([&] { return distinct() == 4; }));  // with the test
  ASSERT_TRUE(
      eventually([&] { return call("GET", "/" + id + "/deliveries").json().at("items").as_array().size() == 3; }));
  EXPECT_EQ(call("GET", "/" + id + "/dead-letters").json().at("items").as_array().size(), 0U);
  EXPECT_EQ(call("POST", "/" + id + "/dead-letters/replay").json().at("replayed"), 0);
  EXPECT_EQ(call("DELETE", "/" + id).status, 204U);
  EXPECT_EQ(call("GET", "/" + id).code(), "no_such_webhook");
  EXPECT_EQ(call("POST", "", json::object{{"url", "https://u:p@example.org/"}}).code(), "bad_webhook_url");
  EXPECT_EQ(call("POST", "", json::object{{"url", receiver_.url()}, {"types", {"Nope"}}}).status, 400U);
}

TEST_F(Webhooks, private_targets_are_refused_by_default) {
  start(1, {});
  EXPECT_EQ(call("POST", "", json::object{{"url", "https://127.0.0.1/"}}).code(), "webhook_address_not_allowed");
  EXPECT_EQ(call("POST", "", json::object{{"url", "https://localhost/"}}).code(), "webhook_address_not_allowed");
  EXPECT_EQ(call("POST", "", json::object{{"url", receiver_.url()}}).code(), "webhook_https_required");
}

TEST_F(Webhooks, the_command_line_does_it_all) {
  start(1);
  const std::vector<std::string> env{"FENCEPOST_URL=" + cluster_->node(0).url(""), "FENCEPOST_API_KEY=" + key_};
  const auto run = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "webhook");
    const auto done = fencepost(arguments, env);
    EXPECT_EQ(done.status.code, 0) << done.err << done.out;
    return done.out;
  };
  const auto made = json::parse(run({"create", receiver_.url(), "--type", "TxConfirmed", "--json"}));
  const std::string id(made.at("id").as_string());
  EXPECT_THAT(run({"list"}), HasSubstr(id));
  EXPECT_THAT(run({"show", id}), HasSubstr("TxConfirmed"));
  EXPECT_THAT(run({"test", id}), HasSubstr("delivered: status 204"));
  EXPECT_THAT(run({"update", id, "--description", "new"}), HasSubstr("new"));
  EXPECT_THAT(run({"pause", id}), HasSubstr("paused"));
  EXPECT_THAT(run({"resume", id}), HasSubstr("active"));
  EXPECT_THAT(run({"rotate-secret", id}), HasSubstr("whsec_"));
  EXPECT_THAT(run({"deliveries", id}), HasSubstr("no deliveries"));
  EXPECT_THAT(run({"dead-letters", id}), HasSubstr("no dead letters"));
  EXPECT_THAT(run({"replay", id}), HasSubstr("0 events"));
  EXPECT_THAT(run({"delete", id}), HasSubstr("removed"));
}

// The reference library verifies what was really sent, with the old and with the new secret.
TEST_F(Webhooks, the_reference_library_accepts_the_signatures) {
  const auto script = source_dir() / "tests/clients/verify_webhook.mjs";
  start(1);
  const auto id = create();
  const auto old_secret = secret_;
  const auto rotated = call("POST", "/" + id + "/rotate-secret").json();
  append(1);
  ASSERT_TRUE(eventually([&] { return receiver_.count() > 0; }));
  const auto request = receiver_.all().front();
  const auto verify = [&](const std::string& secret, const std::string& body) {
    const json::object input{{"secret", secret},
                             {"body", body},
                             {"headers", json::object{{"webhook-id", request.id},
                                                      {"webhook-timestamp", request.timestamp},
                                                      {"webhook-signature", request.signature}}}};
    return run_command({"node", script.string(), json::serialize(input)});
  };
  for (const auto& secret : {old_secret, std::string(rotated.at("secret").as_string())}) {
    const auto done = verify(secret, request.body);
    EXPECT_EQ(done.status.code, 0) << done.err;
    EXPECT_EQ(done.out, "TxConfirmed\n");
  }
  EXPECT_NE(verify(old_secret, request.body + " ").status.code, 0);
  EXPECT_NE(verify("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", request.body).status.code, 0);
}

}  // namespace
}  // namespace fencepost::test

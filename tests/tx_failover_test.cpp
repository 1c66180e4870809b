// Requests during a failover: what a client gets while the leader of a signer is paused or dead.
#include <algorithm>
#include <csignal>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/json/serialize.hpp>

#include "tests/support/eventually.hpp"
#include "tests/support/tx_cluster.hpp"

namespace fencepost::test {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

bool has_retry_after(const Answer& answer) {
  return std::ranges::any_of(answer.headers, [](const auto& header) { return header.first == "Retry-After"; });
}

json::object without_request_id(json::object body) {
  body.erase("requestId");
  return body;
}

// The lease has to expire, and the node that waits has to notice.
constexpr auto kNextLeader = 2'000ms + 200ms + 3s;

TEST(tx_failover, a_request_forwarded_to_a_paused_leader_is_carried_out_by_the_next_leader) {
  TxCluster cluster({.nodes = 2, .settings = {.forward_timeout = 60s, .request_id_required = false}});
  cluster.create(0, transfer(signer(0), "first", 1));
  ASSERT_EQ(cluster.leader_of(signer(0)), 0U);
  cluster.node(0).signal(SIGSTOP);
  const auto stopped = Clock::now();
  std::vector<Ask> asks;
  for (int i = 0; i < 10; ++i) {
    const auto body = transfer(signer(0), fmt::format("forwarded-{}", i), 1);
    asks.push_back(cluster.create_ask(1, i % 2 == 0 ? body : without_request_id(body)));
  }
  const auto answers = ask_all(asks);
  const auto took = Clock::now() - stopped;
  for (const auto& answer : answers) EXPECT_EQ(answer.status, 202U) << answer.body;
  EXPECT_LT(took, kNextLeader);
  RecordProperty("answered_ms", static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(took).count()));
  EXPECT_EQ(cluster.leader_of(signer(0)), 1U);
  // The old leader finds the forwarded requests in its sockets, and must not carry them out again.
  cluster.node(0).resume();
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  EXPECT_EQ(cluster.mined_count(signer(0)), 11);
  EXPECT_EQ(cluster.sql("SELECT count(*) FROM managed_tx"), "11");
  EXPECT_EQ(cluster.balance(recipient()), 11);
}

TEST(tx_failover, what_a_paused_leader_has_stored_is_the_answer) {
  TxCluster cluster({.nodes = 2, .settings = {.forward_timeout = 60s, .request_id_required = false}, .start = false});
  cluster.node(1).launch();
  cluster.node(0).start({"FENCEPOST_TEST_STOP_AT=create.committed:2"});
  cluster.node(1).await_ready();
  cluster.create(0, transfer(signer(0), "first", 1));
  // The leader stores the forwarded request, and stops before it answers. The request has no id of the client.
  const auto answer = ask(cluster.create_ask(1, without_request_id(transfer(signer(0), "", 1))));
  EXPECT_EQ(answer.status, 202U) << answer.body;
  EXPECT_EQ(cluster.sql("SELECT count(*) FROM managed_tx"), "2");
  EXPECT_EQ(cluster.column(std::string(answer.json().at("txId").as_string()), "nonce"), "1");
  cluster.node(0).resume();
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  EXPECT_EQ(cluster.mined_count(signer(0)), 2);
  EXPECT_EQ(cluster.balance(recipient()), 2);
}

// The next leader refuses what the paused one may still accept.
TEST(tx_failover, a_refusal_is_no_answer_while_a_paused_leader_may_accept_the_request) {
  TxCluster cluster({.nodes = 2, .settings = {.forward_timeout = 60s}});
  cluster.create(0, transfer(signer(0), "first", 1));
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  auto body = transfer(signer(0), "poor", 1);
  body["payload"].as_object()["value"] = "1000000000000000000000000000";
  EXPECT_EQ(ask(cluster.create_ask(1, body)).code(), "insufficient_funds") << "of a leader that answers";
  cluster.node(0).signal(SIGSTOP);
  const auto answer = ask(cluster.create_ask(1, body));
  EXPECT_EQ(answer.status, 503U) << answer.body;
  EXPECT_EQ(answer.code(), "outcome_unknown");
  EXPECT_TRUE(has_retry_after(answer));
  EXPECT_EQ(cluster.leader_of(signer(0)), 1U);
  EXPECT_EQ(ask(cluster.create_ask(1, body)).code(), "insufficient_funds") << "the same request again";
  cluster.node(0).resume();
}

TEST(tx_failover, clients_wait_for_the_next_leader_when_one_is_killed) {
  TxCluster cluster({.nodes = 3, .settings = {.max_in_flight = 0, .forward_timeout = 30s}});
  cluster.create(0, transfer(signer(0), "first", 1));
  ASSERT_EQ(cluster.leader_of(signer(0)), 0U);
  std::vector<Ask> asks;
  for (std::size_t i = 0; i < 100; ++i) {
    asks.push_back(cluster.create_ask(1 + i % 2, transfer(signer(0), fmt::format("c-{}", i), 1)));
  }
  cluster.node(0).kill();
  for (const auto& answer : ask_all(std::move(asks))) EXPECT_EQ(answer.status, 202U) << answer.body;
  json::array items;
  for (int i = 0; i < 3; ++i) items.emplace_back(transfer(signer(0), fmt::format("b-{}", i), 1));
  const auto batch = cluster.post(1, "/api/v1/tx/batch", {{"items", items}});
  for (const auto& result : batch.json().at("results").as_array()) EXPECT_EQ(result.at("status").as_int64(), 202);
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  EXPECT_EQ(cluster.mined_count(signer(0)), 104);
}

TEST(tx_failover, without_a_next_leader_the_answer_is_503_with_retry_after) {
  // The lease lasts longer than the test.
  TxCluster cluster({.nodes = 2, .settings = {.lease_duration = 300s, .renew_interval = 500ms, .forward_timeout = 1s}});
  const auto id = cluster.create(0, transfer(signer(0), "first", 1));
  cluster.node(0).signal(SIGSTOP);
  const auto unknown = ask(cluster.create_ask(1, transfer(signer(0), "second", 1)));
  EXPECT_EQ(unknown.status, 503U) << unknown.body;
  EXPECT_EQ(unknown.code(), "outcome_unknown") << "the paused leader may still carry it out";
  EXPECT_TRUE(has_retry_after(unknown));
  cluster.node(0).kill();
  const auto none = ask(cluster.create_ask(1, transfer(signer(0), "third", 1)));
  EXPECT_EQ(none.status, 503U) << none.body;
  EXPECT_EQ(none.code(), "no_leader");
  EXPECT_TRUE(has_retry_after(none));
  ASSERT_TRUE(cluster.sql_becomes("SELECT clock_timestamp() - renewed_at > interval '2 s' FROM signer_lease", "t"));
  const auto verb = cluster.post(1, "/api/v1/tx/" + id + "/rebroadcast", {{"reason", "test"}});
  EXPECT_EQ(verb.status, 503U) << verb.body;
  EXPECT_EQ(verb.code(), "no_leader");
  EXPECT_TRUE(has_retry_after(verb));
}

TEST(tx_failover, an_operator_is_sent_to_a_live_leader_and_waits_for_the_next_one_otherwise) {
  TxCluster cluster({.nodes = 2, .settings = {.forward_timeout = 30s}, .anvil = {"--no-mining"}});
  const auto id = cluster.create(0, transfer(signer(0), "first", 1));
  ASSERT_TRUE(cluster.becomes(id, "state", "TRACKING")) << cluster.describe();
  const auto rebroadcast = [&] { return cluster.post(1, "/api/v1/tx/" + id + "/rebroadcast", {{"reason", "test"}}); };
  const auto sent = rebroadcast();
  EXPECT_EQ(sent.status, 409U) << sent.body;
  EXPECT_EQ(sent.code(), "not_leader");
  EXPECT_EQ(sent.json().at("leader").as_string(), cluster.node(0).url(""));
  cluster.node(0).kill();
  ASSERT_TRUE(cluster.sql_becomes("SELECT clock_timestamp() - renewed_at > interval '1100 ms' FROM signer_lease", "t"));
  const auto waited = rebroadcast();
  EXPECT_EQ(waited.status, 200U) << waited.body;
}

// As when the first leader finds the request in its socket after the next one has stored it.
TEST(tx_failover, a_request_that_two_nodes_forward_or_find_late_is_stored_once) {
  TxCluster cluster({.settings = {.request_id_required = false}});
  auto again = cluster.create_ask(0, without_request_id(transfer(signer(0), "", 1)));
  again.headers = {{"X-Fencepost-Forwarded", "01900000-0000-7000-8000-000000000001"}};
  for (const auto& answer : ask_all(std::vector<Ask>(20, again))) EXPECT_EQ(answer.status, 202U) << answer.body;
  EXPECT_EQ(cluster.sql("SELECT count(*) FROM managed_tx"), "1");
  EXPECT_EQ(cluster.sql("SELECT next_nonce FROM signer_nonce_cursor"), "1");
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  EXPECT_EQ(cluster.mined_count(signer(0)), 1);
}

// The numbers in docs/configuration.md come from here.
TEST(tx_failover, the_recovery_time_is_the_lease_and_its_allowance) {
  for (const auto lease : {2'000ms, 5'000ms}) {
    TxCluster cluster({.nodes = 2,
                       .settings = {.lease_duration = lease,
                                    .renew_interval = lease / 4,
                                    .clock_skew_allowance = 500ms,
                                    .forward_timeout = 60s}});
    cluster.create(0, transfer(signer(0), "first", 1));
    cluster.node(0).kill();
    const auto killed = Clock::now();
    EXPECT_EQ(ask(cluster.create_ask(1, transfer(signer(0), "second", 1))).status, 202U) << cluster.describe();
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - killed);
    EXPECT_LT(took, lease + 500ms + 3s);
    RecordProperty(fmt::format("lease_{}_killed_ms", lease.count()), static_cast<int>(took.count()));

    cluster.node(0).start();
    ASSERT_EQ(cluster.leader_of(signer(0)), 1U);
    const auto stopping = Clock::now();
    cluster.node(1).signal(SIGTERM);
    cluster.create_by_retrying(0, transfer(signer(0), "third", 1));
    ASSERT_TRUE(eventually([&] { return cluster.leader_of(signer(0)) == 0; })) << cluster.describe();
    RecordProperty(
        fmt::format("lease_{}_stopped_ms", lease.count()),
        static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - stopping).count()));
    ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  }
}

}  // namespace
}  // namespace fencepost::test

// A signer whose chain went back: a deep reorg has undone what had ended, or a development chain was reset. Nothing is
// lost silently, and an operator has a way out of each case.
#include <atomic>
#include <memory>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/eventually.hpp"
#include "tests/support/tx_cluster.hpp"

namespace fencepost::test {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

constexpr auto kUndoneEnd = "state || ' ' || coalesce(sub_state, '')";
constexpr auto kWaitsBecause =
    "SELECT coalesce(reconcile_reason || ' ' || gap_nonce, '') || ' ' || needs_reconcile FROM signer_nonce_cursor";
constexpr auto kGapRounds = "worker_runs_total{result=\"ok\",worker=\"tx_gap_watcher\"}";

TxClusterOptions mined_by_hand() {
  return {.settings = {.resubmit_interval = 2s, .nonce_state_timeout = 1s}, .anvil = {"--no-mining"}};
}

Answer act(const TxCluster& cluster, const std::string& tx_id, const std::string& verb) {
  return cluster.post(0, "/api/v1/tx/" + tx_id + "/" + verb, {{"reason", "the reorg undid it"}});
}

Answer reset_to(const TxCluster& cluster, std::int64_t next) {
  return cluster.post(0, "/api/v1/signers/" + signer(0) + "/reset-cursor",
                      {{"nextNonce", next}, {"reason", "the development chain was reset"}});
}

json::object signer_of(const TxCluster& cluster) {
  for (const auto& one : cluster.get(0, "/api/v1/signers").json().at("items").as_array()) {
    if (one.at("signer").as_string() == signer(0)) return one.as_object();
  }
  return {};
}

std::string confirm_one(TxCluster& cluster, const std::string& request) {
  auto id = cluster.create(0, transfer(signer(0), request, 1));
  if (!cluster.becomes(id, "state", "TRACKING")) throw Exception(internal("not_tracking", cluster.describe()));
  cluster.mine(3);
  if (!cluster.becomes(id, "state", "CONFIRMED")) throw Exception(internal("not_confirmed", cluster.describe()));
  return id;
}

// A payment that was final and is undone, and another one behind it.
struct Undone {
  std::string id;
  std::string hash;
  std::string behind;
};
Undone undo_one(TxCluster& cluster) {
  Undone out;
  out.id = confirm_one(cluster, "undone");
  out.hash = cluster.column(out.id, "tx_hash");
  out.behind = cluster.create(0, transfer(signer(0), "behind", 2));
  if (!cluster.becomes(out.behind, "state", "TRACKING")) throw Exception(internal("not_tracking", cluster.describe()));
  cluster.reorg(3);
  cluster.mine(3);
  if (!cluster.sql_becomes(kWaitsBecause, "undone 0 true")) throw Exception(internal("no_gap", cluster.describe()));
  return out;
}

TEST(tx_undone, a_final_payment_that_is_undone_stops_its_signer_and_says_what_to_do) {
  TxCluster cluster(mined_by_hand());
  const auto undone = undo_one(cluster);
  EXPECT_TRUE(cluster.becomes(undone.id, kUndoneEnd, "CONFIRMED finality_violated")) << cluster.describe();
  const auto refused = ask(cluster.create_ask(0, transfer(signer(0), "refused", 1)));
  EXPECT_EQ(refused.status, 409U) << refused.body;
  EXPECT_EQ(refused.code(), "signer_needs_reconcile");
  EXPECT_EQ(refused.json().at("reason").as_string(), "undone");
  EXPECT_NE(refused.body.find("resend"), std::string::npos) << refused.body;
  EXPECT_EQ(cluster.get(0, "/api/v1/tx/" + undone.behind).json().at("blockedBy").as_string(), undone.id);
  const auto shown = signer_of(cluster);
  EXPECT_EQ(shown.at("reconcileReason").as_string(), "undone");
  EXPECT_EQ(shown.at("gapNonce").as_int64(), 0);
  EXPECT_TRUE(eventually([&] { return cluster.node(0).metric("signer_needs_reconcile") == 1; }));
  const auto accepted = cluster.post(0, "/api/v1/signers/" + signer(0) + "/accept-reconcile", {{"reason", "try this"}});
  EXPECT_EQ(accepted.status, 409U) << accepted.body;
  EXPECT_EQ(accepted.code(), "nothing_to_reconcile");
  EXPECT_EQ(accepted.json().at("undone").as_string(), undone.id);
  EXPECT_EQ(cluster.mined_count(signer(0)), 0) << "the node sent it again without an operator's decision";
}

constexpr int kWindow = 256;  // headers that a node holds in memory

// The payment's block is below the node's window, and the new branch does not link up with the stored headers.
void expect_found_and_resent(TxCluster& cluster, const std::string& id) {
  ASSERT_TRUE(cluster.becomes(id, kUndoneEnd, "CONFIRMED finality_violated")) << cluster.describe();
  EXPECT_EQ(cluster.sql("SELECT count(*) FROM outbox WHERE type = 'TxFinalityViolated'"), "1");
  Answer sent;  // refused while the lease of a killed process lasts
  ASSERT_TRUE(eventually([&] { return (sent = act(cluster, id, "resend")).status == 200U; })) << sent.body;
  cluster.rpc("evm_setIntervalMining", {1});
  EXPECT_TRUE(cluster.all_confirmed()) << cluster.describe();
  EXPECT_EQ(cluster.mined_count(signer(0)), 2);
}

// In steps, so that the node sees each block within its window.
void mine_beyond_the_window(const TxCluster& cluster) {
  for (int mined = 0; mined < kWindow + 50; mined += 50) {
    cluster.mine(50);
    const auto head = std::to_string(cluster.head());
    ASSERT_TRUE(cluster.sql_becomes("SELECT max(number) FROM chain_header", head)) << cluster.describe();
  }
}

// By going back to a snapshot: anvil_reorg does not go that far.
TEST(tx_undone, a_payment_is_reported_and_resent_that_a_reorg_deeper_than_the_window_has_undone) {
  TxCluster cluster(mined_by_hand());
  confirm_one(cluster, "stays");
  const auto before = cluster.rpc("evm_snapshot");
  const auto id = confirm_one(cluster, "undone");
  mine_beyond_the_window(cluster);
  cluster.rpc("evm_revert", {before});
  cluster.mine(kWindow + 100);
  ASSERT_EQ(cluster.mined_count(signer(0)), 1) << "the second payment is still there";
  ASSERT_TRUE(cluster.sql_becomes(kWaitsBecause, "undone 1 true")) << cluster.describe();
  expect_found_and_resent(cluster, id);
}

TEST(tx_undone, a_payment_is_reported_and_resent_that_was_undone_long_before_the_node_started_again) {
  TxCluster cluster(mined_by_hand());
  confirm_one(cluster, "stays");
  const auto id = confirm_one(cluster, "undone");
  cluster.node(0).kill();
  cluster.reorg(3);
  cluster.mine(kWindow + 50);
  cluster.node(0).start();
  expect_found_and_resent(cluster, id);
}

TEST(tx_undone, a_payment_below_the_window_is_not_reported_while_only_one_of_two_endpoints_has_lost_it) {
  auto options = mined_by_hand();
  options.rewritten = true;
  options.second_endpoint = true;
  TxCluster cluster(options);
  const auto id = confirm_one(cluster, "paid");
  cluster.node(0).kill();
  cluster.sql("DELETE FROM chain_header");  // as after a long outage: no stored header leads down to the payment
  cluster.mine(kWindow + 50);
  auto& liar = cluster.chain_rewriter(0);
  const auto lies = std::make_shared<std::atomic<int>>(0);
  liar.change("eth_getBlockByNumber", [lies](const json::object& call, json::object reply) {
    if (call.at("params").at(0).as_string() != "0x1") return reply;
    ++*lies;
    reply["result"].as_object()["hash"] = "0x" + std::string(64, 'a');
    return reply;
  });
  cluster.node(0).start();
  ASSERT_TRUE(eventually([&] { return *lies > 0; })) << cluster.describe();
  const auto rounds = "worker_runs_total{result=\"ok\",worker=\"tx_confirmations\"}";
  const auto before = cluster.node(0).metric(rounds);
  ASSERT_TRUE(eventually([&] { return cluster.node(0).metric(rounds) >= before + 2; })) << cluster.describe();
  EXPECT_EQ(cluster.column(id, kUndoneEnd), "CONFIRMED ");
  EXPECT_EQ(act(cluster, id, "resend").code(), "not_undone");
}

TEST(tx_undone, a_resent_payment_has_the_same_hash_and_is_paid_once) {
  TxCluster cluster(mined_by_hand());
  const auto undone = undo_one(cluster);
  const auto sent = act(cluster, undone.id, "resend");
  ASSERT_EQ(sent.status, 200U) << sent.body;
  EXPECT_EQ(sent.json().at("txHash").as_string(), undone.hash);
  EXPECT_EQ(sent.json().at("state").as_string(), "TRACKING");
  EXPECT_TRUE(cluster.sql_becomes(kWaitsBecause, " false")) << cluster.describe();
  EXPECT_EQ(act(cluster, undone.id, "resend").code(), "wrong_state");
  cluster.rpc("evm_setIntervalMining", {1});
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  EXPECT_EQ(cluster.column(undone.id, "tx_hash"), undone.hash);
  EXPECT_EQ(cluster.mined_count(signer(0)), 2);
  EXPECT_EQ(cluster.balance(recipient()), 3);
  EXPECT_EQ(cluster.sql("SELECT string_agg(type, ' ' ORDER BY seq) FROM outbox WHERE subject = 'tx/" + undone.id +
                        "' AND type IN ('TxConfirmed', 'TxFinalityViolated', 'TxReopened')"),
            "TxConfirmed TxFinalityViolated TxReopened TxConfirmed");
  EXPECT_EQ(cluster.sql("SELECT action || ': ' || reason FROM operator_action"), "resend: the reorg undid it");
  EXPECT_EQ(act(cluster, undone.id, "resend").code(), "not_undone");
  cluster.create(0, transfer(signer(0), "later", 1));
  EXPECT_TRUE(cluster.all_confirmed()) << cluster.describe();
}

TEST(tx_undone, a_node_killed_after_it_stored_a_gap_finds_the_signer_stopped_and_an_operator_goes_on) {
  auto options = mined_by_hand();
  options.start = false;
  TxCluster cluster(options);
  cluster.node(0).start({"FENCEPOST_TEST_KILL_AT=gaps.committed"});
  const auto undone = undo_one(cluster);
  ASSERT_TRUE(cluster.node(0).dies()) << cluster.describe();
  cluster.node(0).start();
  Answer sent;  // refused while the lease of the killed process lasts
  ASSERT_TRUE(eventually([&] { return (sent = act(cluster, undone.id, "resend")).status == 200U; })) << sent.body;
  EXPECT_EQ(sent.json().at("txHash").as_string(), undone.hash);
  cluster.rpc("evm_setIntervalMining", {1});
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  EXPECT_EQ(cluster.mined_count(signer(0)), 2);
  EXPECT_EQ(cluster.balance(recipient()), 3);
}

TEST(tx_undone, an_undone_payment_that_is_given_up_reaches_no_recipient) {
  TxCluster cluster(mined_by_hand());
  const auto undone = undo_one(cluster);
  cluster.node(0).kill();
  cluster.node(0).start();
  Answer cancelled;  // refused while the lease of the killed process lasts
  ASSERT_TRUE(eventually([&] { return (cancelled = act(cluster, undone.id, "cancel")).status == 200U; }))
      << cancelled.body;
  EXPECT_NE(cancelled.json().at("txHash").as_string(), undone.hash);
  EXPECT_EQ(cancelled.json().at("subState").as_string(), "cancelling");
  cluster.rpc("evm_setIntervalMining", {1});
  ASSERT_TRUE(cluster.becomes(undone.id, kUndoneEnd, "FAILED_FINAL cancelled_by_operator")) << cluster.describe();
  ASSERT_TRUE(cluster.becomes(undone.behind, "state", "CONFIRMED")) << cluster.describe();
  EXPECT_EQ(cluster.mined_count(signer(0)), 2);
  EXPECT_EQ(cluster.balance(recipient()), 2) << "only the payment behind it";
}

TEST(tx_undone, what_is_on_the_chain_is_neither_sent_again_nor_cancelled) {
  TxCluster cluster(mined_by_hand());
  const auto id = confirm_one(cluster, "paid");
  const auto resent = act(cluster, id, "resend");
  EXPECT_EQ(resent.status, 409U) << resent.body;
  EXPECT_EQ(resent.code(), "not_undone");
  EXPECT_EQ(resent.json().at("chainNonce").as_string(), "1");
  EXPECT_EQ(act(cluster, id, "cancel").code(), "wrong_state");
  EXPECT_EQ(cluster.column(id, "state"), "CONFIRMED");
}

TEST(tx_undone, after_a_development_chain_was_reset_an_operator_begins_again_at_nonce_0) {
  TxCluster cluster(mined_by_hand());
  std::vector<std::string> paid;
  for (const auto* request : {"a", "b", "c"}) paid.push_back(confirm_one(cluster, request));
  cluster.rpc("anvil_reset");
  ASSERT_TRUE(cluster.sql_becomes(kWaitsBecause, "undone 0 true")) << cluster.describe();
  const auto refused = ask(cluster.create_ask(0, transfer(signer(0), "refused", 1)));
  EXPECT_EQ(refused.code(), "signer_needs_reconcile") << refused.body;

  const auto wrong = reset_to(cluster, 1);
  EXPECT_EQ(wrong.status, 409U) << wrong.body;
  EXPECT_EQ(wrong.json().at("why").as_string(), "count_differs");
  EXPECT_EQ(reset_to(cluster, 3).json().at("why").as_string(), "not_below_cursor");
  const auto reset = reset_to(cluster, 0);
  ASSERT_EQ(reset.status, 200U) << reset.body;
  EXPECT_EQ(reset.json().at("released").as_int64(), 3);
  EXPECT_EQ(reset.json().at("givenUp").as_int64(), 0);
  for (const auto& id : paid) {
    EXPECT_EQ(cluster.column(id, "concat_ws(' ', state, sub_state, nonce)"), "CONFIRMED finality_violated");
  }
  EXPECT_EQ(cluster.sql("SELECT count(*) FROM outbox WHERE type = 'TxFinalityViolated'"), "3");
  EXPECT_EQ(cluster.sql("SELECT detail #>> '{endpoints,0,latest}' FROM operator_action"), "0");

  // The same request as before: signing is deterministic, so the bytes are the same, too.
  const auto again = cluster.create(0, transfer(signer(0), "new", 1));
  EXPECT_EQ(cluster.column(again, "nonce"), "0");
  cluster.rpc("evm_setIntervalMining", {1});
  ASSERT_TRUE(cluster.becomes(again, "state", "CONFIRMED")) << cluster.describe();
  EXPECT_EQ(cluster.mined_count(signer(0)), 1);
  EXPECT_EQ(cluster.balance(recipient()), 1);
}

TEST(tx_undone, what_was_open_when_the_chain_was_reset_is_given_up) {
  TxCluster cluster(mined_by_hand());
  confirm_one(cluster, "paid");
  const auto open = cluster.create(0, transfer(signer(0), "open", 1));
  ASSERT_TRUE(cluster.becomes(open, "state", "TRACKING")) << cluster.describe();
  cluster.rpc("anvil_reset");
  ASSERT_TRUE(cluster.sql_becomes(kWaitsBecause, "undone 0 true")) << cluster.describe();
  // The node may have sent it again before it noticed; then the pool has it, until the operator removes it.
  cluster.rpc("anvil_dropAllTransactions");
  Answer reset;
  ASSERT_TRUE(eventually([&] { return (reset = reset_to(cluster, 0)).status == 200U; }, 60s)) << reset.body;
  EXPECT_EQ(reset.json().at("givenUp").as_int64(), 1) << reset.body;
  EXPECT_EQ(cluster.column(open, "concat_ws(' ', state, sub_state, nonce)"), "FAILED_FINAL given_up");
  const auto next = cluster.create(0, transfer(signer(0), "next", 5));
  cluster.rpc("evm_setIntervalMining", {1});
  ASSERT_TRUE(cluster.becomes(next, "state", "CONFIRMED")) << cluster.describe();
  EXPECT_EQ(cluster.balance(recipient()), 5);
}

TEST(tx_undone, the_cursor_is_not_moved_while_one_endpoint_contradicts) {
  auto options = mined_by_hand();
  options.second_endpoint = true;
  options.second_rewritten = true;
  TxCluster cluster(options);
  const auto id = confirm_one(cluster, "paid");
  const auto hash = cluster.column(id, "tx_hash");
  cluster.rpc("anvil_reset");
  ASSERT_TRUE(cluster.sql_becomes(kWaitsBecause, "undone 0 true")) << cluster.describe();
  auto& second = cluster.second_rewriter();
  second.change("eth_getTransactionCount", [](const json::object&, json::object reply) {
    reply["result"] = "0x1";
    return reply;
  });
  const auto counts = reset_to(cluster, 0);
  EXPECT_EQ(counts.status, 409U) << counts.body;
  EXPECT_EQ(counts.code(), "reset_refused");
  EXPECT_EQ(counts.json().at("why").as_string(), "count_differs");
  second.pass_all();
  second.change("eth_getTransactionByHash", [hash](const json::object& call, json::object reply) {
    const auto& asked = call.at("params").as_array().at(0).as_string();
    if (asked != hash) return reply;
    reply["result"] =
        json::object{{"hash", hash},   {"from", signer(0)}, {"to", recipient()},    {"nonce", "0x0"},
                     {"value", "0x1"}, {"input", "0x"},     {"blockHash", nullptr}, {"blockNumber", nullptr}};
    return reply;
  });
  const auto known = reset_to(cluster, 0);
  EXPECT_EQ(known.json().at("why").as_string(), "transaction_known") << known.body;
  EXPECT_EQ(known.json().at("txHash").as_string(), hash);
  EXPECT_EQ(cluster.column(id, "nonce"), "0");
  EXPECT_EQ(cluster.sql("SELECT count(*) FROM operator_action"), "0");
  second.pass_all();
  EXPECT_EQ(reset_to(cluster, 0).status, 200U);
}

TEST(tx_undone, an_endpoint_that_counts_too_few_raises_no_alarm) {
  auto options = mined_by_hand();
  options.rewritten = true;
  TxCluster cluster(options);
  confirm_one(cluster, "paid");
  auto& endpoint = cluster.chain_rewriter(0);
  endpoint.change("eth_getTransactionCount", [](const json::object&, json::object reply) {
    reply["result"] = "0x0";
    return reply;
  });
  const auto before = cluster.node(0).metric(kGapRounds);
  ASSERT_TRUE(eventually([&] { return cluster.node(0).metric(kGapRounds) >= before + 8; })) << cluster.describe();
  EXPECT_GE(endpoint.changed("eth_getTransactionCount"), 4U);
  EXPECT_EQ(cluster.sql(kWaitsBecause), " false");
}

TEST(tx_undone, a_pending_transaction_of_another_wallet_is_no_gap_until_it_is_dropped) {
  TxCluster cluster(mined_by_hand());
  const auto lost = std::string(
      cluster
          .rpc("eth_sendTransaction",
               {json::object{{"from", signer(0)}, {"to", recipient(7)}, {"value", "0x1"}, {"gas", "0x7530"}}})
          .as_string());
  const auto id = cluster.create(0, transfer(signer(0), "behind", 1));
  ASSERT_TRUE(cluster.becomes(id, "nonce || ' ' || state", "1 TRACKING")) << cluster.describe();
  const auto before = cluster.node(0).metric(kGapRounds);
  ASSERT_TRUE(eventually([&] { return cluster.node(0).metric(kGapRounds) >= before + 6; })) << cluster.describe();
  EXPECT_EQ(cluster.sql(kWaitsBecause), " false");
  cluster.rpc("anvil_dropTransaction", {lost});
  ASSERT_TRUE(cluster.sql_becomes(kWaitsBecause, "gap 0 true")) << cluster.describe();
  EXPECT_TRUE(cluster.get(0, "/api/v1/tx/" + id).json().at("blockedBy").is_null());
  const auto filled =
      cluster.post(0, "/api/v1/signers/" + signer(0) + "/fill-nonce", {{"nonce", 0}, {"reason", "it was dropped"}});
  ASSERT_EQ(filled.status, 202U) << filled.body;
  cluster.rpc("evm_setIntervalMining", {1});
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  EXPECT_EQ(cluster.sql(kWaitsBecause), " false");
  EXPECT_EQ(cluster.balance(recipient()), 1);
}

TEST(tx_undone, a_transaction_that_waits_for_its_nonce_is_cancelled_at_once) {
  auto options = mined_by_hand();
  options.settings.max_in_flight = 1;
  TxCluster cluster(options);
  const auto first = cluster.create(0, transfer(signer(0), "first", 1));
  ASSERT_TRUE(cluster.becomes(first, "state", "TRACKING")) << cluster.describe();
  const auto waiting = cluster.create(0, transfer(signer(0), "waiting", 2));
  const auto last = cluster.create(0, transfer(signer(0), "last", 4));
  EXPECT_EQ(cluster.column(waiting, "state"), "CREATED");
  const auto cancelled = act(cluster, waiting, "cancel");
  ASSERT_EQ(cancelled.status, 200U) << cancelled.body;
  EXPECT_EQ(cancelled.json().at("state").as_string(), "FAILED_FINAL");
  EXPECT_TRUE(cancelled.json().at("nonce").is_null());
  EXPECT_EQ(act(cluster, waiting, "cancel").code(), "wrong_state");
  EXPECT_EQ(act(cluster, waiting, "resend").code(), "wrong_state");
  cluster.rpc("evm_setIntervalMining", {1});
  ASSERT_TRUE(cluster.becomes(last, "state || ' ' || nonce", "CONFIRMED 1")) << cluster.describe();
  EXPECT_EQ(cluster.column(waiting, kUndoneEnd), "FAILED_FINAL cancelled_by_operator");
  EXPECT_EQ(cluster.balance(recipient()), 5);
}

}  // namespace
}  // namespace fencepost::test

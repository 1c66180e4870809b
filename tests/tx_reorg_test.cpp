// Reorgs while no node runs, and transactions that are mined again long after a reorg undid them. Each test mines its
// blocks itself.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/eventually.hpp"
#include "tests/support/tx_cluster.hpp"

namespace fencepost::test {
namespace {

using namespace std::chrono_literals;

constexpr auto kConfirmationRounds = "worker_runs_total{result=\"ok\",worker=\"tx_confirmations\"}";

// Returns the id of a new transaction that is final: two blocks are on top of its own.
std::string create_and_confirm(TxCluster& cluster) {
  auto id = cluster.create(0, transfer(signer(0), "v", 1));
  if (!cluster.becomes(id, "state", "TRACKING")) throw Exception(internal("not_tracking", cluster.describe()));
  cluster.mine(3);
  if (!cluster.becomes(id, "state", "CONFIRMED")) throw Exception(internal("not_confirmed", cluster.describe()));
  return id;
}

// Waits until the node has checked confirmations twice at the present head; what it has not reported by then, it will
// not report.
bool looks_again(TxCluster& cluster) {
  const auto head = static_cast<double>(cluster.head());
  if (!eventually([&] { return cluster.node(0).metric("chain_head_block") == head; })) return false;
  const auto before = cluster.node(0).metric(kConfirmationRounds);
  return eventually([&] { return cluster.node(0).metric(kConfirmationRounds) >= before + 2; });
}

std::string violations(const TxCluster& cluster) {
  return cluster.sql(
      "SELECT coalesce(string_agg(subject || ' ' || (data ->> 'blockNumber'), ', '), '') FROM outbox "
      "WHERE type = 'TxFinalityViolated'");
}

TEST(tx_reorg, a_final_transaction_undone_while_no_node_runs_is_reported_at_the_next_start) {
  TxCluster cluster({.anvil = {"--no-mining"}});
  const auto id = create_and_confirm(cluster);
  cluster.node(0).kill();
  cluster.reorg(3);
  cluster.mine(3);
  ASSERT_EQ(cluster.mined_count(signer(0)), 0) << "anvil's reorg did not undo the transaction";
  EXPECT_EQ(violations(cluster), "");

  cluster.node(0).start();
  EXPECT_TRUE(eventually([&] { return cluster.node(0).metric("tx_finality_violated_total") == 1; }))
      << cluster.describe();
  EXPECT_EQ(violations(cluster), fmt::format("tx/{} 1", id));
  EXPECT_EQ(cluster.column(id, "state || ' ' || sub_state"), "CONFIRMED finality_violated");
  EXPECT_EQ(cluster.mined_count(signer(0)), 0) << "the node sent it again without an operator's decision";
}

TEST(tx_reorg, a_node_that_restarts_on_the_same_branch_reports_no_violation) {
  TxCluster cluster({.anvil = {"--no-mining"}});
  create_and_confirm(cluster);
  cluster.node(0).kill();
  cluster.mine(3);
  cluster.node(0).start();
  ASSERT_TRUE(looks_again(cluster)) << cluster.describe();
  EXPECT_EQ(violations(cluster), "");
  EXPECT_EQ(cluster.node(0).metric("tx_finality_violated_total"), 0);
}

TEST(tx_reorg, a_node_killed_after_it_reported_a_violation_does_not_report_it_again) {
  TxCluster cluster({.anvil = {"--no-mining"}, .start = false});
  cluster.node(0).start({"FENCEPOST_TEST_KILL_AT=violations.committed"});
  const auto id = create_and_confirm(cluster);
  cluster.reorg(3);
  cluster.mine(3);
  ASSERT_TRUE(cluster.node(0).dies()) << cluster.describe();
  EXPECT_EQ(violations(cluster), fmt::format("tx/{} 1", id));

  cluster.node(0).start();
  ASSERT_TRUE(looks_again(cluster)) << cluster.describe();
  EXPECT_EQ(violations(cluster), fmt::format("tx/{} 1", id));
  EXPECT_EQ(cluster.sql("SELECT count(*) FROM history WHERE sub_state = 'finality_violated'"), "1");
}

// The first block of each TxConfirmations event, oldest event first; empty for a withdrawn list.
std::string announced_lists(const TxCluster& cluster) {
  return cluster.sql(
      "SELECT string_agg(format('%s:%s', data ->> 'newFork', data #>> '{confirmations,0,blockHash}'), ' ' ORDER BY "
      "seq) "
      "FROM outbox WHERE type = 'TxConfirmations'");
}

// Waits until the transaction that a reorg undid is in the pool again.
bool is_back(const TxCluster& cluster, const std::string& tx_id) {
  return eventually(
      [&] { return !cluster.rpc("eth_getTransactionByHash", {cluster.column(tx_id, "tx_hash")}).is_null(); });
}

// The transaction becomes STUCK between the withdrawn receipt and the next one. The node must still remember that the
// announced list is void.
TEST(tx_reorg, a_transaction_stuck_after_a_reorg_announces_a_new_list_when_it_is_mined) {
  constexpr auto kStuckAfter = 3s;
  TxCluster cluster({.settings = {.confirmations = "20", .stuck_after = kStuckAfter}, .anvil = {"--no-mining"}});
  const auto id = cluster.create(0, transfer(signer(0), "s", 1));
  ASSERT_TRUE(cluster.becomes(id, "state", "TRACKING")) << cluster.describe();
  cluster.mine(2);
  ASSERT_TRUE(cluster.becomes(id, "coalesce(sub_state, '')", "mined")) << cluster.describe();
  // Make the broadcast an hour old: stuck_after must count from the loss of the receipt, not from the broadcast.
  cluster.sql("UPDATE tx_open SET first_submitted_at = first_submitted_at - interval '1 h' RETURNING 1");
  const auto mined_at = cluster.column(id, "receipt_changed_at");
  EXPECT_EQ(cluster.column(id, "withdrawn"), "f");

  cluster.reorg(2);
  ASSERT_TRUE(cluster.becomes(id, "withdrawn", "t")) << cluster.describe();
  ASSERT_TRUE(cluster.becomes(id, "state || ' ' || coalesce(sub_state, '')", "STUCK no_receipt")) << cluster.describe();
  EXPECT_EQ(cluster.column(id, "withdrawn"), "t");
  EXPECT_EQ(cluster.column(id, fmt::format("receipt_changed_at > '{}'", mined_at)), "t");
  EXPECT_EQ(cluster.sql(fmt::format("SELECT h.at - t.receipt_changed_at >= interval '{} s' FROM history AS h "
                                    "JOIN tx_view AS t ON h.subject = 'tx/' || t.tx_id WHERE h.to_state = 'STUCK'",
                                    kStuckAfter.count())),
            "t")
      << "the transaction became STUCK too early";

  ASSERT_TRUE(is_back(cluster, id)) << cluster.describe();
  cluster.mine(1);
  ASSERT_TRUE(cluster.becomes(id, "state || ' ' || coalesce(sub_state, '')", "TRACKING mined")) << cluster.describe();
  EXPECT_EQ(announced_lists(cluster), "true: true:" + cluster.column(id, "receipt_hash"));
  EXPECT_EQ(cluster.column(id, "withdrawn"), "f");
  EXPECT_EQ(cluster.column(id, "announced_hash = receipt_hash"), "t");
  cluster.mine(20);
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  EXPECT_EQ(cluster.mined_count(signer(0)), 1);
}

// The node knows the hashes of its own broadcasts by heart, and matches new blocks against them. A reorg voids that
// knowledge for the transaction that it undoes and for the one that waits behind it.
TEST(tx_reorg, what_a_node_remembers_of_its_broadcasts_does_not_mislead_it_after_a_reorg) {
  TxCluster cluster({.settings = {.confirmations = "3"}, .anvil = {"--no-mining"}});
  const auto first = cluster.create(0, transfer(signer(0), "m1", 1));
  ASSERT_TRUE(cluster.becomes(first, "state", "TRACKING")) << cluster.describe();
  cluster.mine(1);
  ASSERT_TRUE(cluster.becomes(first, "coalesce(sub_state, '')", "mined")) << cluster.describe();
  const auto second = cluster.create(0, transfer(signer(0), "m2", 1));
  ASSERT_TRUE(cluster.becomes(second, "state", "TRACKING")) << cluster.describe();

  cluster.reorg(1);
  ASSERT_TRUE(cluster.becomes(first, "coalesce(receipt_hash, '')", "")) << cluster.describe();
  ASSERT_TRUE(is_back(cluster, first)) << cluster.describe();
  cluster.mine(1);
  ASSERT_TRUE(cluster.becomes(first, "coalesce(sub_state, '')", "mined")) << cluster.describe();
  ASSERT_TRUE(cluster.becomes(second, "coalesce(sub_state, '')", "mined")) << cluster.describe();
  cluster.mine(3);
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  EXPECT_EQ(cluster.mined_count(signer(0)), 2);
  EXPECT_EQ(cluster.sql("SELECT count(*) FROM outbox WHERE type = 'TxConfirmed'"), "2");
}

// Init code that reverts in block 1 and succeeds in any later block.
TEST(tx_reorg, a_transaction_that_reverted_only_in_an_undone_block_ends_without_a_revert_reason) {
  TxCluster cluster({.settings = {.confirmations = "3"}, .anvil = {"--no-mining"}});
  const auto id = cluster.create(0, {{"signer", signer(0)},
                                     {"requestId", "r"},
                                     {"payload", {{"data", "0x43600211600857005b600080fd"}, {"gas", 100'000}}}});
  ASSERT_TRUE(cluster.becomes(id, "state", "TRACKING")) << cluster.describe();
  cluster.mine(1);
  ASSERT_TRUE(cluster.becomes(id, "coalesce(sub_state, '') || ' ' || (error_message IS NULL)::text", "mined false"))
      << cluster.describe();
  const std::string kMessage = "SELECT coalesce(message, 'none') FROM tx_attempt";
  EXPECT_NE(cluster.sql(kMessage), "none");

  cluster.reorg(1);
  ASSERT_TRUE(cluster.becomes(id, "coalesce(receipt_hash, '')", "")) << cluster.describe();
  EXPECT_EQ(cluster.sql(kMessage), "none");
  ASSERT_TRUE(is_back(cluster, id)) << cluster.describe();
  cluster.mine(4);
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  const auto attempt = cluster.get(0, "/api/v1/tx/" + id).json().at("attempts").at(0);
  EXPECT_EQ(attempt.at("outcome").as_string(), "accepted");
  EXPECT_TRUE(attempt.at("message").is_null()) << attempt;
}

// Usually the search of a new block finds the transaction. Here the block comes while no node leads the signer, so the
// worker that checks stuck transactions finds it later.
TEST(tx_reorg, the_check_of_stuck_transactions_announces_a_new_list_after_a_reorg) {
  TxCluster cluster({.settings = {.confirmations = "20",
                                  .stale_receipt_timeout = 1h,
                                  .stuck_after = 300ms,
                                  .lease_duration = 1h,
                                  .renew_interval = 20min},
                     .anvil = {"--no-mining"}});
  const auto id = cluster.create(0, transfer(signer(0), "h", 1));
  ASSERT_TRUE(cluster.becomes(id, "state IN ('TRACKING', 'STUCK')", "t")) << cluster.describe();
  cluster.mine(1);
  ASSERT_TRUE(cluster.becomes(id, "coalesce(sub_state, '')", "mined")) << cluster.describe();
  const auto found = cluster.node(0).metric("receipt_check_total{result=\"found\"}");
  cluster.reorg(1);
  ASSERT_TRUE(cluster.becomes(id, "withdrawn AND state = 'STUCK'", "t")) << cluster.describe();
  ASSERT_TRUE(is_back(cluster, id)) << cluster.describe();

  cluster.sql("UPDATE signer_lease SET expires_at = '-infinity' RETURNING 1");
  // Two blocks: once the node has the second, it has finished with the first.
  for (int i = 0; i < 2; ++i) {
    cluster.mine(1);
    const auto head = static_cast<double>(cluster.head());
    ASSERT_TRUE(eventually([&] { return cluster.node(0).metric("chain_head_block") == head; })) << cluster.describe();
  }
  EXPECT_EQ(cluster.column(id, "state"), "STUCK");
  cluster.sql("UPDATE signer_lease SET expires_at = clock_timestamp() + interval '1 h' RETURNING 1");
  ASSERT_TRUE(cluster.becomes(id, "state || ' ' || coalesce(sub_state, '')", "TRACKING mined")) << cluster.describe();
  EXPECT_EQ(announced_lists(cluster), "true: true:" + cluster.column(id, "receipt_hash"));
  EXPECT_EQ(cluster.column(id, "withdrawn"), "f");
  EXPECT_EQ(cluster.node(0).metric("receipt_check_total{result=\"found\"}"), found)
      << "the search of new blocks found it";
}

}  // namespace
}  // namespace fencepost::test

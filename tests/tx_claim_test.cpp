// A node claims a broadcast before it sends it. If the result is never stored, the claim expires and the broadcast is
// repeated.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/support/eventually.hpp"
#include "tests/support/interleaving.hpp"
#include "tests/support/tx_cluster.hpp"

namespace fencepost::test {
namespace {

using namespace std::chrono_literals;

// The chain has the transaction, but the node could not store the result: a psql session locks the row for longer than
// the node's lock timeout. Only the claim is left.
TEST(tx_claim, a_broadcast_whose_result_was_not_stored_is_repeated_long_before_resubmit_interval) {
  TxCluster cluster({.settings = {.resubmit_interval = 1h, .lease_duration = 60s, .renew_interval = 1s},
                     .anvil = {"--no-mining"},
                     .start = false});
  cluster.node(0).start({"FENCEPOST_TEST_STOP_AT=submitter.sent"});
  ask(cluster.create_ask(0, transfer(signer(0), "lost", 1)));  // no answer if the node stops first
  ASSERT_TRUE(eventually([&] { return cluster.rpc("txpool_status").at("pending").as_string() == "0x1"; }))
      << cluster.describe();
  interleaving::Session psql(cluster.dsn(), "psql");
  psql.must("BEGIN");
  psql.must("SELECT FROM tx_open FOR UPDATE");
  cluster.node(0).resume();
  ASSERT_TRUE(eventually([&] { return cluster.node(0).output().find("a step cannot be stored") != std::string::npos; }))
      << cluster.describe();
  psql.must("COMMIT");
  ASSERT_EQ(cluster.sql("SELECT state FROM tx_view"), "ALLOCATED") << cluster.describe();

  // Move the claim's expiry back by half a minute instead of waiting.
  EXPECT_EQ(cluster.sql("SELECT next_resubmit_at > clock_timestamp() FROM tx_view"), "t")
      << "the broadcast was not claimed";
  cluster.sql("UPDATE tx_open SET next_resubmit_at = next_resubmit_at - interval '30 s' RETURNING 1");
  ASSERT_TRUE(cluster.sql_becomes("SELECT state FROM tx_view", "TRACKING", 20s)) << cluster.describe();
  EXPECT_EQ(cluster.sql("SELECT claims || ' ' || outcome FROM tx_attempt"), "2 accepted");
  cluster.mine(3);
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  EXPECT_EQ(cluster.mined_count(signer(0)), 1);
  EXPECT_EQ(cluster.balance(recipient()), 1);
}

}  // namespace
}  // namespace fencepost::test

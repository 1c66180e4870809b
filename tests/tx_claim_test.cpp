// A broadcast is claimed before it is made. When nothing more is heard of it, somebody makes it again.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/support/eventually.hpp"
#include "tests/support/interleaving.hpp"
#include "tests/support/tx_cluster.hpp"

namespace fencepost::test {
namespace {

using namespace std::chrono_literals;

// The chain has it and the node could not write that down: the row is kept locked by a stranger, for longer than a
// write waits. What is left is a claim that nothing follows.
TEST(tx_claim, a_broadcast_whose_answer_was_lost_is_made_again_long_before_resubmit_interval) {
  TxCluster cluster({.settings = {.resubmit_interval = 1h, .lease_duration = 60s, .renew_interval = 1s},
                     .anvil = {"--no-mining"},
                     .start = false});
  cluster.node(0).start({"FENCEPOST_TEST_STOP_AT=submitter.sent"});
  ask(cluster.create_ask(0, transfer(signer(0), "lost", 1)));  // no answer, if it stops before
  ASSERT_TRUE(eventually([&] { return cluster.rpc("txpool_status").at("pending").as_string() == "0x1"; }))
      << cluster.describe();
  interleaving::Session stranger(cluster.dsn(), "psql");
  stranger.must("BEGIN");
  stranger.must("SELECT FROM managed_tx FOR UPDATE");
  cluster.node(0).resume();
  ASSERT_TRUE(eventually([&] { return cluster.node(0).output().find("a step cannot be stored") != std::string::npos; }))
      << cluster.describe();
  stranger.must("COMMIT");
  ASSERT_EQ(cluster.sql("SELECT state FROM managed_tx"), "ALLOCATED") << cluster.describe();

  // Half a minute passes for that row, and no more.
  EXPECT_EQ(cluster.sql("SELECT next_resubmit_at > clock_timestamp() FROM managed_tx"), "t") << "not claimed at all";
  cluster.sql("UPDATE managed_tx SET next_resubmit_at = next_resubmit_at - interval '30 s' RETURNING 1");
  ASSERT_TRUE(cluster.sql_becomes("SELECT state FROM managed_tx", "TRACKING", 20s)) << cluster.describe();
  EXPECT_EQ(cluster.sql("SELECT claims || ' ' || outcome FROM tx_attempt"), "2 accepted");
  cluster.mine(3);
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  EXPECT_EQ(cluster.mined_count(signer(0)), 1);
  EXPECT_EQ(cluster.balance(recipient()), 1);
}

}  // namespace
}  // namespace fencepost::test

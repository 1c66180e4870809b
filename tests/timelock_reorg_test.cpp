// Reorgs that the scanner of timelocks does not see as they happen: while no node ran, or from an endpoint that is on a
// stale branch.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/timelock_fixture.hpp"

namespace fencepost::test {
namespace {

namespace json = boost::json;

class TimelockReorgs : public Timelocks {
 protected:
  // Schedules one operation in a block of its own. Returns its id.
  std::string schedule(const OpenZeppelinTimelock& timelock, std::uint64_t number) const {
    timelock.schedule({recipient(1)}, salt(number), 1'000'000);
    return OpenZeppelinTimelock::id({recipient(1)}, salt(number));
  }
};

TEST_F(TimelockReorgs, a_reorg_while_no_node_ran_is_found_however_far_the_chain_went_on) {
  start();
  const OpenZeppelinTimelock timelock(*chain_, signer(0), 100);
  import(timelock.address());
  const auto stays = schedule(timelock, 1);
  const auto goes = schedule(timelock, 2);
  ASSERT_TRUE(becomes(stays, "waiting")) << describe();
  ASSERT_TRUE(becomes(goes, "waiting")) << describe();
  ASSERT_TRUE(scanned()) << describe();
  ASSERT_EQ(cluster_->node(0).stop().code, 0) << describe();
  cluster_->reorg(1);
  cluster_->mine(600);  // more than twice the follower's window
  const auto comes = schedule(timelock, 3);
  cluster_->node(0).start();
  ASSERT_TRUE(becomes(goes, "waiting>-waiting")) << describe();
  ASSERT_TRUE(becomes(comes, "waiting")) << describe();
  ASSERT_TRUE(scanned()) << describe();
  EXPECT_EQ(announced(stays), "waiting");
  EXPECT_EQ(status(stays), "waiting");
  EXPECT_EQ(status(goes), "waiting removed");
}

TEST_F(TimelockReorgs, a_chain_that_is_rolled_back_takes_its_events_back) {
  start();
  const OpenZeppelinTimelock timelock(*chain_, signer(0), 100);
  import(timelock.address());
  const auto stays = schedule(timelock, 1);
  const auto snapshot = cluster_->rpc("evm_snapshot", {});
  const auto goes = schedule(timelock, 2);
  cluster_->mine(5);
  ASSERT_TRUE(becomes(goes, "waiting")) << describe();
  ASSERT_TRUE(scanned()) << describe();
  cluster_->rpc("evm_revert", {snapshot});
  cluster_->mine(2);  // lower than before, and on another branch
  ASSERT_TRUE(becomes(goes, "waiting>-waiting")) << describe();
  EXPECT_EQ(announced(stays), "waiting");
  ASSERT_TRUE(scanned()) << describe();
}

TEST_F(TimelockReorgs, a_stale_endpoint_on_a_lower_branch_does_not_undo_what_was_scanned) {
  TxClusterOptions options;
  options.rewritten = true;
  start(0, 2, std::move(options));
  const OpenZeppelinTimelock timelock(*chain_, signer(0), 100);
  import(timelock.address());
  const auto before = schedule(timelock, 1);
  ASSERT_TRUE(becomes(before, "waiting")) << describe();
  // From here on, the second node's endpoint has a head of its own instead of the next blocks.
  cluster_->mine(1);
  const auto stale = cluster_->head();
  cluster_->node(1).kill();
  auto& endpoint = cluster_->chain_rewriter(1);
  endpoint.lag(stale);
  const auto other_branch = [stale](const json::object&, json::object reply) {
    auto* block = reply["result"].if_object();
    if (block == nullptr || (*block)["number"] != json::value(fmt::format("0x{:x}", stale))) return reply;
    (*block)["hash"] = "0x" + std::string(64, 'e');
    return reply;
  };
  endpoint.change("eth_getBlockByNumber", other_branch);
  endpoint.change("eth_getBlockByHash", other_branch);
  const auto after = schedule(timelock, 2);
  cluster_->mine(2);
  ASSERT_TRUE(becomes(after, "waiting")) << describe();
  ASSERT_TRUE(scanned()) << describe();
  cluster_->node(0).kill();
  cluster_->node(1).start();
  ASSERT_TRUE(eventually([&] { return cluster_->node(1).output().contains("waiting whether it stays so"); }))
      << cluster_->node(1).output();
  EXPECT_EQ(announced(after), "waiting");
  endpoint.pass_all();
  endpoint.lag({});
  const auto last = schedule(timelock, 3);
  ASSERT_TRUE(becomes(last, "waiting")) << cluster_->node(1).output();
  EXPECT_EQ(announced(before), "waiting");
  EXPECT_EQ(announced(after), "waiting");
}

TEST_F(TimelockReorgs, a_node_whose_endpoint_is_behind_leaves_the_scan_to_another) {
  TxClusterOptions options;
  options.rewritten = true;
  start(0, 2, std::move(options));
  const OpenZeppelinTimelock timelock(*chain_, signer(0), 100);
  import(timelock.address());
  ASSERT_TRUE(becomes(schedule(timelock, 1), "waiting")) << describe();
  cluster_->node(0).kill();
  cluster_->chain_rewriter(0).lag(cluster_->head());
  ASSERT_TRUE(becomes(schedule(timelock, 2), "waiting")) << describe();
  cluster_->node(1).kill();
  cluster_->node(0).start();
  ASSERT_TRUE(eventually([&] { return cluster_->node(0).metric("timelock_scanned_block") > 0; }));
  cluster_->node(1).start();
  const auto next = schedule(timelock, 3);
  ASSERT_TRUE(becomes(next, "waiting")) << describe();
}

}  // namespace
}  // namespace fencepost::test

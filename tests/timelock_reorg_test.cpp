// Reorgs that the scanner of timelocks does not see as they happen: while no node ran, or from an endpoint that is on a
// stale branch.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/timelock_fixture.hpp"

namespace fencepost::test {
namespace {

namespace json = boost::json;

const std::string kNoBlock = "0x" + std::string(64, 'e');

class TimelockReorgs : public Timelocks {
 protected:
  // Schedules one operation in a block of its own. Returns its id.
  std::string schedule(const OpenZeppelinTimelock& timelock, std::uint64_t number) const {
    timelock.schedule({recipient(1)}, salt(number), 1'000'000);
    return OpenZeppelinTimelock::id({recipient(1)}, salt(number));
  }
  // Endpoint 0 is the rewriter, endpoint 1 anvil itself.
  void start_two() { start(0, 1, {.rewritten = true, .second_endpoint = true}); }
  // Another node has the chain and does nothing, while the follower of this one goes on.
  void scan_pauses() const {
    cluster_->sql("UPDATE timelock_scan SET owner_node = 'other', claimed_until = 'infinity' RETURNING 1");
  }
  void scan_resumes() const { cluster_->sql("UPDATE timelock_scan SET claimed_until = '-infinity' RETURNING 1"); }
  // Until the window is above the blocks so far.
  bool follower_goes_on(int blocks) const {
    cluster_->mine(blocks);
    return eventually([&] { return cluster_->node(0).metric("chain_head_block") == cluster_->head(); });
  }
  json::object block(std::int64_t number) const {
    return cluster_->rpc("eth_getBlockByNumber", {fmt::format("0x{:x}", number), false}).as_object();
  }
  static std::int64_t number(const json::value& hex) { return std::stoll(std::string(hex.as_string()), nullptr, 16); }
  // Changes what endpoint 0 answers about a block that is asked for by its number.
  template <class Change>
  void change_blocks(Change change) {
    const auto by_number = [change](const json::object& call, json::object reply) {
      const auto& asked = call.at("params").at(0);
      if (asked.as_string().starts_with("0x")) reply["result"] = change(number(asked), reply["result"]);
      return reply;
    };
    cluster_->chain_rewriter(0).change("eth_getBlockByNumber", by_number);
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

// The endpoint answers from several servers. The one that has the old blocks is stuck on a dead branch, which still has
// the scanned block.
TEST_F(TimelockReorgs, an_endpoint_on_a_dead_branch_does_not_hide_a_reorg) {
  start_two();
  const OpenZeppelinTimelock timelock(*chain_, signer(0), 100);
  import(timelock.address());
  const auto stays = schedule(timelock, 1);
  const auto goes = schedule(timelock, 2);
  ASSERT_TRUE(becomes(stays, "waiting")) << describe();
  ASSERT_TRUE(becomes(goes, "waiting")) << describe();
  ASSERT_TRUE(scanned()) << describe();
  const auto dead = block(cluster_->head());
  scan_pauses();
  cluster_->reorg(1);
  const auto comes = schedule(timelock, 3);
  ASSERT_TRUE(follower_goes_on(600)) << describe();
  const auto last = number(dead.at("number"));
  change_blocks([dead, last, head = cluster_->head()](std::int64_t asked, json::value found) -> json::value {
    if (asked == last) return dead;
    return asked > last && asked < head ? json::value() : found;
  });
  scan_resumes();
  ASSERT_TRUE(becomes(goes, "waiting>-waiting")) << describe();
  ASSERT_TRUE(becomes(comes, "waiting")) << describe();
  EXPECT_EQ(announced(stays), "waiting");
  ASSERT_TRUE(scanned()) << describe();
}

TEST_F(TimelockReorgs, an_endpoint_on_a_branch_of_its_own_does_not_invent_a_reorg) {
  start_two();
  const OpenZeppelinTimelock timelock(*chain_, signer(0), 100);
  import(timelock.address());
  const auto stays = schedule(timelock, 1);
  ASSERT_TRUE(becomes(stays, "waiting")) << describe();
  ASSERT_TRUE(scanned()) << describe();
  const auto left = cluster_->head();
  scan_pauses();
  const auto comes = schedule(timelock, 2);
  ASSERT_TRUE(follower_goes_on(600)) << describe();
  change_blocks([left, head = cluster_->head()](std::int64_t asked, json::value found) {
    if (asked < left || asked >= head) return found;
    found.as_object()["hash"] = kNoBlock;
    if (asked > left) found.as_object()["parentHash"] = kNoBlock;
    return found;
  });
  scan_resumes();
  ASSERT_TRUE(becomes(comes, "waiting")) << describe();
  EXPECT_EQ(announced(stays), "waiting");
  EXPECT_EQ(cluster_->sql("SELECT reorgs FROM timelock_scan"), "0") << describe();
}

// The endpoint has the head and the scanned block, and other blocks between them.
TEST_F(TimelockReorgs, a_range_is_not_read_from_an_endpoint_that_does_not_link_it_to_the_block_before) {
  start_two();
  const OpenZeppelinTimelock timelock(*chain_, signer(0), 100);
  import(timelock.address());
  ASSERT_TRUE(becomes(schedule(timelock, 1), "waiting")) << describe();
  ASSERT_TRUE(scanned()) << describe();
  const auto first = cluster_->head() + 1;
  scan_pauses();
  const auto on_both = schedule(timelock, 2);
  const auto missing_there = schedule(timelock, 3);
  const auto missing = cluster_->head();
  ASSERT_TRUE(follower_goes_on(600)) << describe();
  change_blocks([first](std::int64_t asked, json::value found) {
    if (asked == first) found.as_object()["parentHash"] = kNoBlock;
    return found;
  });
  cluster_->chain_rewriter(0).change("eth_getLogs", [missing](const json::object&, json::object reply) {
    json::array others;
    for (auto& log : reply["result"].as_array()) {
      if (number(log.at("blockNumber")) != missing) others.push_back(std::move(log));
    }
    reply["result"] = std::move(others);
    return reply;
  });
  scan_resumes();
  ASSERT_TRUE(becomes(missing_there, "waiting")) << describe();
  EXPECT_EQ(announced(on_both), "waiting");
  ASSERT_TRUE(scanned()) << describe();
}

}  // namespace
}  // namespace fencepost::test

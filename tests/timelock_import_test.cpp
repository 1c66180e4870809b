// Imports and removals of contracts; what is asked about a contract itself, of endpoints that fail or lag.
#include "tests/support/timelock_faults.hpp"

namespace fencepost::test {
namespace {

namespace json = boost::json;

class TimelockImport : public TimelockFaults {
 protected:
  // Endpoint 0 is the rewriter, endpoint 1 anvil itself.
  void start_two() { start(0, 1, {.rewritten = true, .second_endpoint = true}); }
  RpcRewriter& first() { return cluster_->chain_rewriter(0); }
  bool follower_is_at_head() const {
    return eventually([&] { return cluster_->node(0).metric("chain_head_block") == cluster_->head(); });
  }
  int remove(const std::string& address) const {
    const auto url = cluster_->node(0).url("/api/v1/timelocks/31337/" + address);
    return ask({"DELETE", url, cluster_->key(), "", {}}).status;
  }
};

TEST_F(TimelockImport, an_import_asks_the_next_endpoint_when_one_fails) {
  start_two();
  const OpenZeppelinTimelock timelock(*chain_, signer(0), 100);
  cluster_->mine(1);
  for (const auto* method : {"eth_getCode", "eth_call", "eth_blockNumber"}) {
    first().answer_error(method, -32000, "unknown block");
    EXPECT_EQ(import(timelock.address()).at("standard").as_string(), "openzeppelin") << method;
    EXPECT_GE(first().changed(method), 1U);
    first().pass_all();
    ASSERT_EQ(remove(timelock.address()), 204);
  }
}

TEST_F(TimelockImport, an_endpoint_that_lags_does_not_deny_a_new_contract) {
  start_two();
  ASSERT_TRUE(follower_is_at_head()) << describe();
  first().lag(cluster_->head());
  const OpenZeppelinTimelock timelock(*chain_, signer(0), 100);
  cluster_->mine(1);
  const auto added = import(timelock.address());
  EXPECT_EQ(added.at("history").at("fromBlock").as_int64(), cluster_->head() - 1) << "the block of its deployment";
  // The address of no contract: all endpoints agree, and one of them has the head.
  const auto refused = cluster_->post(0, "/api/v1/timelocks", {{"chainId", 31337}, {"address", recipient(7)}});
  EXPECT_EQ(refused.code(), "not_a_contract") << refused.body;
}

// The only endpoint is behind the head that the node has seen there: it cannot say that there is no contract.
TEST_F(TimelockImport, a_contract_is_not_denied_by_an_endpoint_that_has_fallen_behind) {
  start(0, 1, {.rewritten = true});
  const auto before = cluster_->head();
  const OpenZeppelinTimelock timelock(*chain_, signer(0), 100);
  cluster_->mine(1);
  ASSERT_TRUE(follower_is_at_head()) << describe();
  first().lag(before);
  const json::object body{{"chainId", 31337}, {"address", timelock.address()}};
  const auto refused = cluster_->post(0, "/api/v1/timelocks", body);
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.code(), "endpoint_behind") << refused.body;
  first().lag({});
  import(timelock.address());
}

TEST_F(TimelockImport, rules_are_read_from_an_endpoint_that_has_their_change) {
  start_two();
  const OpenZeppelinTimelock timelock(*chain_, signer(0), 1);
  import(timelock.address());
  ASSERT_TRUE(scanned()) << describe();
  first().lag(cluster_->head());
  const TimelockCall change{timelock.address(), 0, call_data("updateDelay(uint256)", {word(777)})};
  timelock.schedule(change, salt(1), 1);
  chain_->pass(10);
  timelock.execute(change, salt(1));
  EXPECT_TRUE(cluster_->sql_becomes("SELECT min_delay FROM openzeppelin_timelocks", "777", kPatience)) << describe();
}

TEST_F(TimelockImport, a_contract_that_was_removed_is_imported_again_at_once) {
  start();
  const OpenZeppelinTimelock timelock(*chain_, signer(0), 100);
  import(timelock.address());
  const auto id = schedule(timelock, 1).front();
  ASSERT_TRUE(becomes(id, "waiting")) << describe();
  ASSERT_EQ(remove(timelock.address()), 204);
  EXPECT_EQ(cluster_->get(0, "/api/v1/timelocks/31337/" + timelock.address()).status, 404);
  EXPECT_EQ(remove(timelock.address()), 404);
  EXPECT_EQ(flows(), "0");
  import(timelock.address());
  ASSERT_TRUE(becomes(id, "waiting>waiting")) << describe();
  EXPECT_EQ(flows(), "1");
}

TEST_F(TimelockImport, a_removal_that_was_interrupted_is_finished_by_the_next_start) {
  start();
  const OpenZeppelinTimelock timelock(*chain_, signer(0), 100);
  import(timelock.address());
  const auto id = schedule(timelock, 1).front();
  ASSERT_TRUE(becomes(id, "waiting")) << describe();
  cluster_->node(0).kill();
  cluster_->sql("UPDATE timelock SET removing_at = now(), halted_block = 0 RETURNING 1");
  cluster_->node(0).start();
  ASSERT_TRUE(cluster_->sql_becomes("SELECT count(*) FROM timelock", "0", kPatience)) << describe();
  EXPECT_EQ(flows(), "0");
  EXPECT_EQ(cluster_->sql("SELECT count(*) FROM openzeppelin_timelock_transactions"), "0");
  EXPECT_EQ(announced(id), "waiting") << "a removal announces nothing";
}

}  // namespace
}  // namespace fencepost::test

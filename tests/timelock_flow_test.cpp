// Timelocks end to end: real contracts on a real chain, from the transaction that queues to the event that announces
// it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/timelock_fixture.hpp"

namespace fencepost::test {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

constexpr std::int64_t kDay = CompoundTimelock::kDay;

TEST_F(Timelocks, compound_is_found_out_and_followed_from_queue_to_execution) {
  start();
  const CompoundTimelock timelock(*chain_, signer(0));
  const auto imported = import(timelock.address());
  EXPECT_EQ(imported.at("standard").as_string(), "compound");
  EXPECT_EQ(imported.at("delay").as_string(), std::to_string(2 * kDay));
  EXPECT_EQ(imported.at("gracePeriod").as_string(), std::to_string(14 * kDay));
  EXPECT_EQ(imported.at("admin").as_string(), signer(0));

  const TimelockCall call{recipient(1), 0, "0x"};
  const auto eta = chain_->now() + 3 * kDay;
  const auto queued = timelock.queue(call, "", eta);
  const auto id = CompoundTimelock::id(call, "", eta);
  ASSERT_TRUE(becomes(id, "waiting")) << describe();
  EXPECT_EQ(cluster_->sql("SELECT concat_ws(' ', initiator_address, eta, queue_tx_hash, via_address) FROM "
                          "timelock_transaction_flows"),
            fmt::format("{} {} {}", signer(0), eta, queued));
  chain_->set_time(eta - 1);
  ASSERT_TRUE(scanned()) << describe();
  EXPECT_EQ(announced(id), "waiting");
  chain_->set_time(eta);
  ASSERT_TRUE(becomes(id, "waiting>ready")) << describe();
  const auto executed = timelock.execute(call, "", eta);
  ASSERT_TRUE(becomes(id, "waiting>ready>executed")) << describe();
  EXPECT_EQ(cluster_->sql("SELECT execute_tx_hash FROM timelock_transaction_flows"), executed);
  EXPECT_EQ(cluster_->sql("SELECT string_agg(event_type, ',' ORDER BY block_number) FROM "
                          "compound_timelock_transactions WHERE NOT orphaned"),
            "QueueTransaction,ExecuteTransaction");
}

TEST_F(Timelocks, openzeppelin_batches_are_one_flow_and_one_transition) {
  start();
  const OpenZeppelinTimelock timelock(*chain_, signer(0), 100);
  const auto imported = import(timelock.address());
  EXPECT_EQ(imported.at("standard").as_string(), "openzeppelin");
  EXPECT_EQ(imported.at("delay").as_string(), "100");
  EXPECT_TRUE(imported.at("gracePeriod").is_null());
  const std::vector<TimelockCall> calls{{recipient(1)}, {recipient(2)}, {recipient(3)}};
  timelock.schedule_batch(calls, salt(1), 200);
  const auto id = OpenZeppelinTimelock::batch_id(calls, salt(1));
  ASSERT_TRUE(becomes(id, "waiting")) << describe();
  chain_->pass(200);
  ASSERT_TRUE(becomes(id, "waiting>ready")) << describe();
  timelock.execute_batch(calls, salt(1));
  ASSERT_TRUE(becomes(id, "waiting>ready>executed")) << describe();
  EXPECT_EQ(cluster_->sql("SELECT concat_ws(' ', generation, calls) FROM timelock_transaction_flows"), "1 3");
}

TEST_F(Timelocks, an_id_that_is_scheduled_again_after_a_cancel_is_a_new_generation) {
  start();
  const OpenZeppelinTimelock timelock(*chain_, signer(0), 100);
  import(timelock.address());
  const TimelockCall call{recipient(1)};
  const auto id = OpenZeppelinTimelock::id(call, salt(1));
  timelock.schedule(call, salt(1), 1000);
  timelock.cancel(id);
  timelock.schedule(call, salt(1), 1000);
  ASSERT_TRUE(becomes(id, "waiting>cancelled>waiting")) << describe();
  EXPECT_EQ(status(id), "cancelled,waiting");
}

TEST_F(Timelocks, many_flows_that_are_due_at_once_are_announced_once_each_by_two_nodes) {
  refresh_batch_ = 2;
  start(0, 2);
  const OpenZeppelinTimelock timelock(*chain_, signer(0), 100);
  import(timelock.address());
  const auto begin = chain_->now();
  constexpr int kFlows = 25;
  for (int i = 0; i < kFlows; ++i) timelock.schedule({recipient(1)}, salt(i), 1000);
  chain_->set_time(begin + 5000);
  const auto ready = [&] { return cluster_->sql("SELECT count(*) FROM outbox WHERE data->>'statusTo' = 'ready'"); };
  ASSERT_TRUE(eventually([&] { return ready() == std::to_string(kFlows); })) << describe();
  EXPECT_EQ(cluster_->sql("SELECT count(DISTINCT data->>'flowId') FROM outbox WHERE data->>'statusTo' = 'ready'"),
            std::to_string(kFlows));
}

TEST_F(Timelocks, compound_expires_after_the_grace_period_and_not_at_its_last_second) {
  start();
  const CompoundTimelock timelock(*chain_, signer(0));
  import(timelock.address());
  const TimelockCall call{recipient(1)};
  const auto eta = chain_->now() + 3 * kDay;
  timelock.queue(call, "", eta);
  const auto id = CompoundTimelock::id(call, "", eta);
  ASSERT_TRUE(becomes(id, "waiting")) << describe();
  chain_->set_time(eta + CompoundTimelock::kGrace);
  ASSERT_TRUE(becomes(id, "waiting>ready")) << describe();
  chain_->set_time(eta + CompoundTimelock::kGrace + 1);
  ASSERT_TRUE(becomes(id, "waiting>ready>expired")) << describe();
  timelock.cancel(call, "", eta);
  ASSERT_TRUE(becomes(id, "waiting>ready>expired>cancelled")) << describe();
}

TEST_F(Timelocks, history_before_the_import_is_found_from_the_deployment_on) {
  start();
  cluster_->mine(20);
  const OpenZeppelinTimelock timelock(*chain_, signer(0), 100);
  const auto deployed = cluster_->head();
  const TimelockCall call{recipient(1)};
  timelock.schedule(call, salt(1), 100);
  timelock.schedule(call, salt(2), 5000);
  chain_->pass(100);
  timelock.execute(call, salt(1));
  const auto imported = import(timelock.address());
  EXPECT_EQ(imported.at("history").at("fromBlock").as_int64(), deployed);
  ASSERT_TRUE(becomes(OpenZeppelinTimelock::id(call, salt(1)), "waiting>executed")) << describe();
  ASSERT_TRUE(becomes(OpenZeppelinTimelock::id(call, salt(2)), "waiting")) << describe();
  const auto shown = cluster_->get(0, "/api/v1/timelocks/31337/" + timelock.address());
  EXPECT_EQ(json::parse(shown.body).at("history").at("complete").as_bool(), true) << shown.body;
}

// Earlier events could change the numbers of generations that were announced.
TEST_F(Timelocks, a_history_does_not_begin_earlier_once_changes_were_announced) {
  start();
  const OpenZeppelinTimelock timelock(*chain_, signer(0), 100);
  cluster_->mine(3);
  const auto begin = cluster_->head();
  import(timelock.address(), {{"fromBlock", begin}});
  const auto scan_from = [&](std::int64_t block) {
    return ask({.method = "PATCH",
                .url = cluster_->node(0).url("/api/v1/timelocks/31337/" + timelock.address()),
                .key = cluster_->key(),
                .body = json::serialize(json::object{{"fromBlock", block}})});
  };
  EXPECT_EQ(scan_from(begin - 1).status, 200);
  timelock.schedule({recipient(1)}, salt(1), 1'000);
  ASSERT_TRUE(becomes(OpenZeppelinTimelock::id({recipient(1)}, salt(1)), "waiting")) << describe();
  const auto refused = scan_from(begin - 2);
  EXPECT_EQ(refused.status, 409);
  EXPECT_NE(refused.body.find("history_announced"), std::string::npos) << refused.body;
  EXPECT_EQ(scan_from(begin - 1).status, 200);
}

TEST_F(Timelocks, what_is_no_timelock_is_refused_with_what_was_tried) {
  start();
  const auto answer = cluster_->post(0, "/api/v1/timelocks", {{"chainId", 31337}, {"address", recipient(1)}});
  EXPECT_EQ(answer.status, 422) << answer.body;
  EXPECT_NE(answer.body.find("not_a_contract"), std::string::npos) << answer.body;
  // A contract that answers nothing: its code is STOP.
  cluster_->rpc("anvil_setCode", {recipient(2), "0x00"});
  cluster_->mine(1);
  const auto stop = cluster_->post(0, "/api/v1/timelocks", {{"chainId", 31337}, {"address", recipient(2)}});
  EXPECT_EQ(stop.status, 422) << stop.body;
  EXPECT_NE(stop.body.find("getMinDelay(): nothing"), std::string::npos) << stop.body;
}

TEST_F(Timelocks, a_reorg_that_removes_a_queue_takes_it_back) {
  start();
  const OpenZeppelinTimelock timelock(*chain_, signer(0), 100);
  import(timelock.address());
  cluster_->mine(3);
  const TimelockCall call{recipient(1)};
  timelock.schedule(call, salt(1), 1000);
  const auto id = OpenZeppelinTimelock::id(call, salt(1));
  ASSERT_TRUE(becomes(id, "waiting")) << describe();
  cluster_->reorg(1);
  cluster_->mine(1);
  ASSERT_TRUE(becomes(id, "waiting>-waiting")) << describe();
  EXPECT_EQ(status(id), "waiting removed");
  EXPECT_EQ(cluster_->sql("SELECT string_agg(event_type || orphaned, ',' ORDER BY event_type) FROM "
                          "openzeppelin_timelock_transactions"),
            "CallSalttrue,CallScheduledtrue");
}

TEST_F(Timelocks, changes_wait_for_their_confirmations) {
  start(3);
  const OpenZeppelinTimelock timelock(*chain_, signer(0), 100);
  import(timelock.address());
  const TimelockCall call{recipient(1)};
  timelock.schedule(call, salt(1), 1000);
  const auto id = OpenZeppelinTimelock::id(call, salt(1));
  cluster_->mine(2);
  ASSERT_TRUE(scanned()) << describe();
  EXPECT_EQ(announced(id), "");
  EXPECT_EQ(cluster_->sql("SELECT status || confirmed FROM timelock_transaction_flows"), "waitingfalse");
  cluster_->mine(1);
  ASSERT_TRUE(becomes(id, "waiting")) << describe();
}

TEST_F(Timelocks, a_change_of_the_delay_is_announced_and_shown_and_leaves_waiting_flows_as_they_are) {
  start();
  const OpenZeppelinTimelock timelock(*chain_, signer(0), 100);
  import(timelock.address());
  const TimelockCall other{recipient(1)};
  timelock.schedule(other, salt(2), 5000);
  const TimelockCall change{timelock.address(), 0, call_data("updateDelay(uint256)", {word(777)})};
  timelock.schedule(change, salt(1), 100);
  const auto id = OpenZeppelinTimelock::id(change, salt(1));
  ASSERT_TRUE(becomes(id, "waiting")) << describe();
  const auto eta = cluster_->sql("SELECT eta FROM timelock_transaction_flows WHERE delay = 5000");
  chain_->pass(100);
  ASSERT_TRUE(becomes(id, "waiting>ready")) << describe();
  timelock.execute(change, salt(1));
  ASSERT_TRUE(becomes(id, "waiting>ready>executed")) << describe();
  EXPECT_EQ(cluster_->sql("SELECT count(*) FROM outbox WHERE type = 'TimelockRulesChanged' AND data->>'event' = "
                          "'MinDelayChange' AND data->'arguments'->>'newDuration' = '777'"),
            "1")
      << cluster_->sql("SELECT string_agg(data::text, E'\\n') FROM outbox WHERE type = 'TimelockRulesChanged'");
  EXPECT_TRUE(eventually([&] { return cluster_->sql("SELECT min_delay FROM openzeppelin_timelocks") == "777"; }));
  EXPECT_EQ(cluster_->sql("SELECT eta FROM timelock_transaction_flows WHERE delay = 5000"), eta);
}

}  // namespace
}  // namespace fencepost::test

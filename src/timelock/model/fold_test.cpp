#include "timelock/model/fold.hpp"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "timelock/model/event_test_support.hpp"

namespace fencepost::timelock {
namespace {

using stub::event;
using stub::executed;
using stub::queue;
using stub::scheduled;
using stub::time_of;
using testing::IsEmpty;
using testing::SizeIs;

std::vector<Generation> fold_of(std::vector<RawEvent> events) {
  return fold(events);
}

TEST(fold, nothing_gives_nothing) {
  EXPECT_THAT(fold_of({}), IsEmpty());
}

TEST(fold, a_queued_transaction_has_the_facts_of_its_event) {
  const auto flows = fold_of({queue({.block = 3, .log = 2}, 5'000)});
  ASSERT_THAT(flows, SizeIs(1));
  const auto& flow = flows[0];
  EXPECT_EQ(flow.number, 1);
  EXPECT_EQ(flow.queue.position, (Position{3, 2}));
  EXPECT_EQ(flow.queue.block_hash, stub::hash_of("block 3"));
  EXPECT_EQ(flow.queue.tx_hash, stub::hash_of("tx"));
  EXPECT_EQ(flow.queue.timestamp, time_of(3));
  EXPECT_EQ(flow.queue.initiator, "0x" + std::string(40, 'a'));
  EXPECT_EQ(flow.queue.via, "0x" + std::string(40, 'b'));
  EXPECT_EQ(flow.eta, 5'000);
  EXPECT_EQ(flow.delay, std::nullopt);
  ASSERT_THAT(flow.calls, SizeIs(1));
  EXPECT_EQ(flow.calls[0].value, 5);
  EXPECT_EQ(flow.end, std::nullopt);
}

TEST(fold, an_operation_has_its_eta_from_its_block_and_its_salt) {
  const auto flows = fold_of({scheduled({.block = 3}, 100), stub::salt({.block = 3, .log = 1})});
  ASSERT_THAT(flows, SizeIs(1));
  EXPECT_EQ(flows[0].eta, time_of(3) + 100);
  EXPECT_EQ(flows[0].delay, Uint256(100));
  EXPECT_EQ(flows[0].salt, stub::hash_of("salt"));
  EXPECT_EQ(flows[0].predecessor, "0x" + std::string(64, '0'));
}

TEST(fold, an_end_has_the_facts_of_its_event) {
  const auto flows =
      fold_of({queue({.block = 3}, 5'000), event(EventType::kExecuteTransaction, {.block = 9, .log = 7, .tx = "end"})});
  ASSERT_TRUE(flows.at(0).end);
  EXPECT_EQ(*flows[0].end, (EndFacts{.status = FlowStatus::kExecuted,
                                     .position = {9, 7},
                                     .block_hash = stub::hash_of("block 9"),
                                     .tx_hash = stub::hash_of("end"),
                                     .timestamp = time_of(9)}));
}

TEST(fold, scheduled_and_executed_in_one_transaction) {
  const auto flows = fold_of({scheduled({.log = 0}, 0), executed({.log = 1})});
  ASSERT_THAT(flows, SizeIs(1));
  EXPECT_EQ(flows[0].end->status, FlowStatus::kExecuted);
}

TEST(fold, cancelled_and_scheduled_again_in_one_transaction) {
  const auto flows =
      fold_of({scheduled({.log = 0}, 50), scheduled({.log = 1}, 50, 1), event(EventType::kCancelled, {.log = 2}),
               scheduled({.log = 3}, 70), scheduled({.log = 4}, 70, 1)});
  ASSERT_THAT(flows, SizeIs(2));
  EXPECT_EQ(flows[0].end->status, FlowStatus::kCancelled);
  EXPECT_EQ(flows[1].delay, Uint256(70));
  EXPECT_THAT(flows[0].calls, SizeIs(2));
  EXPECT_THAT(flows[1].calls, SizeIs(2));
}

TEST(fold, an_index_counts_once_and_calls_are_in_their_order) {
  auto second = scheduled({.log = 1}, 50, 0);
  second.call.value = 99;
  const auto flows =
      fold_of({scheduled({.log = 0}, 50, 1), second, scheduled({.log = 2}, 50, 0), scheduled({.log = 3}, 50, 2)});
  ASSERT_THAT(flows, SizeIs(1));
  ASSERT_THAT(flows[0].calls, SizeIs(3));
  EXPECT_EQ(flows[0].calls[0].value, 99);
  EXPECT_EQ(flows[0].calls[1].index, 1);
  EXPECT_EQ(flows[0].calls[2].index, 2);
}

TEST(fold, calls_of_another_transaction_do_not_join_an_open_batch) {
  const auto flows = fold_of({scheduled({.log = 0}, 50), scheduled({.log = 1, .tx = "other"}, 50, 1)});
  ASSERT_THAT(flows, SizeIs(1));
  EXPECT_THAT(flows[0].calls, SizeIs(1));
}

TEST(fold, a_time_that_postgresql_can_store) {
  EXPECT_EQ(due_time(0), 0);
  EXPECT_EQ(due_time(1'700'000'000), 1'700'000'000);
  EXPECT_EQ(due_time(9'224'318'015'999), 9'224'318'015'999);
  EXPECT_EQ(due_time(9'224'318'016'000), std::nullopt);
  EXPECT_EQ(due_time(Uint256(1) << 63), std::nullopt);
  EXPECT_EQ(due_time(Uint256(1) << 255), std::nullopt);
}

TEST(fold, sums_of_times_do_not_wrap) {
  const auto most = std::numeric_limits<Uint256>::max();
  EXPECT_EQ(expires_after(5, 3), 8);
  EXPECT_EQ(expires_after(most, 1), most);
  EXPECT_EQ(expires_after(1, most), most);
  EXPECT_EQ(expires_after(most - 1, 1), most);
  EXPECT_EQ(fold_of({scheduled({}, most)}).at(0).eta, most);
}

TEST(fold, status_by_the_clock) {
  const struct {
    std::int64_t clock;
    FlowStatus compound, openzeppelin;
  } cases[] = {
      {-1, FlowStatus::kWaiting, FlowStatus::kWaiting},  {999, FlowStatus::kWaiting, FlowStatus::kWaiting},
      {1'000, FlowStatus::kReady, FlowStatus::kReady},   {1'100, FlowStatus::kReady, FlowStatus::kReady},
      {1'101, FlowStatus::kExpired, FlowStatus::kReady},
  };
  const auto flow = fold_of({queue({}, 1'000)}).at(0);
  for (const auto& [clock, compound, openzeppelin] : cases) {
    EXPECT_EQ(status_at(flow, Standard::kCompound, 100, clock), compound) << clock;
    EXPECT_EQ(status_at(flow, Standard::kOpenZeppelin, 100, clock), openzeppelin) << clock;
  }
  const auto ended = fold_of({queue({}, 1'000), event(EventType::kCancelTransaction, {.log = 1})}).at(0);
  EXPECT_EQ(status_at(ended, Standard::kCompound, 100, 2'000), FlowStatus::kCancelled);
}

}  // namespace
}  // namespace fencepost::timelock

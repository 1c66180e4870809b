// What a naive watcher of timelocks gets wrong: one test for each case that the pure model decides.
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "timelock/model/changes.hpp"
#include "timelock/model/event_decoder.hpp"
#include "timelock/model/event_test_support.hpp"
#include "timelock/model/fold.hpp"

namespace fencepost::timelock {
namespace {

using stub::event;
using stub::executed;
using stub::queue;
using stub::scheduled;
using stub::time_of;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::int64_t kGrace = 14 * 86'400;
constexpr std::int64_t kAllConfirmed = std::numeric_limits<std::int64_t>::max();

std::vector<Generation> fold_of(std::vector<RawEvent> events) {
  return fold(events);
}

// What a consumer that knows nothing is told.
std::vector<Change> changes_of(const Generation& flow, Standard standard) {
  return tell({}, flow, {}, 0, kAllConfirmed, kGrace, standard).changes;
}

TEST(cases, c01_a_batch_is_one_flow_with_many_calls_and_one_change) {
  std::vector<RawEvent> events;
  events.reserve(5);
  for (std::int64_t i = 0; i < 5; ++i) events.push_back(scheduled({.log = i}, 60, i));
  const auto flows = fold(events);
  ASSERT_THAT(flows, SizeIs(1));
  ASSERT_THAT(flows[0].calls, SizeIs(5));
  for (std::int64_t i = 0; i < 5; ++i) EXPECT_EQ(flows[0].calls[static_cast<std::size_t>(i)].index, i);
  EXPECT_THAT(changes_of(flows[0], Standard::kOpenZeppelin), SizeIs(1));
}

TEST(cases, c02_many_call_executed_are_one_transition) {
  const auto flows =
      fold_of({scheduled({.block = 1, .log = 0}, 60, 0), scheduled({.block = 1, .log = 1}, 60, 1),
               executed({.block = 9, .log = 3, .tx = "end"}, 0), executed({.block = 9, .log = 4, .tx = "end"}, 1)});
  ASSERT_THAT(flows, SizeIs(1));
  EXPECT_EQ(flows[0].end->position, (Position{9, 3}));
  EXPECT_THAT(changes_of(flows[0], Standard::kOpenZeppelin), SizeIs(2));
}

TEST(cases, c03_several_queues_in_one_transaction_are_as_many_flows) {
  // Each flow is folded by its own id; the decoder takes it from the event, not from the transaction.
  const auto log = [](const std::string& id) {
    const auto word = std::string(64, '0');
    return LogFields{.address = "0x" + std::string(40, 'c'),
                     .topics = {topics_of(Standard::kOpenZeppelin)[3], id},
                     .data = "0x" + word,
                     .tx_hash = stub::hash_of("tx"),
                     .block_hash = stub::hash_of("block")};
  };
  const auto one = decode(Standard::kOpenZeppelin, log(stub::hash_of("one"))).value().value();
  const auto two = decode(Standard::kOpenZeppelin, log(stub::hash_of("two"))).value().value();
  EXPECT_EQ(one.tx_hash, two.tx_hash);
  EXPECT_EQ(one.flow_id, stub::hash_of("one"));
  EXPECT_EQ(two.flow_id, stub::hash_of("two"));
}

TEST(cases, c04_an_empty_batch_and_its_cancel_are_no_flow) {
  EXPECT_THAT(fold_of({stub::salt({.block = 1}), event(EventType::kCancelled, {.block = 5})}), IsEmpty());
  EXPECT_THAT(fold_of({event(EventType::kCancelled, {.block = 5})}), IsEmpty());
}

TEST(cases, c05_the_same_id_after_a_cancel_is_a_new_generation) {
  const auto oz = fold_of({scheduled({.block = 1}, 60), event(EventType::kCancelled, {.block = 2}),
                           scheduled({.block = 3, .tx = "again"}, 60)});
  ASSERT_THAT(oz, SizeIs(2));
  EXPECT_EQ(oz[0].number, 1);
  EXPECT_EQ(oz[0].end->status, FlowStatus::kCancelled);
  EXPECT_EQ(oz[1].number, 2);
  EXPECT_EQ(oz[1].end, std::nullopt);
  const auto compound = fold_of({queue({.block = 1}, 9'000), event(EventType::kCancelTransaction, {.block = 2}),
                                 queue({.block = 3, .tx = "again"}, 9'000)});
  ASSERT_THAT(compound, SizeIs(2));
  EXPECT_EQ(compound[1].queue.tx_hash, stub::hash_of("again"));
}

TEST(cases, c06_the_same_id_after_its_execution_is_a_new_generation) {
  const auto flows = fold_of({queue({.block = 1}, 9'000), event(EventType::kExecuteTransaction, {.block = 2}),
                              queue({.block = 2, .log = 1}, 9'000)});
  ASSERT_THAT(flows, SizeIs(2));
  EXPECT_EQ(flows[0].end->status, FlowStatus::kExecuted);
  EXPECT_EQ(flows[1].end, std::nullopt);
}

TEST(cases, c07_queued_while_queued_is_the_same_generation_and_no_change) {
  const std::vector<RawEvent> once{queue({.block = 1}, 9'000)};
  auto twice = once;
  twice.push_back(queue({.block = 4, .tx = "again"}, 9'000));
  EXPECT_EQ(fold(twice), fold(once));
  EXPECT_THAT(
      tell({FlowStatus::kWaiting}, fold(twice).at(0), {}, 0, kAllConfirmed, kGrace, Standard::kCompound).changes,
      IsEmpty());
}

TEST(cases, c08_a_cancel_of_what_was_never_queued_or_is_executed_changes_nothing) {
  EXPECT_THAT(fold_of({event(EventType::kCancelTransaction, {.block = 5})}), IsEmpty());
  const std::vector<RawEvent> done{queue({.block = 1}, 9'000), event(EventType::kExecuteTransaction, {.block = 2})};
  auto cancelled = done;
  cancelled.push_back(event(EventType::kCancelTransaction, {.block = 3}));
  EXPECT_EQ(fold(cancelled), fold(done));
}

TEST(cases, c09_an_expired_flow_may_be_cancelled) {
  const auto flow = fold_of({queue({.block = 1}, 9'000), event(EventType::kCancelTransaction, {.block = 2})}).at(0);
  const auto out = tell({FlowStatus::kWaiting, FlowStatus::kExpired}, flow, {}, 9'000 + kGrace + 1, kAllConfirmed,
                        kGrace, Standard::kCompound);
  ASSERT_THAT(out.changes, SizeIs(1));
  EXPECT_EQ(out.changes[0].from, FlowStatus::kExpired);
  EXPECT_EQ(out.changes[0].to, FlowStatus::kCancelled);
  EXPECT_TRUE(kFlow.allowed(FlowStatus::kExpired, FlowStatus::kCancelled));
}

TEST(cases, c10_the_last_second_of_grace_is_not_expired) {
  const auto flow = fold_of({queue({}, 9'000)}).at(0);
  const auto at = [&](std::int64_t clock) { return status_at(flow, Standard::kCompound, kGrace, clock); };
  EXPECT_EQ(at(8'999), FlowStatus::kWaiting);
  EXPECT_EQ(at(9'000), FlowStatus::kReady);
  EXPECT_EQ(at(9'000 + kGrace), FlowStatus::kReady);
  EXPECT_EQ(at(9'000 + kGrace + 1), FlowStatus::kExpired);
}

TEST(cases, c11_an_execution_that_is_seen_late_follows_expired) {
  const auto flow = fold_of({queue({.block = 1}, 9'000), event(EventType::kExecuteTransaction, {.block = 2})}).at(0);
  const auto out = tell({FlowStatus::kWaiting, FlowStatus::kReady, FlowStatus::kExpired}, flow, {}, 9'001 + kGrace,
                        kAllConfirmed, kGrace, Standard::kCompound);
  ASSERT_THAT(out.changes, SizeIs(1));
  EXPECT_EQ(out.changes[0].from, FlowStatus::kExpired);
  EXPECT_EQ(out.changes[0].to, FlowStatus::kExecuted);
}

TEST(cases, c12_times_over_64_bits_are_never_ready_and_have_no_due_time) {
  constexpr auto kLatest = std::numeric_limits<std::int64_t>::max();
  const auto compound = fold_of({queue({}, Uint256(1) << 255)}).at(0);
  EXPECT_EQ(compound.eta, Uint256(1) << 255);
  EXPECT_EQ(due_time(compound.eta), std::nullopt);
  EXPECT_EQ(status_at(compound, Standard::kCompound, kGrace, kLatest), FlowStatus::kWaiting);
  const auto oz = fold_of({scheduled({.block = 1}, Uint256(1) << 64)}).at(0);
  EXPECT_EQ(oz.eta, (Uint256(1) << 64) + time_of(1));
  EXPECT_EQ(status_at(oz, Standard::kOpenZeppelin, kGrace, kLatest), FlowStatus::kWaiting);
  EXPECT_EQ(status_at(compound, Standard::kCompound, std::numeric_limits<Uint256>::max(), kLatest),
            FlowStatus::kWaiting);
}

TEST(cases, c13_eta_is_absolute_and_delay_relative_and_both_are_seconds) {
  EXPECT_EQ(fold_of({queue({.block = 7}, 1'700'000'000'000)}).at(0).eta, Uint256(1'700'000'000'000));
  EXPECT_EQ(fold_of({scheduled({.block = 7}, 172'800)}).at(0).eta, time_of(7) + 172'800);
}

TEST(cases, c14_a_ready_flow_is_blocked_by_its_predecessor) {
  auto second = scheduled({.block = 1}, 0);
  second.predecessor = stub::hash_of("first");
  const auto flow = fold_of({second}).at(0);
  EXPECT_EQ(status_at(flow, Standard::kOpenZeppelin, 0, time_of(1)), FlowStatus::kReady);
  EXPECT_TRUE(is_blocked(flow, std::nullopt));
  for (const auto status : {FlowStatus::kWaiting, FlowStatus::kReady, FlowStatus::kCancelled}) {
    EXPECT_TRUE(is_blocked(flow, status));
  }
  EXPECT_FALSE(is_blocked(flow, FlowStatus::kExecuted));
  EXPECT_FALSE(is_blocked(fold_of({scheduled({}, 0)}).at(0), std::nullopt));
  EXPECT_FALSE(is_blocked(fold_of({queue({}, 0)}).at(0), std::nullopt));
  EXPECT_FALSE(is_blocked(fold_of({second, executed({.block = 2})}).at(0), std::nullopt));
}

TEST(cases, c18_a_schedule_that_is_mined_again_later_has_a_later_eta) {
  const auto before = fold_of({scheduled({.block = 5}, 100)}).at(0);
  const auto after = fold_of({scheduled({.block = 8}, 100)}).at(0);
  EXPECT_EQ(before.eta, time_of(5) + 100);
  EXPECT_EQ(after.eta, time_of(8) + 100);
  // It was told as ready, and is not ready any more.
  const auto out = tell({FlowStatus::kWaiting, FlowStatus::kReady}, after, {.ready_at = time_of(5) + 100},
                        time_of(5) + 100, kAllConfirmed, 0, Standard::kOpenZeppelin);
  ASSERT_THAT(out.changes, SizeIs(1));
  EXPECT_TRUE(out.changes[0].retracted);
  EXPECT_EQ(out.changes[0].to, FlowStatus::kReady);
  EXPECT_EQ(out.changes[0].changed_at, time_of(5) + 100);
  EXPECT_EQ(out.status, FlowStatus::kWaiting);
}

TEST(cases, c19_an_execution_that_is_seen_before_its_queue_counts_once_the_queue_is_seen) {
  const auto end = event(EventType::kExecuteTransaction, {.block = 9});
  EXPECT_THAT(fold_of({end}), IsEmpty());
  const auto flows = fold_of({end, queue({.block = 2}, 9'000)});
  ASSERT_THAT(flows, SizeIs(1));
  EXPECT_EQ(flows[0].end->status, FlowStatus::kExecuted);
  // Within one block, the index of the log decides.
  EXPECT_THAT(fold_of({queue({.block = 2, .log = 5}, 9), event(EventType::kCancelTransaction, {.block = 2, .log = 4})})
                  .at(0)
                  .end,
              std::nullopt);
}

TEST(cases, c22_a_change_by_time_is_made_once) {
  const auto flow = fold_of({queue({}, 9'000)}).at(0);
  std::vector<FlowStatus> told{FlowStatus::kWaiting};
  const auto ready = ready_change(told, flow, 9'000, kGrace, Standard::kCompound);
  ASSERT_TRUE(ready);
  told.push_back(ready->to);
  EXPECT_EQ(ready_change(told, flow, 9'000, kGrace, Standard::kCompound), std::nullopt);
  EXPECT_THAT(tell(told, flow, {}, 9'000, kAllConfirmed, kGrace, Standard::kCompound).changes, IsEmpty());
}

TEST(cases, c27_addresses_are_lowercase_or_refused) {
  auto log = LogFields{.address = "0x" + std::string(40, 'C'),
                       .topics = {topics_of(Standard::kOpenZeppelin)[3], stub::hash_of("id")},
                       .data = "0x",
                       .tx_hash = stub::hash_of("tx"),
                       .block_hash = stub::hash_of("block")};
  EXPECT_FALSE(decode(Standard::kOpenZeppelin, log));
  log.address = "0x" + std::string(40, 'c');
  EXPECT_EQ(decode(Standard::kOpenZeppelin, log).value()->contract, log.address);
}

TEST(cases, c29_a_new_minimum_delay_leaves_queued_operations_as_they_are) {
  const std::vector<RawEvent> before{scheduled({.block = 1}, 100)};
  auto after = before;
  after.push_back(event(EventType::kMinDelayChange, {.block = 2}));
  after.push_back(event(EventType::kNewDelay, {.block = 3}));
  EXPECT_EQ(fold(after), fold(before));
}

}  // namespace
}  // namespace fencepost::timelock

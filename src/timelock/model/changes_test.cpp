#include "timelock/model/changes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "timelock/model/event_test_support.hpp"

namespace fencepost::timelock {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Path = std::vector<FlowStatus>;

constexpr auto kWaiting = FlowStatus::kWaiting;
constexpr auto kReady = FlowStatus::kReady;
constexpr auto kExecuted = FlowStatus::kExecuted;
constexpr auto kCancelled = FlowStatus::kCancelled;
constexpr auto kExpired = FlowStatus::kExpired;

constexpr std::int64_t kQueueBlock = 10;
constexpr std::int64_t kEndBlock = 20;
constexpr std::int64_t kEta = 1'000;
constexpr std::int64_t kGrace = 100;
constexpr std::int64_t kBefore = kEta - 1;          // not ready
constexpr std::int64_t kDuring = kEta;              // ready
constexpr std::int64_t kAfter = kEta + kGrace + 1;  // expired
const ToldFacts kFacts{"0xqueue", 11, kEta, kEta + kGrace, "0xend", 22};

std::optional<Generation> flow(std::optional<FlowStatus> end = {}) {
  Generation out{.queue = {.position = {kQueueBlock, 0}, .tx_hash = "0xqueue2", .timestamp = 12}, .eta = kEta};
  if (end) out.end = EndFacts{.status = *end, .position = {kEndBlock, 0}, .tx_hash = "0xend2", .timestamp = 23};
  return out;
}

Outcome tell_at(const Path& told, const std::optional<Generation>& now, std::int64_t clock, std::int64_t confirmed,
                Standard standard = Standard::kCompound) {
  return tell(told, now, kFacts, clock, confirmed, kGrace, standard);
}

Change told_waiting() {
  return {.from = {}, .to = kWaiting, .tx_hash = "0xqueue2", .changed_at = 12};
}
Change told_end(FlowStatus from, FlowStatus to) {
  return {.from = from, .to = to, .tx_hash = "0xend2", .changed_at = 23};
}
Change retracted(std::optional<FlowStatus> from, FlowStatus to) {
  Change out{.from = from, .to = to, .retracted = true};
  if (to == kWaiting) out.tx_hash = "0xqueue", out.changed_at = 11;
  if (to == kReady) out.changed_at = kEta;
  if (to == kExpired) out.changed_at = kEta + kGrace;
  if (to == kExecuted || to == kCancelled) out.tx_hash = "0xend", out.changed_at = 22;
  return out;
}

// Each row of the header's tables: what stays told.
TEST(changes, a_told_status_stays_while_it_is_true) {
  const struct {
    Path told;
    std::optional<FlowStatus> end;
    std::int64_t clock;
  } cases[] = {
      {{kWaiting}, {}, kBefore},
      {{kWaiting, kReady}, {}, kDuring},
      {{kWaiting, kReady, kExpired}, {}, kAfter},
      {{kWaiting, kExpired}, {}, kAfter},
      {{kWaiting, kExecuted}, kExecuted, kBefore},
      {{kWaiting, kReady, kExecuted}, kExecuted, kDuring},
      {{kWaiting, kReady, kExecuted}, kExecuted, kBefore},  // ready under an end that is still there
      {{kWaiting, kReady, kExpired, kExecuted}, kExecuted, kBefore},
      {{kWaiting, kReady, kCancelled}, kCancelled, kDuring},
      {{kWaiting, kExpired, kCancelled}, kCancelled, kAfter},
  };
  for (const auto& [told, end, clock] : cases) {
    SCOPED_TRACE(testing::Message() << kFlow.name(told.back()) << " after " << told.size() << " at " << clock);
    // Neither block is confirmed any more: the events have moved to newer blocks.
    const auto out = tell_at(told, flow(end), clock, 0);
    EXPECT_THAT(out.changes, IsEmpty());
    EXPECT_EQ(out.told, told);
    EXPECT_EQ(out.status, told.back());
    EXPECT_TRUE(out.confirmed);
    EXPECT_EQ(out.next_block, std::nullopt);
  }
}

// Each row of the header's tables: what is retracted.
TEST(changes, a_told_status_that_is_no_longer_true_is_retracted) {
  const struct {
    Path told;
    std::optional<Generation> now;
    std::int64_t clock;
    std::vector<Change> changes;
    Path after;
  } cases[] = {
      // The queue event is gone.
      {{kWaiting}, {}, kBefore, {retracted({}, kWaiting)}, {}},
      {{kWaiting, kReady}, {}, kDuring, {retracted(kWaiting, kReady), retracted({}, kWaiting)}, {}},
      {{kWaiting, kReady, kExecuted},
       {},
       kDuring,
       {retracted(kReady, kExecuted), retracted(kWaiting, kReady), retracted({}, kWaiting)},
       {}},
      {{kWaiting, kExpired, kCancelled},
       {},
       kAfter,
       {retracted(kExpired, kCancelled), retracted(kWaiting, kExpired), retracted({}, kWaiting)},
       {}},
      // The clock went back, or eta moved.
      {{kWaiting, kReady}, flow(), kBefore, {retracted(kWaiting, kReady)}, {kWaiting}},
      {{kWaiting, kReady, kExpired}, flow(), kDuring, {retracted(kReady, kExpired)}, {kWaiting, kReady}},
      {{kWaiting, kReady, kExpired},
       flow(),
       kBefore,
       {retracted(kReady, kExpired), retracted(kWaiting, kReady)},
       {kWaiting}},
      {{kWaiting, kExpired}, flow(), kDuring, {retracted(kWaiting, kExpired)}, {kWaiting}},
      // The end is gone, and what was below it is looked at again.
      {{kWaiting, kExecuted}, flow(), kBefore, {retracted(kWaiting, kExecuted)}, {kWaiting}},
      {{kWaiting, kReady, kCancelled}, flow(), kDuring, {retracted(kReady, kCancelled)}, {kWaiting, kReady}},
      {{kWaiting, kReady, kCancelled},
       flow(),
       kBefore,
       {retracted(kReady, kCancelled), retracted(kWaiting, kReady)},
       {kWaiting}},
  };
  for (const auto& [told, now, clock, changes, after] : cases) {
    SCOPED_TRACE(testing::Message() << kFlow.name(told.back()) << " after " << told.size() << " at " << clock);
    const auto out = tell_at(told, now, clock, 100);
    EXPECT_EQ(out.changes, changes);
    EXPECT_EQ(out.told, after);
    EXPECT_EQ(out.confirmed, now.has_value());
    EXPECT_EQ(out.status, after.empty() ? kWaiting : after.back());
    EXPECT_EQ(out.next_block, std::nullopt);
  }
}

// Each row of the header's tables: what is told.
TEST(changes, what_is_confirmed_is_told_once) {
  const struct {
    std::string_view what;
    Path told;
    std::optional<FlowStatus> end;
    std::int64_t confirmed;
    std::vector<Change> changes;
    Path after;
    FlowStatus status;
    bool is_confirmed;
    std::optional<std::int64_t> next_block;
  } cases[] = {
      {"queued, not confirmed", {}, {}, 9, {}, {}, kWaiting, false, kQueueBlock},
      {"queued, confirmed", {}, {}, 10, {told_waiting()}, {kWaiting}, kWaiting, true, {}},
      {"queued, told already", {kWaiting}, {}, 10, {}, {kWaiting}, kWaiting, true, {}},
      {"ended, nothing confirmed", {}, kExecuted, 9, {}, {}, kExecuted, false, kQueueBlock},
      {"ended, queue confirmed", {}, kExecuted, 19, {told_waiting()}, {kWaiting}, kExecuted, false, kEndBlock},
      {"ended, end not confirmed", {kWaiting}, kCancelled, 19, {}, {kWaiting}, kCancelled, false, kEndBlock},
      {"ended, both confirmed at once",
       {},
       kExecuted,
       20,
       {told_waiting(), told_end(kWaiting, kExecuted)},
       {kWaiting, kExecuted},
       kExecuted,
       true,
       {}},
      {"from waiting",
       {kWaiting},
       kCancelled,
       20,
       {told_end(kWaiting, kCancelled)},
       {kWaiting, kCancelled},
       kCancelled,
       true,
       {}},
      {"from ready",
       {kWaiting, kReady},
       kExecuted,
       20,
       {told_end(kReady, kExecuted)},
       {kWaiting, kReady, kExecuted},
       kExecuted,
       true,
       {}},
      {"from expired",
       {kWaiting, kReady, kExpired},
       kCancelled,
       20,
       {told_end(kExpired, kCancelled)},
       {kWaiting, kReady, kExpired, kCancelled},
       kCancelled,
       true,
       {}},
      {"complete", {kWaiting, kExecuted}, kExecuted, 20, {}, {kWaiting, kExecuted}, kExecuted, true, {}},
  };
  for (const auto& row : cases) {
    SCOPED_TRACE(row.what);
    const auto out = tell_at(row.told, flow(row.end), kAfter, row.confirmed);
    EXPECT_EQ(out.changes, row.changes);
    EXPECT_EQ(out.told, row.after);
    EXPECT_EQ(out.status, row.status);
    EXPECT_EQ(out.confirmed, row.is_confirmed);
    EXPECT_EQ(out.next_block, row.next_block);
  }
}

TEST(changes, another_end_replaces_the_told_one_and_waits_for_its_own_confirmation) {
  const auto early = tell_at({kWaiting, kReady, kExecuted}, flow(kCancelled), kDuring, 19);
  EXPECT_THAT(early.changes, ElementsAre(retracted(kReady, kExecuted)));
  EXPECT_EQ(early.status, kCancelled);
  EXPECT_FALSE(early.confirmed);
  EXPECT_EQ(early.next_block, kEndBlock);

  const auto late = tell_at({kWaiting, kReady, kExecuted}, flow(kCancelled), kDuring, 20);
  EXPECT_THAT(late.changes, ElementsAre(retracted(kReady, kExecuted), told_end(kReady, kCancelled)));
  EXPECT_EQ(late.told, (Path{kWaiting, kReady, kCancelled}));
}

TEST(changes, ready_comes_by_time_after_waiting_was_told) {
  const auto at = [](const Path& told, const std::optional<Generation>& now, std::int64_t clock) {
    return ready_change(told, *now, clock, kGrace, Standard::kCompound);
  };
  const Change ready{.from = kWaiting, .to = kReady, .changed_at = kEta};
  EXPECT_EQ(at({kWaiting}, flow(), kDuring), ready);
  EXPECT_EQ(at({kWaiting}, flow(), kDuring + kGrace), ready);
  EXPECT_EQ(at({kWaiting}, flow(), kBefore), std::nullopt);
  EXPECT_EQ(at({kWaiting}, flow(), kAfter), std::nullopt);
  EXPECT_EQ(at({}, flow(), kDuring), std::nullopt);
  EXPECT_EQ(at({kWaiting, kReady}, flow(), kDuring), std::nullopt);
  EXPECT_EQ(at({kWaiting}, flow(kExecuted), kDuring), std::nullopt);
  EXPECT_EQ(ready_change({kWaiting}, *flow(), kAfter, kGrace, Standard::kOpenZeppelin), ready);
}

TEST(changes, expired_comes_by_time_and_only_for_compound) {
  const auto at = [](const Path& told, const std::optional<Generation>& now, std::int64_t clock,
                     Standard standard = Standard::kCompound) {
    return expired_change(told, *now, clock, kGrace, standard);
  };
  const auto from = [](FlowStatus status) {
    return Change{.from = status, .to = kExpired, .changed_at = kEta + kGrace};
  };
  EXPECT_EQ(at({kWaiting, kReady}, flow(), kAfter), from(kReady));
  EXPECT_EQ(at({kWaiting}, flow(), kAfter), from(kWaiting));
  EXPECT_EQ(at({kWaiting, kReady}, flow(), kAfter - 1), std::nullopt);
  EXPECT_EQ(at({}, flow(), kAfter), std::nullopt);
  EXPECT_EQ(at({kWaiting, kExpired}, flow(), kAfter), std::nullopt);
  EXPECT_EQ(at({kWaiting, kReady}, flow(kCancelled), kAfter), std::nullopt);
  EXPECT_EQ(at({kWaiting, kReady}, flow(), kAfter, Standard::kOpenZeppelin), std::nullopt);
}

TEST(changes, facts_follow_what_was_told) {
  const auto facts =
      facts_after({}, {{.from = {}, .to = kWaiting, .tx_hash = "q", .changed_at = 1},
                       {.from = kWaiting, .to = kReady, .changed_at = 2},
                       {.from = kReady, .to = kExpired, .changed_at = 3},
                       {.from = kExpired, .to = kCancelled, .tx_hash = "e", .changed_at = 4},
                       {.from = {}, .to = kWaiting, .retracted = true, .tx_hash = "x", .changed_at = 9}});
  EXPECT_EQ(facts, (ToldFacts{"q", 1, 2, 3, "e", 4}));
}

}  // namespace
}  // namespace fencepost::timelock

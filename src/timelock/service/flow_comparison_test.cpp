#include "timelock/service/flow_comparison.hpp"

#include <algorithm>
#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "timelock/model/event_test_support.hpp"

namespace fencepost::timelock {
namespace {

using stub::executed;
using stub::queue;
using stub::scheduled;
using stub::time_of;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::int64_t kEta = time_of(1'000);

// An id as the scanner leaves it at a block: folded and stored.
FlowInput stored_at(std::vector<RawEvent> events, const ChainView& view) {
  FlowInput input{.key = {events.front().standard, 1, events.front().contract, events.front().flow_id},
                  .events = std::move(events),
                  .stored = {},
                  .grace = 100,
                  .may_tell = true};
  input.stored = process_compound_flow(input, view).rows;
  return input;
}

ChainView at_block(std::int64_t block, std::int64_t confirmations = 0) {
  return {.block = block, .clock = time_of(block), .confirmations = confirmations};
}

std::vector<std::string> named(const std::vector<Difference>& differences) {
  std::vector<std::string> out;
  out.reserve(differences.size());
  for (const auto& one : differences) out.push_back(one.what + ": " + one.stored + " / " + one.expected);
  return out;
}

std::vector<std::string> differences(const FlowInput& input, const ChainView& view) {
  return named(compare_with_events(input, view));
}

TEST(flow_comparison, what_the_scanner_stored_has_no_difference) {
  for (const auto& events : {std::vector{queue({.block = 1}, kEta)}, std::vector{scheduled({.block = 1}, 50)},
                             std::vector{scheduled({.block = 1}, 50), executed({.block = 9, .tx = "end"})}}) {
    const auto input = stored_at(events, at_block(10));
    ASSERT_EQ(input.stored.size(), 1U);
    EXPECT_THAT(differences(input, at_block(10)), IsEmpty());
    EXPECT_THAT(differences(input, at_block(11)), IsEmpty());
  }
}

TEST(flow_comparison, each_member_that_was_changed_is_named) {
  const auto good = stored_at({queue({.block = 1}, kEta)}, at_block(10));
  const struct {
    void (*corrupt)(FlowRow&);
    std::string difference;
  } cases[] = {
      {[](FlowRow& row) { row.status = FlowStatus::kReady; }, "status: ready / waiting"},
      {[](FlowRow& row) { row.removed = true; }, "removed: true / false"},
      {[](FlowRow& row) { row.initiator = "0x0"; }, "initiatorAddress: 0x0 / 0x" + std::string(40, 'a')},
      {[](FlowRow& row) { row.via.reset(); }, "viaAddress: none / 0x" + std::string(40, 'b')},
      {[](FlowRow& row) { row.eta += 1; }, "eta: 1700010001 / 1700010000"},
      {[](FlowRow& row) { row.delay = 3; }, "delay: 3 / none"},
      {[](FlowRow& row) { row.predecessor = "0x1"; }, "predecessor: 0x1 / none"},
      {[](FlowRow& row) { row.due_at.reset(); }, "dueAt: none / 2023-11-15T01:00:00.000000Z"},
      {[](FlowRow& row) { row.expired_at.reset(); }, "expiredAt: none / 2023-11-15T01:01:40.000000Z"},
      {[](FlowRow& row) { row.queue_tx_hash = "0x1"; }, "queueTxHash: 0x1 / " + stub::hash_of("tx")},
      {[](FlowRow& row) { row.queue_block = 2; }, "queueBlock: 2 / 1"},
      {[](FlowRow& row) { row.end_tx_hash = "0x1"; }, "endTxHash: 0x1 / none"},
      {[](FlowRow& row) { row.calls = 2; }, "callCount: 2 / 1"},
      {[](FlowRow& row) { row.confirmed = false; }, "confirmed: false / true"},
  };
  for (const auto& c : cases) {
    auto bad = good;
    c.corrupt(bad.stored.front());
    EXPECT_THAT(differences(bad, at_block(10)), ElementsAre(c.difference));
  }
}

TEST(flow_comparison, a_missing_and_an_extra_generation_are_named) {
  auto input = stored_at({queue({.block = 1}, kEta)}, at_block(10));
  auto extra = input.stored.front();
  extra.generation = 2;
  input.stored.push_back(extra);
  EXPECT_THAT(differences(input, at_block(10)), ElementsAre("extra: waiting / none: no event queued it"));
  input.stored.clear();
  EXPECT_THAT(differences(input, at_block(10)), ElementsAre("missing: none / waiting"));
}

TEST(flow_comparison, a_flow_that_a_reorg_removed_is_no_difference) {
  auto input = stored_at({queue({.block = 1}, kEta)}, at_block(10));
  input.events.clear();
  input.stored = process_compound_flow(input, at_block(10)).rows;
  ASSERT_TRUE(input.stored.front().removed);
  EXPECT_THAT(differences(input, at_block(10)), IsEmpty());
}

TEST(flow_comparison, an_announcement_that_still_waits_is_no_difference_and_one_that_was_lost_is) {
  // Stored while 12 blocks had to follow; the setting was lowered since.
  auto input = stored_at({queue({.block = 1}, kEta)}, at_block(10, 12));
  ASSERT_TRUE(input.stored.front().told.empty());
  ASSERT_TRUE(input.stored.front().tell_block);
  EXPECT_THAT(differences(input, at_block(10, 3)), IsEmpty());
  EXPECT_THAT(differences(input, at_block(50, 12)), IsEmpty());
  input.stored.front().tell_block.reset();
  EXPECT_THAT(differences(input, at_block(50, 12)), ElementsAre("told: nothing / waiting", "confirmed: false / true"));
}

TEST(flow_comparison, an_announcement_that_never_was_true_is_named) {
  auto input = stored_at({queue({.block = 1}, kEta)}, at_block(10));
  input.stored.front().told = {FlowStatus::kWaiting, FlowStatus::kCancelled};
  EXPECT_THAT(differences(input, at_block(10)), ElementsAre("told: waiting, cancelled / waiting"));
}

TEST(flow_comparison, a_status_by_time_may_lag) {
  const auto input = stored_at({queue({.block = 1}, kEta)}, at_block(10));
  const auto& row = input.stored.front();
  EXPECT_FALSE(is_lagging(row, kEta - 1));
  EXPECT_TRUE(is_lagging(row, kEta));
  EXPECT_THAT(differences(input, at_block(1'000)), IsEmpty());
  auto ready = row;
  ready.status = FlowStatus::kReady;
  EXPECT_FALSE(is_lagging(ready, kEta + 100));
  EXPECT_TRUE(is_lagging(ready, kEta + 101));
}

TEST(flow_comparison, the_question_has_the_selector_and_the_id) {
  FlowKey key{Standard::kCompound, 1, "0xc", "0x" + std::string(64, '1')};
  EXPECT_EQ(contract_question(key), "0xf2b06537" + std::string(64, '1'));
  key.standard = Standard::kOpenZeppelin;
  EXPECT_EQ(contract_question(key), "0xd45c4435" + std::string(64, '1'));
}

TEST(flow_comparison, the_contract_agrees_with_these_statuses_only) {
  const struct {
    Standard standard;
    Uint256 answer;
    std::vector<FlowStatus> agrees;
  } cases[] = {
      {Standard::kCompound, 0, {FlowStatus::kExecuted, FlowStatus::kCancelled}},
      {Standard::kCompound, 1, {FlowStatus::kWaiting, FlowStatus::kReady, FlowStatus::kExpired}},
      {Standard::kOpenZeppelin, 0, {FlowStatus::kCancelled}},
      {Standard::kOpenZeppelin, 1, {FlowStatus::kExecuted}},
      {Standard::kOpenZeppelin, 500, {FlowStatus::kWaiting, FlowStatus::kReady}},
      {Standard::kOpenZeppelin, 501, {}},
  };
  for (const auto& c : cases) {
    for (const auto status : {FlowStatus::kWaiting, FlowStatus::kReady, FlowStatus::kExecuted, FlowStatus::kCancelled,
                              FlowStatus::kExpired}) {
      if (c.standard == Standard::kOpenZeppelin && status == FlowStatus::kExpired) continue;
      const FlowRow row{.key = {c.standard, 1, "0xc", "0x1"}, .status = status, .eta = 500};
      const bool agrees = std::ranges::find(c.agrees, status) != c.agrees.end();
      EXPECT_EQ(compare_with_contract(std::array{row}, c.answer).has_value(), !agrees)
          << kStandards.name(c.standard) << " " << kFlow.name(status) << " " << to_decimal(c.answer);
    }
  }
}

TEST(flow_comparison, the_contract_is_compared_with_the_newest_generation_that_exists) {
  const FlowKey key{Standard::kOpenZeppelin, 1, "0xc", "0x1"};
  const FlowRow first{.key = key, .generation = 1, .status = FlowStatus::kCancelled};
  const FlowRow second{.key = key, .generation = 2, .status = FlowStatus::kWaiting, .eta = 500};
  EXPECT_FALSE(compare_with_contract(std::array{first, second}, 500));
  EXPECT_EQ(named({*compare_with_contract(std::array{first, second}, 0)}),
            std::vector<std::string>{"contract: waiting, eta 500 / the contract does not know it: cancelled"});
  auto removed = second;
  removed.removed = true;
  EXPECT_FALSE(compare_with_contract(std::array{first, removed}, 0));
  EXPECT_FALSE(compare_with_contract(std::array{removed}, 0));
  EXPECT_TRUE(compare_with_contract(std::array{removed}, 500));
  EXPECT_FALSE(compare_with_contract({}, 500));
}

}  // namespace
}  // namespace fencepost::timelock

#include "timelock/store/history_store.hpp"

#include <gtest/gtest.h>

namespace fencepost::timelock {
namespace {

Watched contract(std::string address, std::int64_t next, std::int64_t last) {
  return {
      .address = std::move(address), .standard = {}, .history_next = next, .history_last = last, .rules_wanted = {}};
}

TEST(next_history, is_nothing_when_all_are_complete) {
  EXPECT_FALSE(next_history({}));
  EXPECT_FALSE(next_history({contract("a", 11, 10)}));
}

TEST(next_history, begins_with_the_contract_that_is_furthest_behind_and_ends_where_another_joins) {
  for (const auto& contracts : {std::vector{contract("a", 5, 100), contract("b", 50, 80)},
                                std::vector{contract("b", 50, 80), contract("a", 5, 100)}}) {
    const auto range = next_history(contracts).value();
    EXPECT_EQ(range.addresses, std::vector<std::string>{"a"});
    EXPECT_EQ(range.first, 5);
    EXPECT_EQ(range.last, 49);
  }
}

TEST(next_history, contracts_at_the_same_block_share_a_range_up_to_the_first_end) {
  const auto range =
      next_history({contract("a", 50, 100), contract("b", 50, 80), contract("c", 90, 95), contract("d", 3, 2)}).value();
  EXPECT_EQ(range.addresses, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(range.first, 50);
  EXPECT_EQ(range.last, 80);
}

// Whatever the order, following the ranges scans each block of each contract once.
TEST(next_history, ranges_cover_every_block_of_every_contract_once) {
  std::vector<Watched> contracts{contract("a", 10, 30), contract("b", 1, 12), contract("c", 10, 29),
                                 contract("d", 28, 40)};
  std::map<std::string, std::vector<std::int64_t>> scanned;
  for (int steps = 0; steps < 100; ++steps) {
    const auto range = next_history(contracts);
    if (!range) break;
    ASSERT_LE(range->first, range->last);
    for (auto& one : contracts) {
      if (std::ranges::find(range->addresses, one.address) == range->addresses.end()) continue;
      for (auto block = range->first; block <= range->last; ++block) scanned[one.address].push_back(block);
      one.history_next = range->last + 1;
    }
  }
  for (const auto& [address, first, last] : std::vector<std::tuple<std::string, std::int64_t, std::int64_t>>{
           {"a", 10, 30}, {"b", 1, 12}, {"c", 10, 29}, {"d", 28, 40}}) {
    std::vector<std::int64_t> all;
    for (auto block = first; block <= last; ++block) all.push_back(block);
    EXPECT_EQ(scanned[address], all) << address;
  }
}

}  // namespace
}  // namespace fencepost::timelock

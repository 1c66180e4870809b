#include "tx/model/confirmations.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "tx/model/stub_chain_test_support.hpp"

namespace fencepost::tx {
namespace {

// Blocks first … last of the branch `name`.
std::vector<BlockRef> branch(std::string name, std::int64_t first, std::int64_t last) {
  std::vector<BlockRef> out;
  for (auto i = first; i <= last; ++i) out.push_back({i, name + std::to_string(i), name + std::to_string(i - 1)});
  return out;
}

Announced told(std::string hash, std::int64_t number) {
  return {AnnouncedBlock{number, std::move(hash)}, false};
}

struct Consumer {
  std::vector<BlockRef> list;

  void hear(const Announcement& announcement) {
    if (announcement.new_fork) list.clear();
    list.insert(list.end(), announcement.headers.begin(), announcement.headers.end());
  }
};

TEST(confirmations, announces_the_whole_list_first_and_then_only_new_blocks) {
  const auto list = branch("a", 5, 8);
  const auto first = next_announcement(list, {});
  ASSERT_TRUE(first);
  EXPECT_FALSE(first->new_fork);
  EXPECT_EQ(first->headers.size(), 4U);
  EXPECT_EQ(first->then, told("a8", 8));
  EXPECT_FALSE(next_announcement(list, first->then));
  const auto longer = branch("a", 5, 10);
  const auto more = next_announcement(longer, first->then);
  ASSERT_TRUE(more);
  EXPECT_FALSE(more->new_fork);
  ASSERT_EQ(more->headers.size(), 2U);
  EXPECT_EQ(more->headers[0].hash, "a9");
}

TEST(confirmations, announces_a_new_fork_when_the_list_does_not_begin_with_the_announced_blocks) {
  const auto list = branch("b", 5, 9);
  for (const auto& before : {told("a8", 8), told("a9", 9), told("a10", 10), told("b4", 4), told("b10", 10)}) {
    const auto announcement = next_announcement(list, before);
    ASSERT_TRUE(announcement) << before.last->hash;
    EXPECT_TRUE(announcement->new_fork) << before.last->hash;
    EXPECT_EQ(announcement->headers.size(), list.size());
    EXPECT_EQ(announcement->then, told("b9", 9));
  }
}

TEST(confirmations, a_vanished_receipt_empties_the_list_and_makes_the_next_one_a_new_fork) {
  const auto gone = next_announcement({}, told("a8", 8));
  ASSERT_TRUE(gone);
  EXPECT_TRUE(gone->new_fork);
  EXPECT_TRUE(gone->headers.empty());
  EXPECT_EQ(gone->then, (Announced{std::nullopt, true}));
  EXPECT_FALSE(next_announcement({}, gone->then));
  const auto list = branch("b", 6, 7);
  const auto again = next_announcement(list, gone->then);
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->new_fork);
  EXPECT_EQ(again->headers.size(), 2U);
  EXPECT_EQ(again->then, told("b7", 7));
}

TEST(confirmations, an_unannounced_withdrawal_makes_the_same_blocks_a_new_fork) {
  const auto list = branch("a", 5, 8);
  auto before = told("a8", 8);
  before.withdrawn = true;
  const auto announcement = next_announcement(list, before);
  ASSERT_TRUE(announcement);
  EXPECT_TRUE(announcement->new_fork);
  EXPECT_EQ(announcement->headers.size(), 4U);
  EXPECT_FALSE(announcement->then.withdrawn);
}

TEST(confirmations, announces_nothing_before_the_first_receipt) {
  EXPECT_FALSE(next_announcement({}, {}));
}

TEST(confirmations, refuses_a_list_that_is_not_one_branch) {
  auto mixed = branch("a", 5, 8);
  mixed[2].parent_hash = "b6";
  EXPECT_THROW(next_announcement(mixed, {}), Exception);
  auto gap = branch("a", 5, 8);
  gap.erase(gap.begin() + 1);
  EXPECT_THROW(next_announcement(gap, {}), Exception);
}

// One transaction on a chain with reorgs of any depth, watched alternately by nodes that lag.
class Follow {
 public:
  explicit Follow(std::uint64_t seed) : dice_(seed), chain_(dice_, 6) {}

  void step() {
    if (dice_.chance(20)) chain_.broadcast({"t", 0, true});
    if (dice_.chance(15)) {
      chain_.reorg(static_cast<std::int64_t>(dice_.below(7)));
    } else {
      chain_.mine();
    }
    if (dice_.chance(50)) look(dice_.chance(70) ? chain_.head() : chain_.any_view());
  }

  std::size_t forks = 0;
  std::size_t increments = 0;
  std::size_t withdrawals = 0;

 private:
  void look(const stub::Head& view) {
    const auto list = list_on(view);
    if (const auto announcement = next_announcement(list, told_)) {
      forks += announcement->new_fork && !list.empty() ? 1 : 0;
      withdrawals += list.empty() ? 1 : 0;
      increments += announcement->new_fork ? 0 : 1;
      consumer_.hear(*announcement);
      told_ = announcement->then;
    }
    EXPECT_EQ(consumer_.list, list);
    EXPECT_EQ(told_.last.has_value(), !list.empty());
  }
  static std::vector<BlockRef> list_on(const stub::Head& view) {
    const auto receipt = stub::locate(view, [](const auto& one) { return one.hash == "t"; });
    auto list = stub::walk(view);
    const auto below = [&](const BlockRef& one) { return !receipt.block || one.number < receipt.block->number; };
    std::erase_if(list, below);
    return list;
  }

  stub::Dice dice_;
  stub::Chain chain_;
  Announced told_;
  Consumer consumer_;
};

TEST(confirmations, a_consumer_always_holds_exactly_the_nodes_list) {
  std::size_t forks = 0;
  std::size_t increments = 0;
  std::size_t withdrawals = 0;
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Follow follow(seed);
    for (int i = 0; i < 60 && !testing::Test::HasFailure(); ++i) follow.step();
    if (testing::Test::HasFailure()) return;
    forks += follow.forks;
    increments += follow.increments;
    withdrawals += follow.withdrawals;
  }
  EXPECT_GT(forks, 500U);
  EXPECT_GT(increments, 500U);
  EXPECT_GT(withdrawals, 100U);
}

}  // namespace
}  // namespace fencepost::tx

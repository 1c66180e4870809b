#include "tx/workers/missing_receipts.hpp"

#include <gtest/gtest.h>

namespace fencepost::tx {
namespace {

using namespace std::chrono_literals;

struct MissingReceiptsTest : testing::Test {
  Metrics metrics;
  MissingReceipts missing{"dev", metrics};
  MissingReceipts::TimePoint now{1h};

  std::vector<std::string> due() { return missing.take_due(now, 100).hashes; }
};

TEST_F(MissingReceiptsTest, is_due_at_once_and_then_with_growing_delays) {
  missing.add("0xa", {7, "0xb7"});
  EXPECT_EQ(due().size(), 1U);
  for (const auto wait : {1s, 2s, 4s, 8s, 16s, 30s, 30s}) {
    now += wait - 1ms;
    EXPECT_TRUE(due().empty()) << wait.count();
    now += 1ms;
    EXPECT_EQ(due(), std::vector<std::string>{"0xa"}) << wait.count();
  }
}

TEST_F(MissingReceiptsTest, each_round_of_lookups_has_its_own_number) {
  missing.add("0xa", {7, "0xb7"});
  EXPECT_EQ(missing.take_due(now, 100).round, 0U);
  EXPECT_EQ(missing.take_due(now, 100).round, 1U) << "nothing was due, nothing was asked";
  now += 1min;
  EXPECT_EQ(missing.take_due(now, 100).round, 1U);
  now += 1min;
  EXPECT_EQ(missing.take_due(now, 100).round, 2U);
}

TEST_F(MissingReceiptsTest, takes_no_more_than_asked_for_and_forgets_none) {
  for (int i = 0; i < 10; ++i) missing.add("0x" + std::to_string(i), {7, "0xb7"});
  EXPECT_EQ(missing.take_due(now, 4).hashes.size(), 4U);
  EXPECT_EQ(missing.take_due(now, 100).hashes.size(), 6U);
  EXPECT_EQ(missing.size(), 10U);
}

TEST_F(MissingReceiptsTest, forgets_what_a_reorg_replaced_and_keeps_what_is_below_the_window) {
  evm::HeaderWindow window(4);
  ASSERT_TRUE(window.apply(std::vector<evm::BlockHeader>{{.number = 7, .hash = "0xb7", .parent_hash = "0xb6"}}));
  missing.add("0xa", {7, "0xb7"});
  missing.add("0xb", {7, "0xa7"});
  missing.add("0xc", {3, "0xa3"});
  missing.forget_dead(window);
  EXPECT_EQ(missing.size(), 2U);
  missing.remove("0xa");
  EXPECT_EQ(due(), std::vector<std::string>{"0xc"});
}

}  // namespace
}  // namespace fencepost::tx

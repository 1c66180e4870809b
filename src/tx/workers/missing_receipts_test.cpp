#include "tx/workers/missing_receipts.hpp"

#include <gtest/gtest.h>

namespace fencepost::tx {
namespace {

using namespace std::chrono_literals;

struct MissingReceiptsTest : testing::Test {
  Metrics metrics;
  MissingReceipts missing{"dev", metrics};
  MissingReceipts::TimePoint now{1h};

  std::vector<std::string> due() {
    std::vector<std::string> hashes;
    for (const auto& one : missing.take_due(now, 100)) hashes.push_back(one.tx_hash);
    return hashes;
  }
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

TEST_F(MissingReceiptsTest, counts_the_tries_of_each_receipt_by_itself) {
  missing.add("0xa", {7, "0xb7"});
  EXPECT_EQ(missing.take_due(now, 100).front().tries, 0U);
  now += 500ms;
  missing.add("0xb", {7, "0xb7"});
  EXPECT_EQ(missing.take_due(now, 100).front().tries, 0U) << "0xb alone is due";
  now += 500ms;
  EXPECT_EQ(missing.take_due(now, 100).front().tries, 1U) << "0xa alone is due";
  now += 1min;
  const auto both = missing.take_due(now, 100);
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(both[0].tx_hash, "0xb") << "due since 59.5 s, 0xa since 58 s";
  EXPECT_EQ(both[0].tries, 1U);
  EXPECT_EQ(both[1].tries, 2U);
}

TEST_F(MissingReceiptsTest, takes_no_more_than_asked_for_and_forgets_none) {
  for (int i = 0; i < 10; ++i) missing.add("0x" + std::to_string(i), {7, "0xb7"});
  EXPECT_EQ(missing.take_due(now, 4).size(), 4U);
  EXPECT_EQ(missing.take_due(now, 100).size(), 6U);
  EXPECT_EQ(missing.size(), 10U);
}

TEST_F(MissingReceiptsTest, knows_the_block_until_the_receipt_is_there) {
  EXPECT_EQ(missing.find("0xa"), std::nullopt);
  missing.add("0xa", {7, "0xb7"});
  EXPECT_EQ(missing.find("0xa"), (evm::Listing{7, "0xb7"}));
  missing.remove("0xa");
  EXPECT_EQ(missing.find("0xa"), std::nullopt);
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

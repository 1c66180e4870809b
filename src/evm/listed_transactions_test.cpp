#include "evm/listed_transactions.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace fencepost::evm {
namespace {

std::string hash_of(std::uint64_t number) {
  return fmt::format("0x{:016x}{:048x}", number, 7);
}

Block block(std::int64_t number, const std::string& hash, const std::string& parent,
            std::vector<std::string> transactions) {
  return {.header = {.number = number, .hash = hash, .parent_hash = parent}, .transactions = std::move(transactions)};
}

TEST(listed_transactions, finds_the_block_of_a_transaction) {
  ListedTransactions listed;
  listed.add(block(7, "0xa7", "0xa6", {hash_of(3), hash_of(1), hash_of(2)}));
  listed.add(block(8, "0xa8", "0xa7", {hash_of(4)}));
  EXPECT_EQ(listed.find(hash_of(2)), (Listing{7, "0xa7"}));
  EXPECT_EQ(listed.find(hash_of(4)), (Listing{8, "0xa8"}));
  EXPECT_EQ(listed.find(hash_of(5)), std::nullopt);
}

TEST(listed_transactions, knows_what_a_block_does_not_list) {
  ListedTransactions listed;
  listed.add(block(7, "0xa7", "0xa6", {hash_of(1)}));
  EXPECT_EQ(listed.lists(7, "0xa7", hash_of(1)), true);
  EXPECT_EQ(listed.lists(7, "0xa7", hash_of(2)), false);
  EXPECT_EQ(listed.lists(7, "0xb7", hash_of(1)), std::nullopt);
  EXPECT_EQ(listed.lists(8, "0xa8", hash_of(1)), std::nullopt);
}

TEST(listed_transactions, replacing_a_block_removes_its_transactions) {
  ListedTransactions listed;
  listed.add(block(7, "0xa7", "0xa6", {hash_of(1)}));
  listed.add(block(7, "0xb7", "0xa6", {hash_of(2)}));
  EXPECT_EQ(listed.find(hash_of(1)), std::nullopt);
  EXPECT_EQ(listed.find(hash_of(2)), (Listing{7, "0xb7"}));
}

TEST(listed_transactions, keeps_only_the_blocks_of_the_window) {
  HeaderWindow window(2);
  ListedTransactions listed;
  const std::vector branch{block(7, "0xa7", "0xa6", {hash_of(1)}), block(8, "0xa8", "0xa7", {hash_of(2)}),
                           block(9, "0xa9", "0xa8", {hash_of(3)})};
  for (const auto& one : branch) {
    listed.add(one);
    ASSERT_TRUE(window.apply(std::vector{one.header}));
  }
  listed.keep_only(window);
  EXPECT_EQ(listed.blocks(), 2U);
  EXPECT_EQ(listed.find(hash_of(1)), std::nullopt) << "below the window";

  // A shorter branch: block 9 is gone, block 8 is another one.
  const auto other = block(8, "0xb8", "0xa7", {hash_of(4)});
  window.clear();
  ASSERT_TRUE(window.apply(std::vector{other.header}));
  listed.add(other);
  listed.keep_only(window);
  EXPECT_EQ(listed.find(hash_of(2)), std::nullopt);
  EXPECT_EQ(listed.find(hash_of(3)), std::nullopt);
  EXPECT_EQ(listed.find(hash_of(4)), (Listing{8, "0xb8"}));
}

}  // namespace
}  // namespace fencepost::evm

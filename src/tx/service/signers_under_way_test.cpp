#include "tx/service/signers_under_way.hpp"

#include <gtest/gtest.h>

namespace fencepost::tx {
namespace {

using Highest = std::unordered_map<std::string, std::int64_t>;

TEST(signers_under_way, a_signer_is_under_way_until_its_last_transaction_ends) {
  SignersUnderWay signers;
  EXPECT_FALSE(signers.contains("a"));
  signers.begin("a", 2, 6);
  signers.begin("a", 1, 7);
  signers.begin("b", 1, 3);
  EXPECT_EQ(signers.highest(), (Highest{{"a", 7}, {"b", 3}}));
  EXPECT_FALSE(signers.end("a", 2));
  EXPECT_TRUE(signers.contains("a"));
  EXPECT_FALSE(signers.end("a", 1));
  EXPECT_FALSE(signers.contains("a"));
  EXPECT_EQ(signers.highest(), (Highest{{"b", 3}}));
}

TEST(signers_under_way, a_signer_is_held_until_nothing_of_it_is_under_way) {
  SignersUnderWay signers;
  signers.begin("a", 1, 6);
  signers.begin("a", 1, 7);
  signers.begin("b", 1, 3);
  signers.hold("a");
  EXPECT_FALSE(signers.end("a", 1));
  EXPECT_TRUE(signers.held("a"));
  EXPECT_TRUE(signers.draining("a"));
  EXPECT_FALSE(signers.held("b"));
  EXPECT_FALSE(signers.end("a", 1));
  signers.begin("a", 1, 6);
  EXPECT_FALSE(signers.held("a"));
  EXPECT_FALSE(signers.draining("a"));
}

TEST(signers_under_way, a_requested_look_happens_once_after_the_last_transaction) {
  SignersUnderWay signers;
  signers.begin("a", 2, 6);
  signers.look_later("a");
  EXPECT_TRUE(signers.draining("a"));
  EXPECT_FALSE(signers.held("a"));
  EXPECT_FALSE(signers.end("a", 1));
  EXPECT_TRUE(signers.end("a", 1));
  signers.begin("a", 1, 7);
  EXPECT_FALSE(signers.end("a", 1));
}

TEST(signers_under_way, a_signer_that_is_not_under_way_is_neither_held_nor_looked_up_later) {
  SignersUnderWay signers;
  signers.hold("a");
  signers.look_later("a");
  signers.begin("a", 1, 0);
  EXPECT_FALSE(signers.draining("a"));
  EXPECT_FALSE(signers.end("a", 1));
}

}  // namespace
}  // namespace fencepost::tx

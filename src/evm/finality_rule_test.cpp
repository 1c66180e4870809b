#include "evm/finality_rule.hpp"

#include <gtest/gtest.h>

namespace fencepost::evm {
namespace {

TEST(finality_rule, is_parsed_and_printed_in_the_same_form) {
  for (const auto* text : {"1", "20", "100000", "safe", "finalized"}) {
    const auto rule = parse_finality_rule(text);
    ASSERT_TRUE(rule) << text;
    EXPECT_EQ(to_string(*rule), text);
  }
}

TEST(finality_rule, anything_else_is_refused) {
  for (const auto* text : {"", "0", "01", "-1", "+1", "100001", "99999999999", "1.5", "20 ", "Safe", "latest"}) {
    const auto rule = parse_finality_rule(text);
    ASSERT_FALSE(rule) << text;
    EXPECT_EQ(rule.error().code, "bad_finality");
  }
}

TEST(finality_rule, depth_counts_the_blocks_on_top) {
  EXPECT_EQ(final_by_depth(120, 20), 100);
  EXPECT_EQ(final_by_depth(20, 20), 0);
  EXPECT_EQ(final_by_depth(19, 20), std::nullopt);
  EXPECT_EQ(final_by_depth(5, 0), 5);
}

}  // namespace
}  // namespace fencepost::evm

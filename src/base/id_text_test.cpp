#include "base/id_text.hpp"

#include <limits>

#include <gtest/gtest.h>

namespace fencepost {
namespace {

TEST(id_text, is_decimal_digits_up_to_63_bits) {
  EXPECT_EQ(parse_id("0"), 0);
  EXPECT_EQ(parse_id("7"), 7);
  EXPECT_EQ(parse_id("123456789012345678"), 123456789012345678);
  EXPECT_EQ(parse_id("9223372036854775807"), std::numeric_limits<std::int64_t>::max());
}

TEST(id_text, has_one_spelling) {
  for (const auto* bad : {"", "00", "007", "+7", "-0", "-7", " 7", "7 ", "7.0", "0x7", "7e1", "٧",
                          "9223372036854775808", "99999999999999999999999"}) {
    EXPECT_EQ(parse_id(bad), std::nullopt) << bad;
  }
}

}  // namespace
}  // namespace fencepost

#include "cli/amount.hpp"

#include <limits>

#include <gtest/gtest.h>

namespace fencepost::cli {
namespace {

TEST(amount, is_read_with_and_without_a_unit) {
  struct Case {
    std::string text;
    std::string wei;
  };
  const Case cases[] = {
      {"0", "0"},
      {"1000", "1000"},
      {"0x3e8", "1000"},
      {"7wei", "7"},
      {"30gwei", "30000000000"},
      {"0.000000001gwei", "1"},
      {"1ether", "1000000000000000000"},
      {"1.5ether", "1500000000000000000"},
      {"0.1ether", "100000000000000000"},
      {"0ether", "0"},
      {"0.0ether", "0"},
      {"0.000000000000000001ether", "1"},
      {"115792089237316195423570985008687907853269984665640564039457584007913129639935",
       "115792089237316195423570985008687907853269984665640564039457584007913129639935"},
  };
  for (const auto& c : cases) {
    const auto wei = parse_amount(c.text);
    ASSERT_TRUE(wei.has_value()) << c.text << ": " << wei.error().message;
    EXPECT_EQ(to_decimal(*wei), c.wei) << c.text;
  }
}

TEST(amount, text_that_is_not_an_amount_is_refused) {
  for (const auto* text : {"", "ether", ".5ether", "1.ether", "1.5", "1.5wei", "01ether", "00.1ether", "1e18", "-1",
                           "+1", "1 ether", "1.0000000000000000001ether", "1.2.3ether", "0x1gwei",
                           "115792089237316195423570985008687907853269984665640564039457584007913129639936",
                           "200000000000000000000000000000000000000000000000000000000000ether"}) {
    const auto wei = parse_amount(text);
    ASSERT_FALSE(wei.has_value()) << text << " is " << to_decimal(*wei);
    EXPECT_EQ(wei.error().code, "bad_amount");
  }
  EXPECT_FALSE(parse_amount(std::string(200, '1')).has_value());
}

TEST(amount, is_written_in_ether_unless_it_is_tiny) {
  EXPECT_EQ(amount_text(0), "0 wei");
  EXPECT_EQ(amount_text(999'999'999'999), "999999999999 wei");
  EXPECT_EQ(amount_text(1'000'000'000'000), "0.000001 ether");
  EXPECT_EQ(amount_text(Uint256("1500000000000000000")), "1.5 ether");
  EXPECT_EQ(amount_text(Uint256("2000000000000000000")), "2 ether");
  EXPECT_EQ(amount_text(Uint256("12345000000000000000001")), "12345.000000000000000001 ether");
}

}  // namespace
}  // namespace fencepost::cli

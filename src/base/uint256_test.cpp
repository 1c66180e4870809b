#include "base/uint256.hpp"

#include <numeric>

#include <gtest/gtest.h>

#include "base/random.hpp"

namespace fencepost {
namespace {

const std::string kLargest = "115792089237316195423570985008687907853269984665640564039457584007913129639935";
const std::string kOneMore = "115792089237316195423570985008687907853269984665640564039457584007913129639936";

TEST(uint256, reads_and_writes_both_forms) {
  struct Case {
    std::string decimal;
    std::string quantity;
  };
  const Case cases[] = {
      {"0", "0x0"},
      {"1", "0x1"},
      {"10", "0xa"},
      {"18446744073709551616", "0x10000000000000000"},
      {"1000000000000000000", "0xde0b6b3a7640000"},
      {kLargest, "0x" + std::string(64, 'f')},
  };
  for (const auto& c : cases) {
    const auto from_decimal = parse_decimal(c.decimal);
    const auto from_quantity = parse_quantity(c.quantity);
    ASSERT_TRUE(from_decimal && from_quantity) << c.decimal;
    EXPECT_EQ(*from_decimal, *from_quantity) << c.decimal;
    EXPECT_EQ(to_decimal(*from_quantity), c.decimal);
    EXPECT_EQ(to_quantity(*from_decimal), c.quantity);
    EXPECT_EQ(parse_uint256(c.decimal), from_decimal);
    EXPECT_EQ(parse_uint256(c.quantity), from_decimal);
  }
  EXPECT_EQ(parse_quantity("0xABCdef"), Uint256(0xabcdef));
}

TEST(uint256, refuses_everything_else) {
  struct Case {
    std::string text;
    std::string message;
  };
  const Case cases[] = {
      {"", "expected decimal or 0x string, got \"\""},
      {"010", "expected decimal or 0x string, got \"010\": leading zero"},
      {"00", "expected decimal or 0x string, got \"00\": leading zero"},
      {"0x", "expected decimal or 0x string, got \"0x\""},
      {"0x01", "expected decimal or 0x string, got \"0x01\": leading zero"},
      {"0x00", "expected decimal or 0x string, got \"0x00\": leading zero"},
      {"0XA", "expected decimal or 0x string, got \"0XA\""},
      {"0xg", "expected decimal or 0x string, got \"0xg\""},
      {"-1", "expected decimal or 0x string, got \"-1\""},
      {"+1", "expected decimal or 0x string, got \"+1\""},
      {" 1", "expected decimal or 0x string, got \" 1\""},
      {"1 ", "expected decimal or 0x string, got \"1 \""},
      {"1.0", "expected decimal or 0x string, got \"1.0\""},
      {"1e3", "expected decimal or 0x string, got \"1e3\""},
      {"1_000", "expected decimal or 0x string, got \"1_000\""},
      {std::string("1\0", 2), "expected decimal or 0x string, got \"1\\x00\""},
      {kOneMore, "expected decimal or 0x string, got \"" + kOneMore + "\": over 256 bits"},
      {std::string(200, '9'), "expected decimal or 0x string, got \"" + std::string(80, '9') + "…\": over 256 bits"},
      {"0x1" + std::string(64, '0'),
       "expected decimal or 0x string, got \"0x1" + std::string(64, '0') + "\": over 256 bits"},
  };
  for (const auto& c : cases) {
    const auto result = parse_uint256(c.text);
    ASSERT_FALSE(result.has_value()) << c.text;
    EXPECT_EQ(result.error().code, "bad_uint256");
    EXPECT_EQ(result.error().message, c.message);
  }
  EXPECT_EQ(parse_decimal("0xa").error().message, "expected a decimal number, got \"0xa\"");
  EXPECT_EQ(parse_quantity("10").error().message, "expected a 0x number, got \"10\"");
}

TEST(uint256, converts_to_32_bytes_and_back) {
  std::array<std::uint8_t, 32> counting;
  std::iota(counting.begin(), counting.end(), std::uint8_t{1});
  EXPECT_EQ(to_quantity(from_big_endian(counting)),
            "0x102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20");
  EXPECT_EQ(to_big_endian(from_big_endian(counting)), counting);
  std::array<std::uint8_t, 32> one{};
  EXPECT_EQ(to_big_endian(Uint256(0)), one);
  one.back() = 1;
  EXPECT_EQ(to_big_endian(Uint256(1)), one);
  EXPECT_EQ(from_big_endian(one), Uint256(1));
}

TEST(uint256, every_form_survives_a_round_trip) {
  SeededRandom random(1);
  for (int i = 0; i < 2000; ++i) {
    std::array<std::uint8_t, 32> bytes;
    random.fill(std::as_writable_bytes(std::span(bytes)));
    const auto zeros = random.next() % 33;
    std::fill_n(bytes.begin(), zeros, std::uint8_t{0});
    const auto value = from_big_endian(bytes);
    ASSERT_EQ(to_big_endian(value), bytes);
    ASSERT_EQ(parse_decimal(to_decimal(value)), value);
    ASSERT_EQ(parse_quantity(to_quantity(value)), value);
  }
}

TEST(uint256, arithmetic_does_not_wrap) {
  const auto largest = *parse_decimal(kLargest);
  EXPECT_THROW(static_cast<void>(Uint256(largest + 1)), std::overflow_error);
  EXPECT_THROW(static_cast<void>(Uint256(Uint256(0) - 1)), std::range_error);
}

}  // namespace
}  // namespace fencepost

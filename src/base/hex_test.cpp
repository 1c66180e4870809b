#include "base/hex.hpp"

#include <gtest/gtest.h>

namespace fencepost {
namespace {

TEST(hex, encodes_in_lowercase) {
  EXPECT_EQ(to_hex(Bytes{0x00, 0xab, 0x0f, 0xff}), "00ab0fff");
  EXPECT_EQ(to_hex0x(Bytes{0x00, 0xab}), "0x00ab");
  EXPECT_EQ(to_hex({}), "");
  EXPECT_EQ(to_hex0x({}), "0x");
}

TEST(hex, decodes_what_it_encodes) {
  Bytes every(256);
  for (std::size_t i = 0; i < every.size(); ++i) every[i] = static_cast<std::uint8_t>(i);
  EXPECT_EQ(from_hex(to_hex(every)), every);
  EXPECT_EQ(from_hex0x(to_hex0x(every)), every);
  EXPECT_EQ(from_hex("ABcd"), (Bytes{0xab, 0xcd}));
  EXPECT_EQ(from_hex0x("0x"), Bytes{});
}

TEST(hex, says_what_is_wrong_and_where) {
  struct Case {
    std::string_view text;
    bool prefixed;
    std::string_view message;
  };
  const Case cases[] = {
      {"abc", false, "expected an even number of hex digits, got 3"},
      {"0x123", true, "expected an even number of hex digits, got 3"},
      {"abzz", false, "\"z\" at position 2 is not a hex digit"},
      {"0xab\ncd1", true, "\"\\n\" at position 4 is not a hex digit"},
      {"0xab", false, "\"x\" at position 1 is not a hex digit"},
      {"abcd", true, "expected 0x and hex digits, got \"abcd\""},
      {"0Xab", true, "expected 0x and hex digits, got \"0Xab\""},
      {"", true, "expected 0x and hex digits, got \"\""},
      {"0x g", true, "\" \" at position 2 is not a hex digit"},
  };
  for (const auto& c : cases) {
    const auto result = c.prefixed ? from_hex0x(c.text) : from_hex(c.text);
    ASSERT_FALSE(result.has_value()) << c.text;
    EXPECT_EQ(result.error().kind, ErrorKind::kInvalid) << c.text;
    EXPECT_EQ(result.error().code, "bad_hex") << c.text;
    EXPECT_EQ(result.error().message, c.message) << c.text;
  }
}

TEST(hex, decodes_into_a_fixed_size_only_when_it_fits) {
  EXPECT_EQ(from_hex0x_fixed<2>("0x1234"), (std::array<std::uint8_t, 2>{0x12, 0x34}));
  EXPECT_EQ(from_hex0x_fixed<2>("0x12").error().message, "expected 4 hex digits, got 2");
  EXPECT_EQ(from_hex0x_fixed<2>("0x123456").error().message, "expected 4 hex digits, got 6");
  std::array<std::uint8_t, 1> out;
  EXPECT_TRUE(decode_hex("7f", out).has_value());
  EXPECT_EQ(out[0], 0x7f);
  EXPECT_FALSE(decode_hex("0x7f", out).has_value());
}

TEST(hex, knows_canonical_addresses_and_hashes) {
  const std::string address = "0x" + std::string(38, '0') + "af";
  const std::string hash = "0x" + std::string(62, '0') + "af";
  EXPECT_TRUE(is_address(address));
  EXPECT_TRUE(is_hash32(hash));
  EXPECT_FALSE(is_address(hash));
  EXPECT_FALSE(is_hash32(address));
  EXPECT_FALSE(is_address("0x" + std::string(38, '0') + "aF"));
  EXPECT_FALSE(is_address("0X" + std::string(40, '0')));
  EXPECT_FALSE(is_address(std::string(42, '0')));
  EXPECT_FALSE(is_address(address + "0"));
  EXPECT_FALSE(is_address(""));
  EXPECT_TRUE(check_address(address).has_value());
  EXPECT_EQ(check_address("0xAB").error().message, "expected 0x and 40 lowercase hex digits, got \"0xAB\"");
  EXPECT_EQ(check_address("0xAB").error().code, "bad_address");
}

}  // namespace
}  // namespace fencepost

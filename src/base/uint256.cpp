#include "base/uint256.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "base/text.hpp"

namespace fencepost {
namespace {

constexpr std::string_view kLargest = "115792089237316195423570985008687907853269984665640564039457584007913129639935";
constexpr std::size_t kQuantityDigits = 64;
constexpr std::size_t kShown = 80;  // the longest valid text has 78 characters

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_hex_digit(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

Error bad(std::string_view expected, std::string_view text, std::string_view reason = {}) {
  return invalid("bad_uint256", fmt::format("expected {}, got {}{}{}", expected, quote(text, kShown),
                                            reason.empty() ? "" : ": ", reason));
}

Result<Uint256> read_decimal(std::string_view text, std::string_view expected) {
  if (text.empty() || !std::ranges::all_of(text, is_digit)) return fail(bad(expected, text));
  if (text.size() > 1 && text.front() == '0') return fail(bad(expected, text, "leading zero"));
  if (text.size() > kLargest.size() || (text.size() == kLargest.size() && text > kLargest)) {
    return fail(bad(expected, text, "over 256 bits"));
  }
  return Uint256(std::string(text));
}

Result<Uint256> read_quantity(std::string_view text, std::string_view expected) {
  if (!text.starts_with("0x")) return fail(bad(expected, text));
  const auto digits = text.substr(2);
  if (digits.empty() || !std::ranges::all_of(digits, is_hex_digit)) return fail(bad(expected, text));
  if (digits.size() > 1 && digits.front() == '0') return fail(bad(expected, text, "leading zero"));
  if (digits.size() > kQuantityDigits) return fail(bad(expected, text, "over 256 bits"));
  return Uint256(std::string(text));
}

}  // namespace

Result<Uint256> parse_decimal(std::string_view text) {
  return read_decimal(text, "a decimal number");
}

Result<Uint256> parse_quantity(std::string_view text) {
  return read_quantity(text, "a 0x number");
}

Result<Uint256> parse_uint256(std::string_view text) {
  constexpr std::string_view kExpected = "decimal or 0x string";
  return text.starts_with("0x") ? read_quantity(text, kExpected) : read_decimal(text, kExpected);
}

std::string to_decimal(const Uint256& value) {
  return value.str();
}

std::string to_quantity(const Uint256& value) {
  return value.str(0, std::ios_base::hex | std::ios_base::showbase);
}

std::array<std::uint8_t, 32> to_big_endian(const Uint256& value) {
  std::array<std::uint8_t, 32> reversed{};
  boost::multiprecision::export_bits(value, reversed.begin(), 8, false);  // least significant first, zeros left out
  std::ranges::reverse(reversed);
  return reversed;
}

Uint256 from_big_endian(std::span<const std::uint8_t, 32> bytes) {
  Uint256 value;
  boost::multiprecision::import_bits(value, bytes.begin(), bytes.end(), 8, true);
  return value;
}

}  // namespace fencepost

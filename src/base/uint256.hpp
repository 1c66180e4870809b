// 256-bit numbers. Arithmetic on Uint256 throws on overflow instead of wrapping. Text is checked before it is
// converted, because Boost.Multiprecision reads "010" as octal and "" as 0, and truncates numbers over 256 bits.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <boost/multiprecision/cpp_int.hpp>

#include "base/error.hpp"

namespace fencepost {

using Uint256 = boost::multiprecision::checked_uint256_t;

// "0" or digits without a leading zero, up to 2^256 - 1. All errors here are kInvalid "bad_uint256".
Result<Uint256> parse_decimal(std::string_view text);
// "0x0" or 0x and hex digits of either case without a leading zero: an Ethereum quantity.
Result<Uint256> parse_quantity(std::string_view text);
// Either form; clients may send amounts in either.
Result<Uint256> parse_uint256(std::string_view text);

std::string to_decimal(const Uint256& value);
std::string to_quantity(const Uint256& value);

// 32 bytes, most significant first, as in the EVM.
std::array<std::uint8_t, 32> to_big_endian(const Uint256& value);
Uint256 from_big_endian(std::span<const std::uint8_t, 32> bytes);

}  // namespace fencepost

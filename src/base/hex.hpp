// Bytes as hexadecimal text, strictly: what cannot be decoded says where and why.
//
// Encoding is always lowercase, the form in which addresses and hashes are stored and compared. Decoding takes
// digits of either case. "hex0x" means with the prefix 0x, which is then required; "hex" means without, and
// then a prefix is an error.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace fencepost {

using Bytes = std::vector<std::uint8_t>;

std::string to_hex(std::span<const std::uint8_t> bytes);
std::string to_hex0x(std::span<const std::uint8_t> bytes);

// Errors, all kInvalid "bad_hex": no 0x where one is due, odd number of digits, not a digit (with its position).
Result<Bytes> from_hex(std::string_view text);
Result<Bytes> from_hex0x(std::string_view text);

// Also "bad_hex" unless the text has exactly as many digits as `out` needs.
Result<void> decode_hex(std::string_view text, std::span<std::uint8_t> out);
Result<void> decode_hex0x(std::string_view text, std::span<std::uint8_t> out);

template <std::size_t N>
Result<std::array<std::uint8_t, N>> from_hex0x_fixed(std::string_view text) {
  std::array<std::uint8_t, N> out;
  if (auto decoded = decode_hex0x(text, out); !decoded) return fail(std::move(decoded).error());
  return out;
}

// 0x and 40 or 64 lowercase digits: the canonical form. Checksummed (mixed-case) addresses are for evm/ to check.
bool is_address(std::string_view text);
bool is_hash32(std::string_view text);

// The same with a reason: kInvalid "bad_address".
Result<void> check_address(std::string_view text);

}  // namespace fencepost

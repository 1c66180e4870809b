// Bytes as hexadecimal text. Decoding is strict, and its errors say where the text is wrong and why.
//
// Encoding is always lowercase, the form in which addresses and hashes are stored and compared. Decoding takes
// digits of either case. Functions named "hex0x" write and require the prefix 0x; those named "hex" neither write
// nor accept it.
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

// Errors, all kInvalid "bad_hex": a missing 0x, an odd number of digits, a wrong character (with its position).
Result<Bytes> from_hex(std::string_view text);
Result<Bytes> from_hex0x(std::string_view text);

// The same errors, and "bad_hex" when the number of digits is not exactly twice the size of `out`.
Result<void> decode_hex(std::string_view text, std::span<std::uint8_t> out);
Result<void> decode_hex0x(std::string_view text, std::span<std::uint8_t> out);

template <std::size_t N>
Result<std::array<std::uint8_t, N>> from_hex0x_fixed(std::string_view text) {
  std::array<std::uint8_t, N> out;
  if (auto decoded = decode_hex0x(text, out); !decoded) return fail(std::move(decoded).error());
  return out;
}

// Whether the text is in canonical form: 0x and 40 (address) or 64 (hash) lowercase hex digits. evm/ checks checksummed
// (mixed-case) addresses.
bool is_address(std::string_view text);
bool is_hash32(std::string_view text);

// Like is_address, but returns the reason: kInvalid "bad_address".
Result<void> check_address(std::string_view text);

}  // namespace fencepost

#include "base/hex.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "base/text.hpp"

namespace fencepost {
namespace {

constexpr std::string_view kPrefix = "0x";

std::optional<std::uint8_t> digit_value(char c) {
  if (c >= '0' && c <= '9') return static_cast<std::uint8_t>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<std::uint8_t>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<std::uint8_t>(c - 'A' + 10);
  return std::nullopt;
}

bool is_lower_digit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

Error bad_hex(std::string reason) {
  return invalid("bad_hex", std::move(reason));
}

// `offset` is where the digits start in the full text, so that reported positions refer to the full text.
Result<void> decode_digits(std::string_view digits, std::size_t offset, std::span<std::uint8_t> out) {
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const auto value = digit_value(digits[i]);
    if (!value) {
      return fail(bad_hex(fmt::format("{} at position {} is not a hex digit", quote(digits.substr(i, 1)), i + offset)));
    }
    auto& byte = out[i / 2];
    byte = static_cast<std::uint8_t>(i % 2 == 0 ? *value << 4 : byte | *value);
  }
  return {};
}

Result<std::string_view> without_prefix(std::string_view text) {
  if (!text.starts_with(kPrefix)) {
    return fail(bad_hex(fmt::format("expected 0x and hex digits, got {}", quote(text))));
  }
  return text.substr(kPrefix.size());
}

Result<Bytes> decode_all(std::string_view digits, std::size_t offset) {
  if (digits.size() % 2 != 0) {
    return fail(bad_hex(fmt::format("expected an even number of hex digits, got {}", digits.size())));
  }
  Bytes out(digits.size() / 2);
  if (auto decoded = decode_digits(digits, offset, out); !decoded) return fail(std::move(decoded).error());
  return out;
}

Result<void> decode_exactly(std::string_view digits, std::size_t offset, std::span<std::uint8_t> out) {
  if (digits.size() != out.size() * 2) {
    return fail(bad_hex(fmt::format("expected {} hex digits, got {}", out.size() * 2, digits.size())));
  }
  return decode_digits(digits, offset, out);
}

void append_hex(std::string& out, std::span<const std::uint8_t> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  for (const auto byte : bytes) {
    out += kDigits[byte >> 4];
    out += kDigits[byte & 0xf];
  }
}

bool is_canonical(std::string_view text, std::size_t digits) {
  return text.size() == kPrefix.size() + digits && text.starts_with(kPrefix) &&
         std::ranges::all_of(text.substr(kPrefix.size()), is_lower_digit);
}

}  // namespace

std::string to_hex(std::span<const std::uint8_t> bytes) {
  std::string out;
  out.reserve(bytes.size() * 2);
  append_hex(out, bytes);
  return out;
}

std::string to_hex0x(std::span<const std::uint8_t> bytes) {
  std::string out(kPrefix);
  out.reserve(kPrefix.size() + bytes.size() * 2);
  append_hex(out, bytes);
  return out;
}

Result<Bytes> from_hex(std::string_view text) {
  return decode_all(text, 0);
}

Result<Bytes> from_hex0x(std::string_view text) {
  const auto digits = without_prefix(text);
  if (!digits) return fail(digits.error());
  return decode_all(*digits, kPrefix.size());
}

Result<void> decode_hex(std::string_view text, std::span<std::uint8_t> out) {
  return decode_exactly(text, 0, out);
}

Result<void> decode_hex0x(std::string_view text, std::span<std::uint8_t> out) {
  const auto digits = without_prefix(text);
  if (!digits) return fail(digits.error());
  return decode_exactly(*digits, kPrefix.size(), out);
}

bool is_address(std::string_view text) {
  return is_canonical(text, 40);
}
bool is_hash32(std::string_view text) {
  return is_canonical(text, 64);
}

Result<void> check_address(std::string_view text) {
  if (is_address(text)) return {};
  return fail(invalid("bad_address", fmt::format("expected 0x and 40 lowercase hex digits, got {}", quote(text, 80))));
}

}  // namespace fencepost

#include "evm/address.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.hpp"
#include "evm/keccak.hpp"
#include "evm/rlp.hpp"

namespace fencepost::evm {
namespace {

constexpr std::size_t kShown = 80;

bool is_upper(char c) {
  return c >= 'A' && c <= 'F';
}
bool is_lower(char c) {
  return c >= 'a' && c <= 'f';
}

}  // namespace

Result<std::string> parse_address(std::string_view text) {
  const auto bytes = from_hex0x_fixed<20>(text);
  if (!bytes) {
    return fail(invalid("bad_address", fmt::format("expected 0x and 40 hex digits, got {}", quote(text, kShown))));
  }
  auto stored = address_text(*bytes);
  const auto digits = text.substr(2);
  const bool mixed = std::ranges::any_of(digits, is_upper) && std::ranges::any_of(digits, is_lower);
  if (mixed && checksum_address(stored) != text) {
    return fail(invalid("bad_checksum", fmt::format("the checksum of {} is wrong: compare it with its source, or write "
                                                    "it in lowercase",
                                                    text)));
  }
  return stored;
}

std::string checksum_address(std::string_view lowercase) {
  if (auto checked = check_address(lowercase); !checked) throw Exception(std::move(checked).error());
  const auto hash = keccak256(lowercase.substr(2));
  std::string out(lowercase);
  for (std::size_t i = 0; i < 40; ++i) {
    const auto nibble = i % 2 == 0 ? hash[i / 2] >> 4 : hash[i / 2] & 0xf;
    auto& digit = out[i + 2];
    if (nibble >= 8 && is_lower(digit)) digit = static_cast<char>(digit - 'a' + 'A');
  }
  return out;
}

Address address_bytes(std::string_view lowercase) {
  if (auto checked = check_address(lowercase); !checked) throw Exception(std::move(checked).error());
  return from_hex0x_fixed<20>(lowercase).value();
}

std::string address_text(const Address& address) {
  return to_hex0x(address);
}

Address contract_address(const Address& creator, std::uint64_t nonce) {
  Bytes fields;
  rlp::append_bytes(fields, creator);
  rlp::append_integer(fields, nonce);
  const auto hash = keccak256(rlp::list(fields));
  Address address;
  std::ranges::copy(std::span(hash).last<20>(), address.begin());
  return address;
}

}  // namespace fencepost::evm

#include "evm/reply/reply_fields.hpp"

#include <algorithm>
#include <charconv>

#include "base/hex.hpp"

namespace fencepost::evm::reply {
namespace {

bool is_data(std::string_view lowercase) {
  if (!lowercase.starts_with("0x") || lowercase.size() % 2 != 0) return false;
  return std::ranges::all_of(lowercase.substr(2),
                             [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

}  // namespace

Error bad_result(std::string message) {
  return unavailable("bad_rpc_result", std::move(message));
}

std::string_view text_of(ondemand::value value, std::string_view member) {
  std::string_view text;
  if (value.get_string().get(text) != simdjson::SUCCESS) throw BadShape{fmt::format("{} is not a string", member)};
  return text;
}

std::string hash_of(ondemand::value value, std::string_view member) {
  const auto text = text_of(value, member);
  auto hash = lowercase(text);
  if (!is_hash32(hash)) throw BadShape{fmt::format("{} is not a hash: {}", member, quote(text))};
  return hash;
}

std::string address_of(ondemand::value value, std::string_view member) {
  const auto text = text_of(value, member);
  auto address = lowercase(text);
  if (!is_address(address)) throw BadShape{fmt::format("{} is not an address: {}", member, quote(text))};
  return address;
}

std::string data_of(ondemand::value value, std::string_view member) {
  const auto text = text_of(value, member);
  auto data = lowercase(text);
  if (!text.starts_with("0x") || !is_data(data)) {
    throw BadShape{fmt::format("{} is not data: {}", member, quote(text))};
  }
  return data;
}

Uint256 uint256_of(ondemand::value value, std::string_view member) {
  const auto text = text_of(value, member);
  auto number = parse_quantity(text);
  if (!number) throw BadShape{fmt::format("{} is not a quantity: {}", member, quote(text))};
  return std::move(*number);
}

std::int64_t int64_of(ondemand::value value, std::string_view member) {
  const auto text = text_of(value, member);
  const auto digits = text.substr(std::min<std::size_t>(2, text.size()));
  std::int64_t number = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number, 16);
  const bool leading_zero = digits.size() > 1 && digits.front() == '0';
  if (error == std::errc::result_out_of_range) throw BadShape{fmt::format("{} is too large", member)};
  if (!text.starts_with("0x") || error != std::errc{} || end != digits.data() + digits.size() || number < 0 ||
      digits.front() == '-' || leading_zero) {
    throw BadShape{fmt::format("{} is not a quantity: {}", member, quote(text))};
  }
  return number;
}

void Members::saw(std::string_view member) {
  if (std::ranges::find(seen_, member) != seen_.end()) throw BadShape{fmt::format("{} is given twice", member)};
  seen_.push_back(member);
  std::erase(missing_, member);
}

void Members::check() const {
  if (!missing_.empty()) throw BadShape{fmt::format("{} is missing", missing_.front())};
}

}  // namespace fencepost::evm::reply

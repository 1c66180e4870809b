#include "cli/amount.hpp"

#include <fmt/format.h>

#include "base/text.hpp"

namespace fencepost::cli {
namespace {

constexpr std::size_t kEtherDecimals = 18;

struct Unit {
  std::string_view name;
  std::size_t decimals;
};
constexpr Unit kUnits[] = {{"ether", kEtherDecimals}, {"gwei", 9}, {"wei", 0}};  // "gwei" ends in "wei"

Error bad_amount(std::string_view text) {
  return invalid("bad_amount",
                 fmt::format("expected an amount such as 1000, 0x3e8, 30gwei or 1.5ether, got {}", quote(text)));
}

// The digits with the decimal point moved right by `places`; empty if the result is not a whole number of wei.
std::string shift_point(std::string_view digits, std::size_t places) {
  const auto point = digits.find('.');
  if (point == std::string_view::npos) return std::string(digits) + (digits == "0" ? "" : std::string(places, '0'));
  const auto whole = digits.substr(0, point);
  const auto part = digits.substr(point + 1);
  const bool plain = !whole.empty() && !part.empty() && (whole == "0" || !whole.starts_with('0'));
  if (!plain || part.size() > places) return {};
  auto out = std::string(whole) + std::string(part) + std::string(places - part.size(), '0');
  out.erase(0, std::min(out.find_first_not_of('0'), out.size() - 1));
  return out;
}

}  // namespace

Result<Uint256> parse_amount(std::string_view text) {
  constexpr std::size_t kMaxLength = 128;
  if (text.size() > kMaxLength) return fail(bad_amount(text));
  for (const auto& [name, decimals] : kUnits) {
    if (!text.ends_with(name)) continue;
    auto wei = parse_decimal(shift_point(text.substr(0, text.size() - name.size()), decimals));
    if (!wei) return fail(bad_amount(text));
    return wei;
  }
  auto wei = parse_uint256(text);
  if (!wei) return fail(bad_amount(text));
  return wei;
}

std::string amount_text(const Uint256& wei) {
  auto digits = to_decimal(wei);
  constexpr std::size_t kFewDigits = 12;
  if (digits.size() <= kFewDigits) return digits + " wei";
  if (digits.size() <= kEtherDecimals) digits.insert(0, kEtherDecimals + 1 - digits.size(), '0');
  auto part = digits.substr(digits.size() - kEtherDecimals);
  part.erase(part.find_last_not_of('0') + 1);
  const auto whole = digits.substr(0, digits.size() - kEtherDecimals);
  return fmt::format("{}{}{} ether", whole, part.empty() ? "" : ".", part);
}

}  // namespace fencepost::cli

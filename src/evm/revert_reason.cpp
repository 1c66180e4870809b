#include "evm/revert_reason.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"
#include "evm/abi/abi.hpp"

namespace fencepost::evm {
namespace {

// Solidity's codes for the checks that the compiler adds.
constexpr std::pair<unsigned, std::string_view> kPanics[] = {
    {0x00, "inserted by the compiler"},
    {0x01, "assertion failed"},
    {0x11, "arithmetic overflow or underflow"},
    {0x12, "division or modulo by zero"},
    {0x21, "conversion to an enum out of range"},
    {0x22, "badly encoded storage byte array"},
    {0x31, "pop on an empty array"},
    {0x32, "array index out of bounds"},
    {0x41, "too much memory allocated"},
    {0x51, "call of an uninitialised function pointer"},
};

std::string panic(const Uint256& code) {
  const auto known = std::ranges::find_if(kPanics, [&](const auto& row) { return row.first == code; });
  return fmt::format("panic {}: {}", to_quantity(code),
                     known != std::end(kPanics) ? known->second : std::string_view("unknown code"));
}

std::string custom_error(std::span<const std::uint8_t> data) {
  auto text = fmt::format("custom error {}", to_hex0x(data.first(4)));
  const auto arguments = data.subspan(4);
  if (arguments.empty()) return text;
  const auto shown = arguments.first(std::min(arguments.size(), kMaxRevertReason));
  return plain_text(fmt::format("{} ({})", text, to_hex0x(shown)), kMaxRevertReason);
}

}  // namespace

std::string revert_reason(std::span<const std::uint8_t> data) {
  static const auto kError = selector("Error(string)");
  static const auto kPanic = selector("Panic(uint256)");
  if (data.empty()) return "reverted without a reason";
  if (data.size() < kError.size()) return fmt::format("reverted with {}", to_hex0x(data));

  const auto front = data.first(4);
  const AbiReader arguments(data.subspan(4));
  if (std::ranges::equal(front, kError)) {
    const auto text = arguments.string(0);
    if (text && text->empty()) return "reverted without a reason";
    if (text) return plain_text(*text, kMaxRevertReason);
  }
  if (std::ranges::equal(front, kPanic)) {
    if (const auto code = arguments.uint256(0)) return panic(*code);
  }
  return custom_error(data);
}

}  // namespace fencepost::evm

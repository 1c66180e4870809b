#include "evm/revert_reason.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"
#include "evm/abi.hpp"

namespace fencepost::evm {
namespace {

constexpr std::string_view kMore = "…";

// Solidity's codes for what it checks by itself.
constexpr std::pair<unsigned, std::string_view> kPanics[] = {
    {0x00, "the compiler inserted it"},
    {0x01, "assertion failed"},
    {0x11, "arithmetic overflow or underflow"},
    {0x12, "division or modulo by zero"},
    {0x21, "conversion to an enum out of range"},
    {0x22, "storage byte array that is badly encoded"},
    {0x31, "pop on an empty array"},
    {0x32, "array index out of bounds"},
    {0x41, "too much memory allocated"},
    {0x51, "call of an uninitialised function pointer"},
};

// One character for each control character, so that the text stays one line and no terminal obeys it.
std::string in_one_line(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool c1 = byte == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0;
    if (c1) ++i;
    out += c1 || byte < ' ' || byte == 0x7f ? ' ' : text[i];
  }
  return out;
}

std::string cut(std::string text) {
  if (text.size() <= kMaxRevertReason) return text;
  auto end = kMaxRevertReason - kMore.size();
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;  // not inside a character
  text.resize(end);
  text += kMore;
  return text;
}

std::string plain_text(std::string_view text) {
  // Each broken byte grows to three, so what is cut off here could not have been shown anyway.
  return cut(in_one_line(repair_utf8(text.substr(0, kMaxRevertReason + 4))));
}

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
  return cut(fmt::format("{} ({})", text, to_hex0x(shown)));
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
    if (text) return plain_text(*text);
  }
  if (std::ranges::equal(front, kPanic)) {
    if (const auto code = arguments.uint256(0)) return panic(*code);
  }
  return custom_error(data);
}

}  // namespace fencepost::evm

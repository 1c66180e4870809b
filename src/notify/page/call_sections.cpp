#include "notify/page/call_sections.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "notify/page/safe_text.hpp"

namespace fencepost::notify {
namespace {

constexpr std::size_t kNameCharacters = 64;
constexpr std::size_t kSignatureCharacters = 300;
constexpr std::size_t kAddressBytes = 42;
constexpr std::size_t kUint256Digits = 78;
constexpr std::size_t kCoinDigits = 18;

bool is_hex_bytes(std::string_view text) {
  return text.starts_with("0x") && text.find_first_not_of("0123456789abcdefABCDEF", 2) == std::string_view::npos;
}

std::size_t count_characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

// Kilobytes would hide what comes after them: the beginning, and how much there is.
Line bounded(std::string_view value, const CallWords& say) {
  if (value.empty()) return words(say.empty_value);
  if (value.size() <= kValueBytes) return mono(value);
  const auto shown = first_bytes(value, kValueBytes);
  if (is_hex_bytes(value)) {
    return fill(say.cut_bytes,
                {mono(shown), words(grouped((shown.size() - 2) / 2)), words(grouped((value.size() - 2) / 2))});
  }
  return fill(say.cut_characters,
              {mono(shown), words(grouped(count_characters(shown))), words(grouped(count_characters(value)))});
}

Line function_line(const FlowCall& call, const CallWords& say) {
  if (!call.signature.empty()) return mono(shortened(call.signature, kSignatureCharacters));
  if (call.selector.empty()) return words(say.no_function);
  return fill(say.unknown_function, {mono(shortened(call.selector, kNameCharacters))});
}

// The number in front keeps a name from outside from beginning a line of the text part.
std::string argument_label(std::size_t index, const CallArgument& argument) {
  const auto name = shortened(argument.name, kNameCharacters);
  return fmt::format("{}. {}{}({})", index + 1, name, name.empty() ? "" : " ",
                     shortened(argument.type, kNameCharacters));
}

void add_arguments(Section& section, const FlowCall& call, const CallWords& say, const ExplorerLinks& links) {
  const auto shown = std::min(call.arguments.size(), kArgumentsShown);
  for (std::size_t i = 0; i < shown; ++i) {
    const auto& argument = call.arguments[i];
    const bool address = argument.type == "address" && argument.value.size() <= kAddressBytes;
    section.rows.push_back(
        {argument_label(i, argument), address ? links.address(argument.value) : bounded(argument.value, say)});
  }
  const auto hidden = call.arguments.size() - shown;
  if (hidden == 1) section.notes.push_back(words(say.more_argument));
  if (hidden > 1) section.notes.push_back(fill(say.more_arguments, {words(grouped(hidden))}));
}

Section call_section(const FlowCall& call, std::string heading, const CallWords& say, const ExplorerLinks& links) {
  Section out{.heading = std::move(heading), .rows = {}, .notes = {}};
  out.rows.push_back({say.function.text(), function_line(call, say)});
  out.rows.push_back({say.target.text(), links.address(call.target)});
  if (const auto coins = coin_text(call.value); !coins.empty()) {
    out.rows.push_back({say.value.text(), fill(say.amount, {strong(coins), mono(call.value)})});
  }
  const bool has_data = !call.data.empty() && call.data != "0x";
  if (call.explained) {
    add_arguments(out, call, say, links);
  } else if (has_data) {
    out.rows.push_back({say.data.text(), bounded(call.data, say)});
    out.notes.push_back(words(say.not_explained));
  }
  return out;
}

std::string call_heading(std::size_t index, std::size_t count, const CallWords& say) {
  return count == 1 ? say.one.text() : fill_text(say.many, {grouped(index + 1), grouped(count)});
}

Section hidden_calls(std::size_t count, const CallWords& say) {
  auto note = count == 1 ? words(say.more_call) : fill(say.more_calls, {words(grouped(count))});
  return {.heading = say.more_calls_heading.text(), .rows = {}, .notes = {std::move(note)}};
}

}  // namespace

std::vector<Section> call_sections(const std::vector<FlowCall>& calls, const CallWords& say,
                                   const ExplorerLinks& links) {
  std::vector<Section> out;
  std::size_t size = 0;
  while (out.size() < std::min(calls.size(), kCallsShown)) {
    const auto index = out.size();
    auto section = call_section(calls[index], call_heading(index, calls.size(), say), say, links);
    size += html_size(section);
    if (index > 0 && size > kCallsHtmlBytes) break;
    out.push_back(std::move(section));
  }
  if (out.size() < calls.size()) out.push_back(hidden_calls(calls.size() - out.size(), say));
  return out;
}

std::string coin_text(std::string_view wei) {
  if (wei.empty() || wei.size() > kUint256Digits || wei.find_first_not_of("0123456789") != std::string_view::npos)
    return "";
  std::string digits(wei.substr(std::min(wei.find_first_not_of('0'), wei.size())));
  if (digits.empty()) return "";
  if (digits.size() <= kCoinDigits) digits.insert(0, kCoinDigits + 1 - digits.size(), '0');
  digits.insert(digits.size() - kCoinDigits, ".");
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.ends_with('.')) digits.pop_back();
  return digits;
}

}  // namespace fencepost::notify

#include "notify/page/safe_text.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.hpp"
#include "notify/page/utf8_characters.hpp"

namespace fencepost::notify {
namespace {

bool breaks_a_line(char32_t c) {
  return c < U' ' || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029;
}

// Marks, embeddings, overrides and isolates.
bool changes_direction(char32_t c) {
  return c == 0x061c || c == 0x200e || c == 0x200f || (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

}  // namespace

std::string one_line(std::string_view text) {
  const auto valid = repair_utf8(text);
  std::string out;
  out.reserve(valid.size());
  for (const auto& [code, bytes] : characters_of(valid)) {
    out += breaks_a_line(code) ? " " : changes_direction(code) ? "\xef\xbf\xbd" : bytes;
  }
  return out;
}

std::string_view first_bytes(std::string_view text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  while (max_bytes > 0 && (static_cast<unsigned char>(text[max_bytes]) & 0xc0) == 0x80) --max_bytes;
  return text.substr(0, max_bytes);
}

std::string shortened(std::string_view text, std::size_t max_characters) {
  // A character has at most four bytes: the rest of a long text changes nothing.
  auto line = one_line(first_bytes(text, 4 * (max_characters + 1)));
  const auto characters = characters_of(line);
  if (characters.size() <= max_characters) return line;
  std::string out;
  for (std::size_t i = 0; i + 1 < max_characters; ++i) out += characters[i].bytes;
  return out += "…";
}

std::string short_hex(std::string_view hex) {
  auto line = one_line(hex);
  const auto characters = characters_of(line);
  if (characters.size() <= 13) return line;
  std::string out;
  for (std::size_t i = 0; i < 6; ++i) out += characters[i].bytes;
  out += "…";
  for (std::size_t i = characters.size() - 4; i < characters.size(); ++i) out += characters[i].bytes;
  return out;
}

std::string grouped(std::size_t number) {
  auto out = std::to_string(number);
  for (auto at = out.size(); at > 3; at -= 3) out.insert(at - 3, ",");
  return out;
}

bool is_web_url(std::string_view url) {
  constexpr std::string_view kUnsafe = "\"'<>`\\";
  const auto scheme = lowercase(url.substr(0, 8));
  if (!scheme.starts_with("http://") && !scheme.starts_with("https://")) return false;
  return std::ranges::all_of(url, [&](char c) { return c > ' ' && c < 0x7f && !kUnsafe.contains(c); });
}

}  // namespace fencepost::notify

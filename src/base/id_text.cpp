#include "base/id_text.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>

namespace fencepost {

std::optional<std::int64_t> parse_id(std::string_view text) {
  const bool leading_zero = text.size() > 1 && text.front() == '0';
  const bool digits = std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  if (text.empty() || leading_zero || !digits) return std::nullopt;
  std::int64_t number = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), number).ec != std::errc()) return std::nullopt;
  return number;
}

}  // namespace fencepost

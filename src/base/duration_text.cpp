#include "base/duration_text.hpp"

#include <array>
#include <charconv>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"

namespace fencepost {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t millis;
};

constexpr std::array<Unit, 5> kUnits{{{"d", 86'400'000}, {"h", 3'600'000}, {"m", 60'000}, {"s", 1000}, {"ms", 1}}};
constexpr std::int64_t kLongestMillis = 10'000 * kUnits[0].millis;

Error bad_duration(std::string_view text, std::string_view reason = {}) {
  return invalid("bad_duration", fmt::format("expected a duration such as 250ms, 10s, 5m, 24h or 1d, got {}{}{}",
                                             quote(text), reason.empty() ? "" : ": ", reason));
}

}  // namespace

Result<std::chrono::milliseconds> parse_duration(std::string_view text) {
  const auto digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto name = text.substr(digits);
  if (digits == 0) return fail(bad_duration(text));
  if (name.empty()) return fail(bad_duration(text, "the unit is missing"));
  if (digits > 1 && text.front() == '0') return fail(bad_duration(text, "leading zero"));
  const auto unit = std::ranges::find(kUnits, name, &Unit::name);
  if (unit == kUnits.end()) return fail(bad_duration(text));
  std::int64_t count = 0;
  const auto number = text.substr(0, digits);
  const auto parsed = std::from_chars(number.data(), number.data() + number.size(), count);
  if (parsed.ec != std::errc() || count > kLongestMillis / unit->millis) {
    return fail(bad_duration(text, "more than 10000 days"));
  }
  return std::chrono::milliseconds{count * unit->millis};
}

std::string duration_text(std::chrono::milliseconds duration) {
  const auto millis = duration.count();
  if (millis == 0) return "0s";
  for (const auto& unit : kUnits) {
    if (millis % unit.millis == 0) return fmt::format("{}{}", millis / unit.millis, unit.name);
  }
  std::unreachable();
}

}  // namespace fencepost

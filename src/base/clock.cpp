#include "base/clock.hpp"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

namespace fencepost {
namespace {

// Takes fixed digits and separators from the front of a text. After a mismatch `good` stays false.
struct TimeText {
  std::string_view rest;
  bool good = true;

  int digits(std::size_t count) {
    if (!good || rest.size() < count || !std::ranges::all_of(rest.substr(0, count), is_digit)) {
      good = false;
      return 0;
    }
    int value = 0;
    for (const char c : rest.substr(0, count)) value = value * 10 + (c - '0');
    rest.remove_prefix(count);
    return value;
  }
  bool take(std::string_view any_of) {
    if (!good || rest.empty() || !any_of.contains(rest.front())) return false;
    rest.remove_prefix(1);
    return true;
  }
  void need(std::string_view any_of) { good = take(any_of); }
  int microseconds() {
    const auto count = static_cast<std::size_t>(std::ranges::find_if_not(rest, is_digit) - rest.begin());
    if (count == 0) good = false;
    int value = 0;
    for (std::size_t i = 0; i < 6; ++i) value = value * 10 + (i < count ? rest[i] - '0' : 0);
    rest.remove_prefix(count);
    return value;
  }

  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
};

}  // namespace

std::string to_rfc3339(TimePoint time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss<std::chrono::microseconds> clock{time - day};
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), clock.hours().count(),
                     clock.minutes().count(), clock.seconds().count(), clock.subseconds().count());
}

std::optional<TimePoint> parse_rfc3339(std::string_view text) {
  TimeText in{text};
  const auto year = in.digits(4);
  in.need("-");
  const auto month = in.digits(2);
  in.need("-");
  const auto day = in.digits(2);
  in.need("Tt");
  const auto hour = in.digits(2);
  in.need(":");
  const auto minute = in.digits(2);
  in.need(":");
  const auto second = in.digits(2);
  const auto fraction = in.take(".") ? in.microseconds() : 0;
  std::chrono::minutes offset{0};
  if (!in.take("Zz")) {
    const bool west = in.rest.starts_with('-');
    in.need("+-");
    const auto hours = in.digits(2);
    in.need(":");
    const auto minutes = in.digits(2);
    if (hours > 23 || minutes > 59) in.good = false;
    offset = std::chrono::hours(hours) + std::chrono::minutes(minutes);
    if (west) offset = -offset;
  }
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!in.good || !in.rest.empty() || !date.ok() || hour > 23 || minute > 59 || second > 59) return std::nullopt;
  return TimePoint(std::chrono::sys_days(date)) + std::chrono::hours(hour) + std::chrono::minutes(minute) +
         std::chrono::seconds(second) + std::chrono::microseconds(fraction) - offset;
}

}  // namespace fencepost

#include "pg/time.hpp"

#include <charconv>

#include <fmt/format.h>

namespace fencepost::pg {
namespace {

using namespace std::chrono;

// Reads exactly `width` digits from the front of `text`.
bool take_digits(std::string_view& text, std::size_t width, int& out) {
  if (text.size() < width) return false;
  const auto digits = text.substr(0, width);
  const auto [end, ec] = std::from_chars(digits.data(), digits.data() + digits.size(), out);
  if (ec != std::errc{} || end != digits.data() + digits.size() || out < 0) return false;
  text.remove_prefix(width);
  return true;
}

bool take_char(std::string_view& text, char expected) {
  if (!text.starts_with(expected)) return false;
  text.remove_prefix(1);
  return true;
}

bool take_fraction(std::string_view& text, int& micros) {
  if (!take_char(text, '.')) return true;
  const auto width = std::min(text.find_first_not_of("0123456789"), text.size());
  if (width == 0 || width > 6 || !take_digits(text, width, micros)) return false;
  for (auto i = width; i < 6; ++i) micros *= 10;
  return true;
}

}  // namespace

std::string format_timestamp(TimePoint time) {
  const auto day = floor<days>(time);
  const year_month_day date{day};
  const hh_mm_ss<microseconds> clock{time - day};
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{:06}+00", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), clock.hours().count(),
                     clock.minutes().count(), clock.seconds().count(), clock.subseconds().count());
}

Result<TimePoint> parse_timestamp(std::string_view text) {
  std::string_view rest = text;
  int y = 0, mo = 0, d = 0, h = 0, mi = 0, s = 0, us = 0;
  const bool ok = take_digits(rest, 4, y) && take_char(rest, '-') && take_digits(rest, 2, mo) && take_char(rest, '-') &&
                  take_digits(rest, 2, d) && take_char(rest, ' ') && take_digits(rest, 2, h) && take_char(rest, ':') &&
                  take_digits(rest, 2, mi) && take_char(rest, ':') && take_digits(rest, 2, s) &&
                  take_fraction(rest, us) && rest == "+00";
  const year_month_day date{year{y}, month{static_cast<unsigned>(mo)}, day{static_cast<unsigned>(d)}};
  if (!ok || !date.ok() || h > 23 || mi > 59 || s > 59) {
    return fail(internal("bad_timestamp", fmt::format("cannot read the timestamp '{}'", text)));
  }
  return TimePoint{sys_days{date}} + hours{h} + minutes{mi} + seconds{s} + microseconds{us};
}

}  // namespace fencepost::pg

#include "notify/words/time_text.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "notify/page/line.hpp"
#include "notify/page/safe_text.hpp"

namespace fencepost::notify {
namespace {

constexpr std::int64_t kDaysWithoutHours = 10;

std::string counted(std::int64_t count, const UnitWords& unit) {
  return fill_text(count == 1 ? unit.one : unit.many, {grouped(static_cast<std::size_t>(count))});
}

}  // namespace

std::string utc_text(TimePoint time) {
  const auto text = to_rfc3339(time);
  return fmt::format("{} {} UTC", text.substr(0, text.find('T')), text.substr(text.find('T') + 1, 8));
}

std::string span_text(std::chrono::seconds span, const TimeWords& words) {
  const struct {
    std::int64_t seconds;
    const UnitWords& unit;
  } units[] = {{86400, words.day}, {3600, words.hour}, {60, words.minute}, {1, words.second}};
  const auto seconds = std::max<std::int64_t>(span.count(), 0);
  const auto* unit = std::ranges::find_if(units, [&](const auto& u) { return seconds >= u.seconds; });
  if (unit == std::end(units)) return counted(0, words.second);
  const auto count = seconds / unit->seconds;
  auto text = counted(count, unit->unit);
  const auto* next = unit + 1;
  if (next == std::end(units) || (unit == units && count >= kDaysWithoutHours)) return text;
  const auto rest = seconds % unit->seconds / next->seconds;
  return rest == 0 ? text : fill_text(words.two_units, {text, counted(rest, next->unit)});
}

std::string relative_text(TimePoint time, TimePoint now, const TimeWords& words) {
  const bool past = time < now;
  const auto distance = std::chrono::floor<std::chrono::seconds>(past ? now - time : time - now);
  if (distance.count() == 0) return words.now.text();
  const auto minutes = std::chrono::floor<std::chrono::minutes>(distance);
  if (minutes.count() == 0) return (past ? words.just_now : words.soon).text();
  return fill_text(past ? words.ago : words.in, {span_text(minutes, words)});
}

std::string moment_text(TimePoint time, TimePoint now, const TimeWords& words) {
  return fill_text(words.moment, {utc_text(time), relative_text(time, now, words)});
}

}  // namespace fencepost::notify

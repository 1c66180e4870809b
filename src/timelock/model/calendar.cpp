#include "timelock/model/calendar.hpp"

#include <chrono>
#include <string_view>

#include <fmt/format.h>

#include "base/text.hpp"

namespace fencepost::timelock {
namespace {

constexpr std::size_t kMaxOctets = 75;  // of a line, without CRLF

std::string utc(std::int64_t seconds) {
  const std::chrono::sys_seconds at{std::chrono::seconds(seconds)};
  const auto day = std::chrono::floor<std::chrono::days>(at);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss time(at - day);
  return fmt::format("{:04}{:02}{:02}T{:02}{:02}{:02}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), time.hours().count(),
                     time.minutes().count(), time.seconds().count());
}

// TEXT of RFC 5545, section 3.3.11: other control characters cannot be written at all.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : repair_utf8(text)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\\' || c == ';' || c == ',') {
      out += '\\';
      out += c;
    } else if (byte >= ' ' && byte != 0x7f) {
      out += c;
    }
  }
  return out;
}

bool continues_character(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}

// A continuation begins with a space, which counts as an octet of its line.
void add_line(std::string& out, std::string_view line) {
  auto room = kMaxOctets;
  while (line.size() > room) {
    auto end = room;
    while (continues_character(line[end])) --end;
    out.append(line.substr(0, end)).append("\r\n ");
    line.remove_prefix(end);
    room = kMaxOctets - 1;
  }
  out.append(line).append("\r\n");
}

}  // namespace

std::string calendar_text(const std::vector<CalendarEntry>& entries) {
  std::string out;
  for (const auto* line : {"BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//Fencepost//timelocks//EN", "CALSCALE:GREGORIAN",
                           "METHOD:PUBLISH", "NAME:Timelocks", "X-WR-CALNAME:Timelocks"}) {
    add_line(out, line);
  }
  for (const auto& entry : entries) {
    add_line(out, "BEGIN:VEVENT");
    add_line(out, "UID:" + escaped(entry.uid));
    add_line(out, "DTSTAMP:" + utc(entry.changed_at));
    add_line(out, "DTSTART:" + utc(entry.at));
    add_line(out, "SUMMARY:" + escaped(entry.summary));
    add_line(out, "DESCRIPTION:" + escaped(entry.description));
    add_line(out, "TRANSP:TRANSPARENT");
    add_line(out, "END:VEVENT");
  }
  add_line(out, "END:VCALENDAR");
  return out;
}

}  // namespace fencepost::timelock

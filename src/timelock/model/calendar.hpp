// A calendar of flows as RFC 5545 text (iCalendar), which calendar programs subscribe to.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fencepost::timelock {

struct CalendarEntry {
  std::string uid;              // the same for the same moment of the same flow, for ever
  std::int64_t at = 0;          // seconds since 1970
  std::int64_t changed_at = 0;  // seconds since 1970
  std::string summary;
  std::string description;
};

// Requires: times are before the year 10000. Lines end with CRLF and are folded at 75 octets, never inside a character.
std::string calendar_text(const std::vector<CalendarEntry>& entries);

}  // namespace fencepost::timelock

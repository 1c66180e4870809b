// Times and spans of time in words. Pure.
#pragma once

#include <chrono>
#include <string>

#include "base/clock.hpp"
#include "notify/words/words.hpp"

namespace fencepost::notify {

// "2026-11-20 10:00:05 UTC": the same in every language.
std::string utc_text(TimePoint time);

// "10 minutes", "1 minute 30 seconds", "2 days 3 hours": the largest unit and the next smaller one, rounded down. A
// span of ten days or more has no hours. A negative span is 0.
std::string span_text(std::chrono::seconds span, const TimeWords& words);

// "in 2 days", "3 hours 20 minutes ago", "now" in the very second. Rounded down to minutes.
std::string relative_text(TimePoint time, TimePoint now, const TimeWords& words);

// "2026-11-20 10:00:05 UTC (in 2 days)"
std::string moment_text(TimePoint time, TimePoint now, const TimeWords& words);

}  // namespace fencepost::notify

// Durations as people write them: a number and a unit, "250ms", "10s", "5m", "24h", "1d".
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace fencepost {

// Accepts one whole number without leading zeros and one unit, without spaces. "0s" is valid. Anything else, and more
// than 10000 days (so that sums of durations never overflow), is kInvalid "bad_duration".
Result<std::chrono::milliseconds> parse_duration(std::string_view text);

// Uses the largest unit that divides the duration evenly: 90 s is "90s", 120 s is "2m". `parse_duration` reads it back.
std::string duration_text(std::chrono::milliseconds duration);

}  // namespace fencepost

// Durations as people write them: a number and a unit, "250ms", "10s", "5m", "24h", "1d".
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace fencepost {

// One whole number without leading zeros and one unit, nothing between or around. kInvalid "bad_duration"
// otherwise, and for more than 10000 days, so that sums of durations never overflow. "0s" is a duration.
Result<std::chrono::milliseconds> parse_duration(std::string_view text);

// In the largest unit that divides it evenly: 90 s is "90s", 120 s is "2m". Reading it back gives the same.
std::string duration_text(std::chrono::milliseconds duration);

}  // namespace fencepost

// Timestamps as PostgreSQL writes them in a session whose time zone is UTC, which ours always is.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/error.hpp"

namespace fencepost::pg {

inline constexpr TimePoint kPostgresEpoch = std::chrono::sys_days{std::chrono::year{2000} / 1 / 1};

// "2026-11-15 19:45:18.123456+00"
std::string format_timestamp(TimePoint time);

// The same form back, with or without the fraction. `infinity`, years beyond 9999 and BC are errors: a due
// time that does not fit is NULL in our tables, never a special value.
Result<TimePoint> parse_timestamp(std::string_view text);

}  // namespace fencepost::pg

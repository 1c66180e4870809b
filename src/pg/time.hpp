// Timestamps as PostgreSQL writes them in time zone UTC, which Connector sets for every session.
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

// Parses that form, with or without the fraction. `infinity`, years beyond 9999 and BC are errors (`bad_timestamp`):
// the tables store NULL instead of special values.
Result<TimePoint> parse_timestamp(std::string_view text);

}  // namespace fencepost::pg

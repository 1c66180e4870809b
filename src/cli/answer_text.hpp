// What the API answers, member by member, as text for a terminal. Pure.
//
// All take JSON as it came: what is absent, null or of another kind is empty, so that a newer server does not break an
// older command.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>

namespace fencepost::cli {

// The member; null when it is not there or null itself. `path` may go down: "payload.to".
const boost::json::value* find_at(const boost::json::value& value, std::string_view path);
// A member as text.
std::string text_at(const boost::json::value& value, std::string_view path);
// A member that is a whole number, or a text that is one, decimal or 0x.
std::optional<std::int64_t> int_at(const boost::json::value& value, std::string_view path);

inline constexpr std::size_t kToSeconds = 19;
inline constexpr std::size_t kToMilliseconds = 23;
// "2026-11-15T19:45:18.123456Z" as "2026-11-15 19:45:18": so much of it, for a place that says UTC.
std::string when(const boost::json::value& value, std::string_view path, std::size_t length = kToSeconds);
// "2026-11-15 19:45:18 UTC"
std::string when_utc(const boost::json::value& value, std::string_view path);

// The items of a page.
const boost::json::array& items_of(const boost::json::value& answer);

}  // namespace fencepost::cli

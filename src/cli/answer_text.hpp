// Members of the API's answers as text for a terminal. Pure.
//
// All functions accept any JSON: a member that is absent, null or of another type gives an empty result, so that a
// newer server does not break an older command.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>

namespace fencepost::cli {

// The member; nullptr if it is absent or null. `path` may be nested: "payload.to".
const boost::json::value* find_at(const boost::json::value& value, std::string_view path);
// A member as text.
std::string text_at(const boost::json::value& value, std::string_view path);
// A member that is a whole number, or a string with one, decimal or 0x.
std::optional<std::int64_t> int_at(const boost::json::value& value, std::string_view path);

inline constexpr std::size_t kToSeconds = 19;
inline constexpr std::size_t kToMilliseconds = 23;
// "2026-11-15T19:45:18.123456Z" as "2026-11-15 19:45:18", for a column whose header says UTC.
std::string when(const boost::json::value& value, std::string_view path, std::size_t length = kToSeconds);
// "2026-11-15 19:45:18 UTC"
std::string when_utc(const boost::json::value& value, std::string_view path);

// The items of a page.
const boost::json::array& items_of(const boost::json::value& answer);

}  // namespace fencepost::cli

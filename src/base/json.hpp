// Strict parsing of untrusted JSON text. base/json_reader.hpp reads values from the parsed document.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <boost/json/value.hpp>

#include "base/error.hpp"

namespace fencepost {

inline constexpr std::size_t kJsonMaxDepth = 32;

// Returns the document, or
//   kTooLarge "json_too_large"   more than `max_bytes`
//   kInvalid  "bad_json"         with line and column: not JSON, more than one document, nesting over
//                                kJsonMaxDepth, a repeated key, or a number that fits neither 64 bits nor a double.
//                                (Boost.JSON alone keeps the last of two equal keys, and rounds an integer over 64 bits
//                                to a double.)
Result<boost::json::value> parse_json(std::string_view text, std::size_t max_bytes);

// JSON null for nullopt.
template <class T>
boost::json::value optional_json(const std::optional<T>& value) {
  return value ? boost::json::value(*value) : boost::json::value(nullptr);
}

// Describes a value for the end of an error message: `"abc"`, `number 5`, `an object`. The text is short and has no
// control characters.
std::string describe_json(const boost::json::value& value);

}  // namespace fencepost

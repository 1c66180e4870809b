// JSON text from outside, read strictly. base/json_reader.hpp takes the values out.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <boost/json/value.hpp>

#include "base/error.hpp"

namespace fencepost {

inline constexpr std::size_t kJsonMaxDepth = 32;

// The document, or
//   kTooLarge "json_too_large"   more than `max_bytes`
//   kInvalid  "bad_json"         with line and column: not JSON, more than one document, nesting over
//                                kJsonMaxDepth, a repeated key, or a number that fits neither 64 bits nor a double.
//                                (Boost.JSON alone would keep the last of two equal keys, and turn an integer
//                                over 64 bits into a double that is not quite it.)
Result<boost::json::value> parse_json(std::string_view text, std::size_t max_bytes);

// null where there is none.
template <class T>
boost::json::value optional_json(const std::optional<T>& value) {
  return value ? boost::json::value(*value) : boost::json::value(nullptr);
}

// What a value is, for the tail of an error message: `"abc"`, `number 5`, `an object`. Never long, never with
// control characters.
std::string describe_json(const boost::json::value& value);

}  // namespace fencepost

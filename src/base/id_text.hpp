// 64-bit ids as text, in the one form that paths, queries, bodies and configuration use: decimal digits without a sign
// and without leading zeros, up to 2^63 - 1. Each id has exactly one spelling, so texts can be compared as they are.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace fencepost {

// The form, as error messages describe it.
inline constexpr std::string_view kIdForm = "decimal digits without leading zeros, up to 9223372036854775807";

// Returns nullopt when the text does not have that form.
std::optional<std::int64_t> parse_id(std::string_view text);

}  // namespace fencepost

// Ids of 64 bits as text, the one form in which paths, queries, bodies and configuration write them: decimal digits
// without sign and without leading zeros, up to 2^63 - 1. Two texts are then the same id exactly when they are equal.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace fencepost {

// What an error message calls the form.
inline constexpr std::string_view kIdForm = "decimal digits without leading zeros, up to 9223372036854775807";

// Nothing when the text is not of that form.
std::optional<std::int64_t> parse_id(std::string_view text);

}  // namespace fencepost

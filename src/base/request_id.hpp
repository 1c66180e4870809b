// The caller's name for a request: asking again by the same name does nothing twice.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace fencepost {

inline constexpr std::size_t kRequestIdMaxBytes = 128;

// The text itself: 1 to 128 bytes of UTF-8 without control characters. It is compared byte by byte; nothing is trimmed
// or folded. Errors: kInvalid `bad_request_id`.
Result<std::string> parse_request_id(std::string_view text);

}  // namespace fencepost

// The caller's id for a request. A second request with the same id has no second effect.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace fencepost {

inline constexpr std::size_t kRequestIdMaxBytes = 128;

// Returns the text unchanged. Requires 1 to 128 bytes of UTF-8 without control characters; otherwise kInvalid
// `bad_request_id`. Ids are compared byte by byte: spaces and letter case count.
Result<std::string> parse_request_id(std::string_view text);

}  // namespace fencepost

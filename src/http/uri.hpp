// The parts of a request target, decoded. Everything that comes out is valid UTF-8 without NUL, so that it can
// go into a JSON document or a text column as it is.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace fencepost::http {

using QueryParameters = std::vector<std::pair<std::string, std::string>>;

enum class PlusSign { kLiteral, kSpace };

// "a%20b" → "a b". Errors: `bad_percent_encoding` for a broken escape, a NUL or what is not UTF-8.
Result<std::string> percent_decode(std::string_view text, PlusSign plus = PlusSign::kLiteral);

// Everything outside RFC 3986's unreserved characters becomes %XX: for building targets.
std::string percent_encode(std::string_view text);

// "a=1&b&c=%2B" in order of appearance; a name without '=' has the empty value.
Result<QueryParameters> parse_query(std::string_view text);

}  // namespace fencepost::http

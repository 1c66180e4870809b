// The parts of a request target, decoded. Every result is valid UTF-8 without NUL, so that a caller can put it into a
// JSON document or a text column unchanged.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace fencepost::http {

using QueryParameters = std::vector<std::pair<std::string, std::string>>;

enum class PlusSign { kLiteral, kSpace };

// "a%20b" → "a b". Errors: `bad_percent_encoding` for a broken escape, a NUL or invalid UTF-8.
Result<std::string> percent_decode(std::string_view text, PlusSign plus = PlusSign::kLiteral);

// Encodes everything except RFC 3986's unreserved characters as %XX. For building targets.
std::string percent_encode(std::string_view text);

// The parameters of "a=1&b&c=%2B", in order; a name without '=' has an empty value. Errors: as percent_decode, and
// `too_many_parameters`.
Result<QueryParameters> parse_query(std::string_view text);

// The URL of a server on this machine that listens at this host, also if that stands for every address.
std::string local_url(std::string_view host, std::uint16_t port, std::string_view scheme = "http");

}  // namespace fencepost::http

// Every code that an answer of the API can carry, once: the OpenAPI document's enum and docs/errors.md are compared
// with this list, and so are the codes that the source passes to error factories (tests/error_codes_test.cpp).
//
// An error of kind kInternal is answered with the code `internal`; its own code is for the log.
#pragma once

#include <span>
#include <string_view>

namespace fencepost::http {

struct ErrorCode {
  std::string_view code;
  unsigned status;           // the HTTP status of answers with this code
  std::string_view meaning;  // Markdown, one line
  std::string_view action;   // what the caller should do; Markdown, one line
};

inline constexpr std::string_view kInternalCode = "internal";

// By status, then by code. A code is listed once.
std::span<const ErrorCode> error_codes();

}  // namespace fencepost::http

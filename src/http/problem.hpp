// RFC 9457 problem documents: the only form of error answers.
//
//   {"type": "about:blank", "title": "Conflict", "status": 409, "detail": "…", "code": "request_conflict",
//    "httpRequestId": "…", <the error's context, a member each>}
//
// httpRequestId is the answer's X-Request-Id, not the requestId by which a caller names a transaction.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "base/error.hpp"
#include "http/client.hpp"
#include "http/message.hpp"

namespace fencepost::http {

unsigned status_of(ErrorKind kind);

// When a client may try again. A 503 always says when: one second unless the error has another delay.
std::optional<std::chrono::seconds> retry_after_of(const Error& error);

// With `Retry-After` as above, and `WWW-Authenticate: Bearer` for 401. An error of kind kInternal is
// answered as `internal`: its own code, message and context may reveal too much, so they are only logged, under the
// request id. Every other code is one of http/error_codes.hpp.
Response make_problem(const Error& error, std::string_view request_id);
// For the few statuses that have no ErrorKind: 405, 408, 431, 501, 505.
Response make_problem(unsigned status, const Error& error, std::string_view request_id);

// The inverse: the error in another node's answer, without its request id. A status that has no kind becomes kInvalid
// below 500 and kInternal otherwise, except 502, which becomes kUnavailable. Nothing when the answer is not a problem
// document of Fencepost: a success, or a proxy's page.
std::optional<Error> read_problem(const ClientResponse& response);

}  // namespace fencepost::http

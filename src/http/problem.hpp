// RFC 9457 problem documents: the one form in which this server says that something went wrong.
//
//   {"type": "about:blank", "title": "Conflict", "status": 409, "detail": "…", "code": "request_conflict",
//    "httpRequestId": "…", <the error's context, a member each>}
//
// httpRequestId is the answer's X-Request-Id, not the requestId by which a caller names a transaction.
#pragma once

#include <optional>
#include <string_view>

#include "base/error.hpp"
#include "http/client.hpp"
#include "http/message.hpp"

namespace fencepost::http {

unsigned status_of(ErrorKind kind);

// With `Retry-After` when the error has one, and `WWW-Authenticate: Bearer` for 401. An error of kind kInternal is
// answered as `internal`, without its own code, sentence and context, which may reveal too much: those are for the log,
// and the request id leads there. Every other code is one of http/error_codes.hpp.
Response make_problem(const Error& error, std::string_view request_id);
// For the few statuses that no ErrorKind stands for: 405, 408, 431, 501, 505.
Response make_problem(unsigned status, const Error& error, std::string_view request_id);

// The other way round: the error that a server of ours told, without its request id. A status that no kind stands for
// is kInvalid below 500 and kInternal above, but 502 is kUnavailable. Nothing when the answer is no
// problem of ours: a success, or a proxy's page.
std::optional<Error> read_problem(const ClientResponse& response);

}  // namespace fencepost::http

#include "http/problem.hpp"

#include <fmt/format.h>

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

namespace fencepost::http {
namespace {

constexpr auto kHiddenDetail = "Something went wrong on our side. The log has the details under this request id.";

}  // namespace

unsigned status_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInvalid:
      return 400;
    case ErrorKind::kUnauthenticated:
      return 401;
    case ErrorKind::kForbidden:
      return 403;
    case ErrorKind::kNotFound:
      return 404;
    case ErrorKind::kConflict:
      return 409;
    case ErrorKind::kTooLarge:
      return 413;
    case ErrorKind::kUnprocessable:
      return 422;
    case ErrorKind::kRateLimited:
      return 429;
    case ErrorKind::kInternal:
      return 500;
    case ErrorKind::kUnavailable:
      return 503;
    case ErrorKind::kTimeout:
      return 504;
  }
  return 500;
}

Response make_problem(const Error& error, std::string_view request_id) {
  return make_problem(status_of(error.kind), error, request_id);
}

Response make_problem(unsigned status, const Error& error, std::string_view request_id) {
  const bool hidden = error.kind == ErrorKind::kInternal && status == 500;
  boost::json::object document{
      {"type", "about:blank"}, {"title", reason_phrase(status)},
      {"status", status},      {"detail", hidden ? kHiddenDetail : std::string_view(error.message)},
      {"code", error.code},    {"requestId", request_id},
  };
  if (!hidden) {
    for (const auto& [key, value] : error.context) {
      // A context key never replaces one of the members above.
      document.emplace(document.contains(key) ? key + "_" : key, value);
    }
  }
  auto response = Response::text(status, boost::json::serialize(document), "application/problem+json");
  response.error = error;
  if (error.retry_after) response.with("Retry-After", std::to_string(error.retry_after->count()));
  if (status == 401) response.with("WWW-Authenticate", "Bearer");
  return response;
}

}  // namespace fencepost::http

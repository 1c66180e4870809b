#include "http/problem.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "base/json.hpp"
#include "http/error_codes.hpp"

namespace fencepost::http {
namespace {

constexpr auto kHiddenDetail = "Fencepost failed unexpectedly. The log has the details under this httpRequestId.";

constexpr std::pair<ErrorKind, unsigned> kStatuses[] = {
    {ErrorKind::kInvalid, 400},       {ErrorKind::kUnauthenticated, 401}, {ErrorKind::kForbidden, 403},
    {ErrorKind::kNotFound, 404},      {ErrorKind::kConflict, 409},        {ErrorKind::kTooLarge, 413},
    {ErrorKind::kUnprocessable, 422}, {ErrorKind::kRateLimited, 429},     {ErrorKind::kInternal, 500},
    {ErrorKind::kUnavailable, 503},   {ErrorKind::kTimeout, 504},
};

// The members that are not the error's context.
constexpr std::string_view kMembers[] = {"type", "title", "status", "detail", "code", "instance", "httpRequestId"};

ErrorKind kind_of(unsigned status) {
  const auto found = std::ranges::find(kStatuses, status, &std::pair<ErrorKind, unsigned>::second);
  if (found != std::end(kStatuses)) return found->first;
  if (status == 502) return ErrorKind::kUnavailable;
  return status < 500 ? ErrorKind::kInvalid : ErrorKind::kInternal;
}

std::string text_of(const boost::json::value& value) {
  return value.is_string() ? std::string(value.get_string()) : boost::json::serialize(value);
}

std::optional<std::chrono::seconds> retry_after_in(const ClientResponse& response) {
  const auto text = response.header("Retry-After").value_or("");
  std::uint32_t seconds = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (ec != std::errc() || end != text.data() + text.size())
    return std::nullopt;  // an HTTP date: Fencepost never sends one
  return std::chrono::seconds(seconds);
}

}  // namespace

unsigned status_of(ErrorKind kind) {
  return std::ranges::find(kStatuses, kind, &std::pair<ErrorKind, unsigned>::first)->second;
}

std::optional<std::chrono::seconds> retry_after_of(const Error& error) {
  if (error.retry_after || error.kind != ErrorKind::kUnavailable) return error.retry_after;
  return std::chrono::seconds(1);
}

Response make_problem(const Error& error, std::string_view request_id) {
  return make_problem(status_of(error.kind), error, request_id);
}

Response make_problem(unsigned status, const Error& error, std::string_view request_id) {
  const bool hidden = error.kind == ErrorKind::kInternal && status == 500;
  boost::json::object document{
      {"type", "about:blank"},
      {"title", reason_phrase(status)},
      {"status", status},
      {"detail", hidden ? kHiddenDetail : std::string_view(error.message)},
      {"code", hidden ? kInternalCode : std::string_view(error.code)},
      {"httpRequestId", request_id},
  };
  if (!hidden) {
    for (const auto& [key, value] : error.context) {
      document.emplace(key, value);  // which never replaces one of the members above
    }
  }
  auto response = Response::text(status, boost::json::serialize(document), "application/problem+json");
  response.error = error;
  if (const auto delay = retry_after_of(error)) response.with("Retry-After", std::to_string(delay->count()));
  if (status == 401) response.with("WWW-Authenticate", "Bearer");
  return response;
}

std::optional<Error> read_problem(const ClientResponse& response) {
  if (response.status < 400) return std::nullopt;
  const auto document = parse_json(response.body, response.body.size());
  const auto* object = document ? document->if_object() : nullptr;
  if (object == nullptr || !object->contains("code")) return std::nullopt;
  Error error{kind_of(response.status), text_of(object->at("code")), {}, {}, retry_after_in(response), {}};
  error.message = error.code;
  for (const auto& [key, value] : *object) {
    const std::string_view name = key;
    if (name == "detail") error.message = text_of(value);
    if (value.is_null() || std::ranges::find(kMembers, name) != std::end(kMembers)) continue;
    error.with(std::string(name), text_of(value));
  }
  return error;
}

}  // namespace fencepost::http

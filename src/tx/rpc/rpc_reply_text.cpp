#include "tx/rpc/rpc_reply_text.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "evm/json_rpc.hpp"
#include "http/error_codes.hpp"
#include "http/problem.hpp"

namespace fencepost::tx {
namespace {

namespace json = boost::json;

constexpr std::int64_t kReverted = 3;
constexpr std::int64_t kUnauthorized = 4100;
constexpr std::int64_t kServerError = -32000;
constexpr std::int64_t kResourceNotFound = -32001;
constexpr std::int64_t kLimitExceeded = -32005;
constexpr std::int64_t kInvalidRequest = -32600;
constexpr std::int64_t kMethodNotFound = -32601;
constexpr std::int64_t kInvalidParams = -32602;
constexpr std::int64_t kInternalError = -32603;
constexpr std::int64_t kParseError = -32700;

// The codes that differ from those of their kind.
constexpr std::pair<std::string_view, std::int64_t> kSpecial[] = {
    {"bad_json", kParseError},
    {"bad_rpc_request", kInvalidRequest},
    {"too_many_items", kInvalidRequest},
    {"method_denied", kMethodNotFound},
    {"no_subscriptions", kMethodNotFound},
    {"unknown_signer", kServerError},  // as geth's "unknown account"
    {"would_revert", kReverted},
    {"busy", kLimitExceeded},  // nothing happened: a client may repeat the call
};

std::optional<std::string_view> context_of(const Error& error, std::string_view key) {
  const auto found = std::ranges::find(error.context, key, &std::pair<std::string, std::string>::first);
  return found == error.context.end() ? std::nullopt : std::optional<std::string_view>(found->second);
}

std::string error_object(std::int64_t code, std::string_view message, const json::value& data) {
  return json::serialize(json::object{{"code", code}, {"message", message}, {"data", data}});
}

std::string revert_object(const Error& error) {
  const auto reason = context_of(error, "revertReason");
  return json::serialize(
      json::object{{"code", kReverted},
                   {"message", fmt::format("execution reverted{}{}", reason ? ": " : "", reason.value_or(""))},
                   {"data", context_of(error, "revertData").value_or("0x")},
                   {"fencepost", json::object{{"code", error.code}}}});
}

// `data` of an endpoint's error is JSON text.
std::string chain_error_object(const Error& error, std::int64_t code) {
  const auto data = context_of(error, "data");
  return fmt::format(R"({{"code":{},"message":{}{}{}}})", code, json::serialize(json::value(error.message)),
                     data ? R"(,"data":)" : "", data.value_or(""));
}

json::object data_of(const Error& error) {
  json::object data{{"code", error.code}};
  for (const auto& [key, value] : error.context) data.emplace(key, value);
  if (const auto delay = http::retry_after_of(error)) data.emplace("retryAfter", delay->count());
  return data;
}

// The words by which clients recognize the error.
std::string message_of(const Error& error) {
  if (error.code == "insufficient_funds" && !error.message.contains("insufficient funds")) {
    return "insufficient funds: " + error.message;
  }
  return error.message;
}

}  // namespace

std::int64_t rpc_code_of(const Error& error, RpcFailed what) {
  const auto* special = std::ranges::find(kSpecial, error.code, &std::pair<std::string_view, std::int64_t>::first);
  if (special != std::end(kSpecial)) return special->second;
  switch (error.kind) {
    case ErrorKind::kInvalid:
      return kInvalidParams;
    case ErrorKind::kUnauthenticated:
    case ErrorKind::kForbidden:
      return kUnauthorized;
    case ErrorKind::kNotFound:
      return kResourceNotFound;
    case ErrorKind::kTooLarge:
      return kInvalidRequest;
    case ErrorKind::kRateLimited:
      return kLimitExceeded;
    case ErrorKind::kInternal:
    case ErrorKind::kUnavailable:
      return what == RpcFailed::kSend ? kServerError : kInternalError;
    case ErrorKind::kConflict:
    case ErrorKind::kUnprocessable:
    case ErrorKind::kTimeout:
      return kServerError;
  }
  std::unreachable();
}

RpcReply rpc_refusal(const Error& error, RpcFailed what, std::string_view http_request_id) {
  const auto code = rpc_code_of(error, what);
  if (error.kind == ErrorKind::kInternal) {
    return RpcReply::error(
        error_object(code, "Fencepost failed unexpectedly. The log has the details under this httpRequestId.",
                     json::object{{"code", http::kInternalCode}, {"httpRequestId", http_request_id}}));
  }
  if (error.code == "would_revert") return RpcReply::error(revert_object(error));
  if (const auto from_chain = evm::rpc_code(error)) return RpcReply::error(chain_error_object(error, *from_chain));
  return RpcReply::error(error_object(code, message_of(error), data_of(error)));
}

void append_rpc_reply(std::string& out, std::string_view id, const RpcReply& reply) {
  fmt::format_to(std::back_inserter(out), R"({{"jsonrpc":"2.0","id":{},"{}":)", id, reply.ok ? "result" : "error");
  out += reply.text;
  out += '}';
}

}  // namespace fencepost::tx

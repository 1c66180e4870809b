// Parses JSON-RPC 2.0 replies of untrusted servers: bytes in, one outcome for each call out.
//
// Replies can have megabytes (receipts and logs of a block), so simdjson scans them and each result is returned as a
// piece of JSON text; the caller parses it.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/value.hpp>

#include "base/error.hpp"

namespace fencepost::evm {

// One call's result: owns the JSON text, and names the endpoint that gave it. The text is not checked until it is read
// through one of the accessors, whose errors are all kUnavailable `bad_rpc_result`.
class RpcValue {
 public:
  RpcValue() = default;  // null
  explicit RpcValue(std::string text) : text_(std::move(text)) {}

  const std::string& text() const { return text_; }
  bool is_null() const { return text_ == "null"; }

  // A JSON string, decoded.
  Result<std::string> as_string() const;
  // An Ethereum quantity, such as "0x1a", that fits 64 bits.
  Result<std::uint64_t> as_quantity() const;
  // The whole result as a tree. For results of moderate size; read large ones with simdjson.
  Result<boost::json::value> as_json() const;

  std::size_t endpoint() const { return endpoint_; }
  void set_endpoint(std::size_t index) { endpoint_ = index; }

 private:
  std::string text_ = "null";
  std::size_t endpoint_ = 0;
};

// The error member of an answer.
struct RpcError {
  std::int64_t code = 0;
  std::string message;
  std::string data;  // JSON text, or empty
  std::string text;  // the whole object as the server sent it

  friend bool operator==(const RpcError& a, const RpcError& b) {
    return a.code == b.code && a.message == b.message && a.data == b.data;
  }
};

using RpcOutcome = std::expected<RpcValue, RpcError>;

// The answer to one call. An error without an id belongs to this call, since there is no other. Adds to `body` the
// spare capacity that simdjson needs. Errors: `bad_reply` when the body is not an answer to this call.
Result<RpcOutcome> parse_single_reply(std::string& body, std::uint64_t id);

// The answers to the calls first_id … first_id + count - 1, sorted by id. Errors: `batch_truncated` when one is
// missing; `bad_reply` when one is given twice, unexpected or malformed; when the server returned one error for the
// whole batch, `batch_too_large` (refuses_batch) or `batch_refused`.
Result<std::vector<RpcOutcome>> parse_batch_reply(std::string& body, std::uint64_t first_id, std::size_t count);

// Whether the error is about the server (quota, overload) rather than about the call, so that another server may
// succeed.
bool means_sick_endpoint(const RpcError& error);

// Whether the message refuses a batch as such: too many calls in it, too large a reply, or no batches at all.
bool refuses_batch(std::string_view message);

}  // namespace fencepost::evm

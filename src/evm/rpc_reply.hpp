// What a JSON-RPC 2.0 server answered, taken apart without trust: bytes in, one outcome for each call out.
//
// Replies can be megabytes (receipts and logs of a block), so they are scanned by simdjson and each result is
// handed on as its own piece of JSON text; whoever needs it parses it.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/value.hpp>

#include "base/error.hpp"

namespace fencepost::evm {

// One call's result: JSON text that it owns, and which endpoint gave it. The text is delimited but not checked
// inside until it is read through one of the accessors, whose errors are all kUnavailable `bad_rpc_result`.
class RpcValue {
 public:
  RpcValue() = default;  // null
  explicit RpcValue(std::string text) : text_(std::move(text)) {}

  const std::string& text() const { return text_; }
  bool is_null() const { return text_ == "null"; }

  // A JSON string, decoded.
  Result<std::string> as_string() const;
  // A quantity as Ethereum writes it, "0x1a", that fits 64 bits.
  Result<std::uint64_t> as_quantity() const;
  // Everything, as a tree. For results of moderate size; large ones are better walked with simdjson.
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

  friend bool operator==(const RpcError&, const RpcError&) = default;
};

using RpcOutcome = std::expected<RpcValue, RpcError>;

// The answer to one call. An error without an id counts as this call's: there was no other. `body` gains spare
// capacity, which simdjson needs. Errors: `bad_reply` when it is not such an answer.
Result<RpcOutcome> parse_single_reply(std::string& body, std::uint64_t id);

// The answers to the calls first_id … first_id + count - 1, in that order, whatever order they came in. Errors:
// `bad_reply` when one is missing, given twice, not asked for or malformed; `batch_refused` when the server gave
// one error for all.
Result<std::vector<RpcOutcome>> parse_batch_reply(std::string& body, std::uint64_t first_id, std::size_t count);

// Whether the error is about the server (quota, overload) rather than about the call, so that asking another
// server makes sense.
bool means_sick_endpoint(const RpcError& error);

}  // namespace fencepost::evm

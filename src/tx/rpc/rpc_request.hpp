// Splits the body of a JSON-RPC request into its calls. Pure: no I/O.
//
// The parameters stay JSON text, so that they reach the chain as the client wrote them: an integer over 64 bits keeps
// its digits.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace fencepost::tx {

inline constexpr std::size_t kRpcMaxCalls = 1000;

struct RpcRequestCall {
  std::optional<std::string> id;    // JSON text, echoed as it came; none: a notification, which gets no answer
  std::string method;               // decoded
  std::string params = "[]";        // JSON text: an array or an object
  std::optional<Error> error = {};  // the call is not a JSON-RPC 2.0 request: `bad_rpc_request`
};

struct RpcRequest {
  bool batch = false;  // answered by an array
  std::vector<RpcRequestCall> calls;
};

// Errors: `bad_json` when the body is not JSON, is nested too deep or repeats a member of a call; `bad_rpc_request` for
// an empty batch or a body that is neither an object nor an array; `too_many_items` over kRpcMaxCalls. A bad call in a
// batch fails alone.
Result<RpcRequest> parse_rpc_request(std::string_view body);

}  // namespace fencepost::tx

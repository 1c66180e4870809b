// The answers of the JSON-RPC endpoint, and which code of JSON-RPC stands for which error of Fencepost. Pure: no I/O.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace fencepost::tx {

// The answer to one call, without its id.
struct RpcReply {
  bool ok = true;
  std::string text;  // a result or an error object, as JSON text

  static RpcReply result(std::string json) { return {true, std::move(json)}; }
  static RpcReply error(std::string json) { return {false, std::move(json)}; }
};

// What the failed call was about.
enum class RpcFailed {
  kRead,
  kSend,  // clients repeat a call by themselves after -32603; a send whose outcome is unknown must not be repeated
};

// The code for clients: 3, 4100, -32700, -32603 … -32600, -32005, -32001, -32000.
std::int64_t rpc_code_of(const Error& error, RpcFailed what);

// An error object. `data` has the error's code and context:
//   {"code": -32000, "message": "…", "data": {"code": "request_conflict", "txId": "…"}}
// A revert has the form that clients decode, and the code beside it:
//   {"code": 3, "message": "execution reverted: …", "data": "0x08c379a0…", "fencepost": {"code": "would_revert"}}
// An error of the chain keeps its code, message and data. An internal error shows only `http_request_id`.
RpcReply rpc_refusal(const Error& error, RpcFailed what, std::string_view http_request_id);

// {"jsonrpc": "2.0", "id": …, "result" or "error": …}. `id` is JSON text.
void append_rpc_reply(std::string& out, std::string_view id, const RpcReply& reply);

}  // namespace fencepost::tx

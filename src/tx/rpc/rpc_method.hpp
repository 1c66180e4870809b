// Which methods the JSON-RPC endpoint answers itself, and what each needs. Pure: no I/O.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace fencepost::tx {

enum class RpcMethodKind {
  kSend,         // eth_sendTransaction: becomes a create
  kSendRaw,      // passed on, unless the sender is managed here
  kAccounts,     // the signers that the key may use
  kChainId,      // from the configuration
  kNetVersion,   // the same, in decimal
  kCount,        // eth_getTransactionCount: of a managed signer, `pending` comes from its cursor
  kTransaction,  // passed on; from the record while the chain does not know the transaction
  kReceipt,      // likewise
  kSubscribe,    // needs a WebSocket, which is not served
  kDenied,       // rpc.denied_methods
  kProxied,      // everything else
};

struct RpcMethod {
  RpcMethodKind kind = RpcMethodKind::kProxied;
  std::string_view scope = "tx:read";
  std::string_view label = "other";  // in metrics; one of a fixed set, whatever a client sends
  // A call that reached an endpoint without an answer may be sent to the next one.
  bool repeatable = false;
};

// `denied`: names, or prefixes with a `*` at the end. They win over everything else.
RpcMethod find_rpc_method(std::string_view name, std::span<const std::string> denied);

// The label of metrics by what was done: send, raw, accounts, chain, count, transaction, receipt, subscribe, denied or
// proxied.
std::string_view class_of(RpcMethodKind kind);
std::span<const RpcMethodKind> rpc_method_kinds();

}  // namespace fencepost::tx

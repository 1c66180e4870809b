#include "tx/rpc/rpc_method.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace fencepost::tx {
namespace {

using Kind = RpcMethodKind;

constexpr std::string_view kWriteScope = "tx:write";
constexpr std::string_view kReadScope = "tx:read";

struct OwnMethod {
  std::string_view name;
  Kind kind;
  std::string_view scope = kReadScope;
};

constexpr OwnMethod kOwn[] = {
    {"eth_sendTransaction", Kind::kSend, kWriteScope},
    {"eth_sendRawTransaction", Kind::kSendRaw, kWriteScope},
    {"eth_accounts", Kind::kAccounts},
    {"eth_requestAccounts", Kind::kAccounts},
    {"eth_chainId", Kind::kChainId},
    {"net_version", Kind::kNetVersion},
    {"eth_getTransactionCount", Kind::kCount},
    {"eth_getTransactionByHash", Kind::kTransaction},
    {"eth_getTransactionReceipt", Kind::kReceipt},
    {"eth_subscribe", Kind::kSubscribe},
    {"eth_unsubscribe", Kind::kSubscribe},
};

// The methods that every node has. They only read, or may be repeated without harm.
constexpr std::string_view kStandard[] = {
    "eth_blobBaseFee",
    "eth_blockNumber",
    "eth_call",
    "eth_coinbase",
    "eth_createAccessList",
    "eth_estimateGas",
    "eth_feeHistory",
    "eth_gasPrice",
    "eth_getBalance",
    "eth_getBlockByHash",
    "eth_getBlockByNumber",
    "eth_getBlockReceipts",
    "eth_getBlockTransactionCountByHash",
    "eth_getBlockTransactionCountByNumber",
    "eth_getCode",
    "eth_getFilterChanges",
    "eth_getFilterLogs",
    "eth_getLogs",
    "eth_getProof",
    "eth_getStorageAt",
    "eth_getTransactionByBlockHashAndIndex",
    "eth_getTransactionByBlockNumberAndIndex",
    "eth_getUncleCountByBlockHash",
    "eth_getUncleCountByBlockNumber",
    "eth_maxPriorityFeePerGas",
    "eth_newBlockFilter",
    "eth_newFilter",
    "eth_newPendingTransactionFilter",
    "eth_protocolVersion",
    "eth_syncing",
    "eth_uninstallFilter",
    "net_listening",
    "net_peerCount",
    "web3_clientVersion",
    "web3_sha3",
};

constexpr std::array<std::pair<Kind, std::string_view>, 11> kClasses{{{Kind::kSend, "send"},
                                                                      {Kind::kSendRaw, "raw"},
                                                                      {Kind::kAccounts, "accounts"},
                                                                      {Kind::kChainId, "chain"},
                                                                      {Kind::kNetVersion, "chain"},
                                                                      {Kind::kCount, "count"},
                                                                      {Kind::kTransaction, "transaction"},
                                                                      {Kind::kReceipt, "receipt"},
                                                                      {Kind::kSubscribe, "subscribe"},
                                                                      {Kind::kDenied, "denied"},
                                                                      {Kind::kProxied, "proxied"}}};

constexpr auto kKinds = [] {
  std::array<Kind, kClasses.size()> kinds{};
  for (std::size_t i = 0; i < kinds.size(); ++i) kinds[i] = kClasses[i].first;
  return kinds;
}();

bool matches(std::string_view name, std::string_view pattern) {
  if (!pattern.ends_with('*')) return name == pattern;
  return name.starts_with(pattern.substr(0, pattern.size() - 1));
}

}  // namespace

RpcMethod find_rpc_method(std::string_view name, std::span<const std::string> denied) {
  if (std::ranges::any_of(denied, [&](const std::string& pattern) { return matches(name, pattern); })) {
    return {.kind = Kind::kDenied};
  }
  if (const auto* own = std::ranges::find(kOwn, name, &OwnMethod::name); own != std::end(kOwn)) {
    return {.kind = own->kind, .scope = own->scope, .label = own->name, .repeatable = true};
  }
  // Other ways to send would bypass the signers' cursors and scopes: eth_sendTransactionSync, eth_resend, ….
  if (name.starts_with("eth_send") || name == "eth_resend") return {.kind = Kind::kDenied};
  if (const auto* found = std::ranges::find(kStandard, name); found != std::end(kStandard)) {
    return {.kind = Kind::kProxied, .scope = kReadScope, .label = *found, .repeatable = true};
  }
  return {};
}

std::string_view class_of(RpcMethodKind kind) {
  return std::ranges::find(kClasses, kind, &std::pair<Kind, std::string_view>::first)->second;
}

std::span<const RpcMethodKind> rpc_method_kinds() {
  return kKinds;
}

}  // namespace fencepost::tx

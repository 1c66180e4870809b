#include "tx/rpc/rpc_method.hpp"

#include <set>

#include <gtest/gtest.h>

#include "tx/options.hpp"

namespace fencepost::tx {
namespace {

using Kind = RpcMethodKind;

RpcMethod method_of(std::string_view name) {
  return find_rpc_method(name, RpcOptions().denied_methods);
}

TEST(rpc_method, knows_what_is_answered_here) {
  EXPECT_EQ(method_of("eth_sendTransaction").kind, Kind::kSend);
  EXPECT_EQ(method_of("eth_sendRawTransaction").kind, Kind::kSendRaw);
  EXPECT_EQ(method_of("eth_accounts").kind, Kind::kAccounts);
  EXPECT_EQ(method_of("eth_requestAccounts").kind, Kind::kAccounts);
  EXPECT_EQ(method_of("eth_chainId").kind, Kind::kChainId);
  EXPECT_EQ(method_of("net_version").kind, Kind::kNetVersion);
  EXPECT_EQ(method_of("eth_getTransactionCount").kind, Kind::kCount);
  EXPECT_EQ(method_of("eth_getTransactionByHash").kind, Kind::kTransaction);
  EXPECT_EQ(method_of("eth_getTransactionReceipt").kind, Kind::kReceipt);
  EXPECT_EQ(method_of("eth_subscribe").kind, Kind::kSubscribe);
  EXPECT_EQ(method_of("eth_call").kind, Kind::kProxied);
}

TEST(rpc_method, only_sending_needs_the_scope_to_write) {
  for (const auto* name : {"eth_sendTransaction", "eth_sendRawTransaction"})
    EXPECT_EQ(method_of(name).scope, "tx:write");
  for (const auto* name : {"eth_accounts", "eth_call", "linea_estimateGas"})
    EXPECT_EQ(method_of(name).scope, "tx:read");
}

TEST(rpc_method, denies_every_other_way_to_send_whatever_is_configured) {
  for (const auto* name : {"eth_sendUnsignedTransaction", "eth_sendTransactionSync", "eth_sendRawTransactionSync",
                           "eth_sendRawTransactionConditional", "eth_sendBundle", "eth_sendPrivateTransaction",
                           "eth_sendUserOperation", "eth_resend"}) {
    EXPECT_EQ(find_rpc_method(name, {}).kind, Kind::kDenied) << name;
  }
}

TEST(rpc_method, denies_by_name_and_by_prefix) {
  for (const auto* name : {"personal_sign", "debug_traceTransaction", "admin_peers", "miner_start", "anvil_setBalance",
                           "evm_mine", "hardhat_reset", "eth_sign", "eth_signTransaction", "eth_signTypedData_v4",
                           "engine_newPayloadV3", "txpool_content", "wallet_sendTransaction"}) {
    EXPECT_EQ(method_of(name).kind, Kind::kDenied) << name;
  }
  const std::vector<std::string> some{"eth_call", "eth_get*", "net_version"};
  EXPECT_EQ(find_rpc_method("eth_call", some).kind, Kind::kDenied);
  EXPECT_EQ(find_rpc_method("eth_callMany", some).kind, Kind::kProxied);
  EXPECT_EQ(find_rpc_method("eth_getBalance", some).kind, Kind::kDenied);
  EXPECT_EQ(find_rpc_method("net_version", some).kind, Kind::kDenied);
  EXPECT_EQ(find_rpc_method("anvil_mine", {}).kind, Kind::kProxied);
}

// A client must not be able to make new series of a metric.
TEST(rpc_method, labels_are_a_fixed_set) {
  EXPECT_EQ(method_of("eth_call").label, "eth_call");
  EXPECT_EQ(method_of("made_up").label, "other");
  EXPECT_EQ(method_of("anvil_mine").label, "other");
  EXPECT_FALSE(method_of("made_up").repeatable) << "it may change something";
  std::set<std::string_view> classes;
  for (const auto kind : rpc_method_kinds()) classes.insert(class_of(kind));
  EXPECT_EQ(classes.size(), 10U);
}

}  // namespace
}  // namespace fencepost::tx

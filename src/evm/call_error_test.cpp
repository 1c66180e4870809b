#include "evm/call_error.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace fencepost::evm {
namespace {

// Error(string) with "nope".
const std::string kNope =
    "0x08c379a0"
    "0000000000000000000000000000000000000000000000000000000000000020"
    "0000000000000000000000000000000000000000000000000000000000000004"
    "6e6f706500000000000000000000000000000000000000000000000000000000";

Error rpc_error(std::string code, std::string message, std::string data = {}) {
  Error error{ErrorKind::kUnprocessable, "rpc_error", std::move(message), {}, {}};
  error.with("rpcCode", std::move(code)).with("reach", "answered");
  if (!data.empty()) error.with("data", std::move(data));
  return error;
}

std::string context(const Error& error, std::string_view key) {
  for (const auto& [name, value] : error.context) {
    if (name == key) return value;
  }
  return "(none)";
}

TEST(call_error, reverts_of_every_node_software_are_recognised) {
  struct Case {
    std::string name;
    Error error;
    std::string reason;
    std::string data;
  };
  const auto quoted = [](const std::string& text) { return '"' + text + '"'; };
  const std::vector<Case> cases{
      {"geth", rpc_error("3", "execution reverted: nope", quoted(kNope)), "nope", kNope},
      {"geth without data", rpc_error("-32000", "execution reverted"), "reverted without a reason", "(none)"},
      {"anvil with empty data", rpc_error("3", "execution reverted", "\"0x\""), "reverted without a reason", "0x"},
      {"anvil halted", rpc_error("-32603", "EVM error InvalidFEOpcode"), "EVM error InvalidFEOpcode", "(none)"},
      {"nethermind", rpc_error("-32015", "VM execution error.", quoted("Reverted " + kNope)), "nope", kNope},
      {"besu", rpc_error("-32000", "Execution reverted", quoted(kNope)), "nope", kNope},
      {"nested", rpc_error("-32603", "execution reverted", R"({"code":3,"data":)" + quoted(kNope) + "}"), "nope",
       kNope},
      {"deeper", rpc_error("3", "execution reverted", R"({"originalError":{"data":)" + quoted(kNope) + "}}"), "nope",
       kNope},
      {"by transaction",
       rpc_error("-32000", "VM Exception while processing transaction: revert nope",
                 R"({"0x12":{"error":"revert","return":)" + quoted(kNope) + R"(},"name":"x"})"),
       "nope", kNope},
      {"words only", rpc_error("-32000", "execution reverted: nope"), "nope", "(none)"},
      {"data that is no hex", rpc_error("3", "execution reverted: nope", "\"what?\""), "nope", "(none)"},
      {"data that is no JSON", rpc_error("3", "execution reverted: nope", "{{"), "nope", "(none)"},
      {"out of gas", rpc_error("-32000", "gas required exceeds allowance (30000000)"),
       "gas required exceeds allowance (30000000)", "(none)"},
  };
  for (const auto& [name, error, reason, data] : cases) {
    SCOPED_TRACE(name);
    const auto made = call_error(error);
    EXPECT_EQ(made.code, "would_revert");
    EXPECT_EQ(made.kind, ErrorKind::kUnprocessable);
    EXPECT_EQ(context(made, "revertReason"), reason);
    EXPECT_EQ(context(made, "revertData"), data);
    EXPECT_TRUE(made.message.ends_with(reason)) << made.message;
  }
}

TEST(call_error, insufficient_funds_are_not_a_revert) {
  EXPECT_EQ(call_error(rpc_error("-32003", "Insufficient funds for gas * price + value")).code, "insufficient_funds");
  EXPECT_EQ(call_error(rpc_error("-32004", "Upfront cost exceeds account balance")).code, "insufficient_funds");
  EXPECT_EQ(call_error(rpc_error("3", "execution reverted: insufficient funds")).code, "would_revert");
}

TEST(call_error, other_errors_are_returned_unchanged) {
  const auto gone =
      unavailable("rpc_unavailable", "no RPC endpoint answered; execution reverted").with("reach", "nowhere");
  EXPECT_EQ(call_error(gone), gone);
  const auto odd = rpc_error("-32000", "missing trie node");
  EXPECT_EQ(call_error(odd), odd);
}

TEST(call_error, long_data_is_decoded_but_not_passed_on) {
  const auto made = call_error(rpc_error("3", "execution reverted", '"' + kNope + std::string(20'000, '0') + '"'));
  EXPECT_EQ(context(made, "revertReason"), "nope");
  EXPECT_EQ(context(made, "revertData"), "(none)");
}

TEST(call_error, data_without_bytes_is_none) {
  EXPECT_EQ(revert_data(""), std::nullopt);
  EXPECT_EQ(revert_data("null"), std::nullopt);
  EXPECT_EQ(revert_data("7"), std::nullopt);
  EXPECT_EQ(revert_data("\"0x123\""), std::nullopt);
  EXPECT_EQ(revert_data(R"({"message":"0x1234"})"), std::nullopt);
  EXPECT_EQ(revert_data("\"0x1234\""), (Bytes{0x12, 0x34}));
}

}  // namespace
}  // namespace fencepost::evm

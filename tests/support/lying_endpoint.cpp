#include "tests/support/lying_endpoint.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <boost/json/serialize.hpp>

#include "tests/support/fencepost.hpp"
#include "tests/support/tx_cluster.hpp"

namespace fencepost::test {

namespace json = boost::json;

namespace {

constexpr std::string_view kForGood = "exceeds block gas limit";

std::int64_t read_number(const json::value& quantity) {
  return std::stoll(std::string(quantity.as_string()), nullptr, 16);
}

// Adds to the number that the method answers with.
RpcRewriter::Change shifted(std::int64_t by) {
  return [by](const json::object&, json::object reply) {
    auto* result = reply.if_contains("result");
    if (result == nullptr || !result->is_string()) return reply;
    *result = fmt::format("0x{:x}", std::max<std::int64_t>(0, read_number(*result) + by));
    return reply;
  };
}

}  // namespace

void forge_receipts(RpcRewriter& endpoint, const json::value& block) {
  const json::object forged{{"transactionIndex", "0x0"},
                            {"blockNumber", block.at("number")},
                            {"blockHash", block.at("hash")},
                            {"from", recipient()},
                            {"to", recipient()},
                            {"gasUsed", "0x5208"},
                            {"cumulativeGasUsed", "0x5208"},
                            {"effectiveGasPrice", "0x1"},
                            {"status", "0x1"},
                            {"type", "0x2"},
                            {"logs", json::array()},
                            {"logsBloom", "0x" + std::string(512, '0')}};
  endpoint.change("eth_getTransactionReceipt", [forged](const json::object& call, json::object reply) {
    reply["result"] = forged;
    reply["result"].as_object()["transactionHash"] = call.at("params").at(0);
    return reply;
  });
}

json::value LyingEndpoint::block(std::int64_t number) const {
  const json::object request{{"jsonrpc", "2.0"},
                             {"id", 1},
                             {"method", "eth_getBlockByNumber"},
                             {"params", json::array{fmt::format("0x{:x}", number), false}}};
  return ask({"POST", chain_, "", json::serialize(request)}).json().at("result");
}

void LyingEndpoint::take_away_base_fees() {
  for (const auto* method : {"eth_getBlockByNumber", "eth_getBlockByHash"}) {
    proxy_.change(method, [](const json::object&, json::object reply) {
      auto* result = reply.if_contains("result");
      if (result != nullptr && result->is_object()) result->as_object().erase("baseFeePerGas");
      return reply;
    });
  }
  proxy_.answer_error("eth_feeHistory", -32601, "the method eth_feeHistory does not exist");
}

void LyingEndpoint::invent_head() {
  proxy_.change("eth_blockNumber", shifted(1'000'000));
  proxy_.change("eth_getBlockByNumber", [](const json::object& call, json::object reply) {
    auto* result = reply.if_contains("result");
    if (call.at("params").at(0) != "latest" || result == nullptr || !result->is_object()) return reply;
    auto& block = result->as_object();
    block["number"] = fmt::format("0x{:x}", read_number(block.at("number")) + 1'000'000);
    block["hash"] = "0x" + std::string(64, 'e');
    return reply;
  });
}

void LyingEndpoint::begin(const PlannedFault& fault, std::int64_t head) {
  touched_before_ = proxy_.touched();
  switch (fault.kind) {
    case FaultKind::kNullTransactions:
      proxy_.answer_null("eth_getTransactionByHash");
      [[fallthrough]];
    case FaultKind::kNullReceipts:
      proxy_.answer_null("eth_getTransactionReceipt");
      proxy_.answer_null("eth_getBlockReceipts");
      return;
    case FaultKind::kForgedReceipts:
      return forge_receipts(proxy_, block(std::max<std::int64_t>(0, head - fault.amount)));
    case FaultKind::kStaleHead:
      return proxy_.lag(std::max<std::int64_t>(0, head - fault.amount));
    case FaultKind::kInventedHead:
      return invent_head();
    case FaultKind::kWrongChain:
      proxy_.change("eth_chainId", [](const json::object&, json::object reply) {
        reply["result"] = "0x1";
        return reply;
      });
      // The chain id is asked for after a failure.
      return proxy_.answer_error("eth_getBlockByNumber", -32005, "limit exceeded");
    case FaultKind::kNoBaseFee:
      return take_away_base_fees();
    case FaultKind::kTruncatedBatches:
      return proxy_.limit_batches(static_cast<std::size_t>(fault.amount), RpcRewriter::TooLarge::kTruncated);
    case FaultKind::kRefusedBatches:
      return proxy_.limit_batches(static_cast<std::size_t>(fault.amount), RpcRewriter::TooLarge::kRefused);
    case FaultKind::kDown:
      return proxy_.fail();
    case FaultKind::kHeldCalls:
      held_ = {"eth_sendRawTransaction", "eth_getTransactionReceipt"};
      if (fault.amount % 2 == 0) held_ = {"eth_getBlockByNumber", "eth_getTransactionCount", "eth_feeHistory"};
      for (const auto& method : held_) proxy_.hold(method);
      return;
    case FaultKind::kDroppedBroadcasts:
      return proxy_.swallow_broadcasts();
    case FaultKind::kLostAnswers:
      return proxy_.answer_error("eth_sendRawTransaction", -32603, "internal error");
    case FaultKind::kRefusedBroadcasts:
      return proxy_.refuse("eth_sendRawTransaction",
                           [](const json::object&) { return std::optional<std::string>("txpool is full"); });
    case FaultKind::kCensorship:
      invent_head();
      [[fallthrough]];
    case FaultKind::kInvalidBroadcasts:
      if (fault.amount % 2 == 0) return proxy_.answer_error("eth_sendRawTransaction", -32000, std::string(kForGood));
      return proxy_.refuse("eth_sendRawTransaction",
                           [](const json::object&) { return std::optional<std::string>(kForGood); });
    case FaultKind::kLowNonces:
      return proxy_.change("eth_getTransactionCount", shifted(-fault.amount));
    default:
      return;
  }
}

std::size_t LyingEndpoint::end() {
  proxy_.pass_all();
  proxy_.lag(std::nullopt);
  proxy_.limit_batches(0);
  proxy_.fail(false);
  proxy_.swallow_broadcasts(false);
  for (const auto& method : held_) proxy_.release(method);
  held_.clear();
  return proxy_.touched() - touched_before_;
}

}  // namespace fencepost::test

#include "tx/service/revert_reasons.hpp"

#include <algorithm>
#include <map>
#include <ranges>

#include <fmt/format.h>

#include <boost/asio/experimental/awaitable_operators.hpp>

namespace fencepost::tx {
namespace {

constexpr std::string_view kReverted = "execution reverted";

std::string no_reason(std::string_view why) {
  return fmt::format("{}; {}", kReverted, why);
}

evm::CallRequest call_again(const evm::TransactionInfo& transaction) {
  evm::CallRequest call;
  call.from = transaction.from;
  call.to = transaction.to;
  call.value = transaction.value;
  call.data = transaction.data;
  call.gas = transaction.gas;
  return call;
}

std::string reason_in(const Error& error) {
  const auto reason = std::ranges::find(error.context, "revertReason", &std::pair<std::string, std::string>::first);
  if (reason == error.context.end()) return no_reason("the chain does not say why: " + error.message);
  // "reverted without a reason"
  const bool none = reason->second.starts_with("reverted");
  return none ? "execution " + reason->second : fmt::format("{}: {}", kReverted, reason->second);
}

std::string explain(const evm::Receipt& receipt, const evm::TransactionInfo& transaction, const Result<Bytes>& again) {
  if (!again && again.error().code == "would_revert") return reason_in(again.error());
  if (transaction.gas && receipt.gas_used >= *transaction.gas) {
    return fmt::format("{}: out of gas, all {} were used", kReverted, to_decimal(*transaction.gas));
  }
  if (!again) return no_reason("the chain does not say why: " + again.error().message);
  return no_reason(fmt::format("the same call succeeds at the end of block {}", receipt.block_number));
}

// Receipts of one block, from one endpoint.
awaitable<> explain_block(evm::ChainConnector& connector, const std::vector<evm::Receipt>& receipts,
                          const std::vector<std::size_t>& places, std::vector<std::string>& out) {
  const auto& first = receipts[places.front()];
  std::vector<std::string> hashes;
  for (const auto place : places) hashes.push_back(receipts[place].tx_hash);
  const auto transactions = co_await connector.transactions(std::move(hashes), first.endpoint);
  std::vector<evm::CallRequest> calls;
  std::vector<std::size_t> called;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (!transactions[i] || !*transactions[i]) continue;
    calls.push_back(call_again(**transactions[i]));
    called.push_back(i);
  }
  if (calls.empty()) co_return;
  const auto answers = co_await connector.calls(std::move(calls), first.block_number, first.endpoint);
  for (std::size_t k = 0; k < called.size(); ++k) {
    const auto place = places[called[k]];
    out[place] = explain(receipts[place], **transactions[called[k]], answers[k]);
  }
}

awaitable<std::vector<std::string>> ask(evm::ChainConnector& connector, std::vector<evm::Receipt> receipts) {
  std::vector<std::string> out(receipts.size(), no_reason("the chain does not say why"));
  std::map<std::pair<std::size_t, std::int64_t>, std::vector<std::size_t>> blocks;
  for (std::size_t i = 0; i < receipts.size(); ++i)
    blocks[{receipts[i].endpoint, receipts[i].block_number}].push_back(i);
  for (const auto& [block, places] : blocks) co_await explain_block(connector, receipts, places, out);
  co_return out;
}

awaitable<> pass(std::chrono::milliseconds time) {
  asio::steady_timer timer(co_await this_executor(), time);
  co_await timer.async_wait(use_tuple);
}

}  // namespace

awaitable<std::vector<std::string>> revert_reasons(evm::ChainConnector& connector, std::vector<evm::Receipt> receipts,
                                                   std::chrono::milliseconds limit) {
  using namespace asio::experimental::awaitable_operators;
  const auto count = receipts.size();
  auto first = ask(connector, std::move(receipts)) || pass(limit);
  auto outcome = co_await std::move(first);
  if (auto* reasons = std::get_if<0>(&outcome)) co_return std::move(*reasons);
  co_return std::vector<std::string>(count, no_reason("the endpoint did not say why in time"));
}

}  // namespace fencepost::tx

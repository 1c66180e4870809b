#include "timelock/workers/block_logs.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "evm/logs/bloom.hpp"
#include "evm/logs/log_refusal.hpp"
#include "evm/reply/log_reply.hpp"

namespace fencepost::timelock {
namespace {

constexpr std::size_t kMaxAddresses = 100;  // in one filter

evm::LogFilter part_of(const evm::LogFilter& filter, std::size_t begin, std::size_t end) {
  return {.addresses = {filter.addresses.begin() + static_cast<std::ptrdiff_t>(begin),
                        filter.addresses.begin() + static_cast<std::ptrdiff_t>(end)},
          .topics = filter.topics};
}

}  // namespace

std::vector<evm::LogFilter> parts_of(const evm::LogFilter& filter) {
  std::vector<evm::LogFilter> parts;
  for (std::size_t begin = 0; begin < filter.addresses.size(); begin += kMaxAddresses) {
    parts.push_back(part_of(filter, begin, std::min(begin + kMaxAddresses, filter.addresses.size())));
  }
  return parts;
}

Error missing_at_endpoint(std::string_view what, const std::string& hash) {
  return unavailable("rpc_incomplete", fmt::format("The endpoint has a log but not its {}.", what)).with("hash", hash);
}

BlockLogs::BlockLogs(evm::Chain& chain, Metrics& metrics)
    : chain_(chain),
      requests_total_(metrics.counter("timelock_log_requests_total", "Requests for logs", {{"chain", chain.name()}})),
      withheld_total_(metrics.counter("timelock_logs_withheld_total",
                                      "Answers without logs that another source showed to be wrong",
                                      {{"chain", chain.name()}})),
      by_receipts_total_(metrics.counter("timelock_blocks_by_receipts_total",
                                         "Blocks whose logs were taken from receipts, since the endpoint refused them",
                                         {{"chain", chain.name()}})) {}

awaitable<Result<std::vector<evm::Log>>> BlockLogs::read(evm::BlockHeader header, evm::LogFilter filter,
                                                         std::size_t endpoint) {
  auto logs = co_await by_hash(header.hash, filter, endpoint);
  if (!logs) co_return logs;
  if (logs->empty() && !header.logs_bloom) {  // headers from the database have none
    const auto again = co_await chain_.connector().headers_by_hash({header.hash}, endpoint);
    if (!again.front()) co_return fail(again.front().error());
    if (*again.front()) header.logs_bloom = (**again.front()).logs_bloom;
  }
  if (logs->empty() && header.logs_bloom && evm::may_log(header, filter)) {
    const auto receipts = co_await in_receipts(header.hash, filter, endpoint);
    if (!receipts) co_return fail(receipts.error());
    if (!receipts->empty()) {
      withheld_total_.Increment();
      co_return fail(unavailable("logs_withheld", "The endpoint returned no logs for a block whose receipts have some.")
                         .with("blockHash", header.hash));
    }
  }
  for (auto& log : *logs) log.block_timestamp = header.timestamp;  // whatever the log says
  co_return logs;
}

// Each refusal halves a part, so there are at most twice as many requests as contracts.
awaitable<Result<std::vector<evm::Log>>> BlockLogs::by_hash(const std::string& block_hash, const evm::LogFilter& filter,
                                                            std::size_t endpoint) {
  std::vector<evm::Log> logs;
  auto parts = parts_of(filter);
  while (!parts.empty()) {
    const auto part = std::move(parts.back());
    parts.pop_back();
    requests_total_.Increment();
    auto found = co_await chain_.connector().logs_in_block(block_hash, part, endpoint);
    if (found) {
      std::ranges::move(*found, std::back_inserter(logs));
      continue;
    }
    if (!evm::is_range_too_large(found.error())) co_return found;
    const auto count = part.addresses.size();
    if (count == 1) co_return co_await instead_of_refused(block_hash, filter, endpoint, std::move(found.error()));
    parts.push_back(part_of(part, 0, count / 2));
    parts.push_back(part_of(part, count / 2, count));
  }
  std::ranges::sort(logs, {}, &evm::Log::log_index);
  co_return logs;
}

awaitable<Result<std::vector<evm::Log>>> BlockLogs::in_receipts(const std::string& block_hash,
                                                                const evm::LogFilter& filter, std::size_t endpoint) {
  const auto block = co_await chain_.connector().block_by_hash(block_hash, endpoint);
  if (!block) co_return fail(block.error());
  if (!*block) co_return fail(missing_at_endpoint("block", block_hash));
  const auto receipts = co_await chain_.connector().receipts_in_block(block_hash, (*block)->transactions, endpoint);
  if (!receipts) co_return fail(receipts.error());
  if (receipts->size() < (*block)->transactions.size()) co_return fail(missing_at_endpoint("receipts", block_hash));
  co_return evm::parse_receipt_logs(*receipts, filter);
}

awaitable<Result<std::vector<evm::Log>>> BlockLogs::instead_of_refused(const std::string& block_hash,
                                                                       const evm::LogFilter& filter,
                                                                       std::size_t endpoint, Error refusal) {
  // Where a bloom does not cover all logs, receipts do not have all of them, either.
  if (evm::bloom_covers_all_logs(chain_.id())) {
    auto logs = co_await in_receipts(block_hash, filter, endpoint);
    if (logs) {
      by_receipts_total_.Increment();
      co_return logs;
    }
    refusal = std::move(logs.error());
  }
  co_return fail(unavailable("logs_refused",
                             "The endpoint refuses the logs of one contract in a single block as too many, and the "
                             "receipts of the block cannot be used instead: use another endpoint.")
                     .with("blockHash", block_hash)
                     .with("reason", refusal.to_string()));
}

}  // namespace fencepost::timelock

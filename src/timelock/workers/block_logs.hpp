// The logs of single blocks, of one endpoint, within its limits:
//   1. by the block's hash, for many contracts at once
//   2. if the endpoint refuses that as too many logs: for half of the contracts, and so on
//   3. if it refuses even one contract: out of the receipts of the block
//
// An empty answer is believed only if the block's bloom filter or the receipts agree.
//
// Pinned to the chain's loop.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "evm/chain.hpp"
#include "runtime/metrics.hpp"

namespace fencepost::timelock {

// The filter in parts that nodes accept: they refuse more than some hundred addresses.
std::vector<evm::LogFilter> parts_of(const evm::LogFilter& filter);

// kUnavailable `rpc_incomplete`
Error missing_at_endpoint(std::string_view what, const std::string& hash);

class BlockLogs {
 public:
  BlockLogs(evm::Chain& chain, Metrics& metrics);

  // Sorted by index, each with the header's timestamp. Errors: `logs_withheld` when the endpoint returns none and the
  // receipts have some; `logs_refused` when it refuses all three ways; `rpc_incomplete`; as ChainConnector.
  awaitable<Result<std::vector<evm::Log>>> read(evm::BlockHeader header, evm::LogFilter filter, std::size_t endpoint);

 private:
  awaitable<Result<std::vector<evm::Log>>> by_hash(const std::string& block_hash, const evm::LogFilter& filter,
                                                   std::size_t endpoint);
  awaitable<Result<std::vector<evm::Log>>> in_receipts(const std::string& block_hash, const evm::LogFilter& filter,
                                                       std::size_t endpoint);
  // `refusal`: what the endpoint said about the logs of one contract.
  awaitable<Result<std::vector<evm::Log>>> instead_of_refused(const std::string& block_hash,
                                                              const evm::LogFilter& filter, std::size_t endpoint,
                                                              Error refusal);

  evm::Chain& chain_;
  Metrics::Counter& requests_total_;
  Metrics::Counter& withheld_total_;
  Metrics::Counter& by_receipts_total_;
};

}  // namespace fencepost::timelock

// What the two scanners of a chain share.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "evm/chain.hpp"
#include "pg/database.hpp"
#include "runtime/metrics.hpp"

namespace fencepost::timelock {

struct ScannerParts {
  evm::Chain& chain;
  pg::Database& database;
  Metrics& metrics;
  std::string node;
};

// How long a node has a chain for itself after its last step.
inline constexpr std::chrono::seconds kScanClaim{10};
inline constexpr std::int64_t kBlocksAtOnce = 50;  // by hash

// Requires: all of them are in the window.
inline std::vector<evm::BlockHeader> headers_between(const evm::HeaderWindow& window, std::int64_t first,
                                                     std::int64_t last) {
  std::vector<evm::BlockHeader> headers;
  headers.reserve(static_cast<std::size_t>(last - first + 1));
  for (auto number = first; number <= last; ++number) headers.push_back(*window.find(number));
  return headers;
}

// Whether the endpoint is on the branch of the follower: it has the block right below the window. One that is stuck,
// perhaps on a branch of its own, proves nothing about older blocks. Errors: `endpoint_behind`, `chain_moved`; as
// ChainConnector. Requires: the window is not empty.
awaitable<Result<void>> check_branch(evm::Chain& chain, std::size_t endpoint);

// Handles the error of a log that cannot be decoded: its contract is halted from `first` on, the first block of which
// nothing was stored, and the others go on. False: it is another error.
awaitable<bool> halted_contract(const ScannerParts& parts, const Error& error, std::int64_t first);

template <class T>
T value_or_throw(Result<T> result) {
  if (!result) throw Exception(result.error());
  return std::move(*result);
}

}  // namespace fencepost::timelock

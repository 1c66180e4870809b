// Receipts that must exist, because a block on the node's own branch lists the transaction, but that no endpoint has
// returned yet.
//
// In memory only: after a restart or a takeover, the follower's blocks and the check of stale receipts find them again.
// All calls must be made on one loop.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "evm/header_window.hpp"
#include "evm/listed_transactions.hpp"
#include "runtime/metrics.hpp"

namespace fencepost::tx {

class MissingReceipts {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  // Receipts beyond this limit are left to the check of stale receipts.
  static constexpr std::size_t kLimit = 10'000;

  MissingReceipts(std::string chain, Metrics& metrics);

  // Adds a receipt, due at once. For a known receipt, only updates the block that lists the transaction.
  void add(const std::string& tx_hash, evm::Listing listing);
  void remove(const std::string& tx_hash);
  // Removes receipts whose block the window has replaced. If another block lists the transaction, add() follows.
  void forget_dead(const evm::HeaderWindow& window);

  struct Due {
    std::string tx_hash;
    std::size_t tries = 0;  // before this one: the caller asks another endpoint each time
  };
  // At most `limit` receipts that are due now, the longest due first. Each is due again after 1 s, 2 s, 4 s, … 30 s.
  std::vector<Due> take_due(TimePoint now, std::size_t limit);

  // The block that lists the transaction; nothing when its receipt is not missing.
  std::optional<evm::Listing> find(const std::string& tx_hash) const;

  std::size_t size() const { return missing_.size(); }

 private:
  struct Entry {
    evm::Listing listing;
    TimePoint next{};
    std::size_t tries = 0;
  };

  void update_gauge();

  std::string chain_;
  Metrics::Gauge& gauge_;
  std::string told_block_;  // the last block that was logged
  std::unordered_map<std::string, Entry> missing_;
};

}  // namespace fencepost::tx

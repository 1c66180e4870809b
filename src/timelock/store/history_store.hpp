// The part of a contract's past that is still to be scanned. Used by the scanner.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pg/pool.hpp"
#include "pg/transaction.hpp"
#include "timelock/model/standard.hpp"

namespace fencepost::timelock {

// A watched contract as the scanner sees it.
struct Watched {
  std::string address;
  Standard standard = Standard::kCompound;
  std::int64_t history_next = 0;
  std::int64_t history_last = 0;             // below history_next: complete
  std::optional<std::int64_t> rules_wanted;  // set: delay, admin and so on must be read from the contract again

  bool has_history() const { return history_next <= history_last; }
};

// Without those that were halted.
awaitable<std::vector<Watched>> watched_contracts(pg::Pool& pool, std::int64_t chain_id);

// A range of blocks that several contracts need at once.
struct HistoryRange {
  std::vector<std::string> addresses;
  std::int64_t first = 0;
  std::int64_t last = 0;
};

// The next range: the contracts that are furthest behind, up to where another one joins them. Pure.
std::optional<HistoryRange> next_history(const std::vector<Watched>& contracts);

// Notes that the blocks of the range up to `through` were scanned, for all of its contracts. A contract whose history
// is complete now may announce its flows. False: one of them was changed meanwhile, and nothing was written.
awaitable<bool> advance_history(pg::Transaction& tx, std::int64_t chain_id, const HistoryRange& range,
                                std::int64_t through);

// Stops the scan of a contract that emitted something that cannot be decoded, from that block on. The other contracts
// go on. A new from_block starts it again (timelock_store.hpp).
awaitable<> halt_contract(pg::Pool& pool, std::int64_t chain_id, std::string address, std::int64_t block,
                          std::string error);

// Shown with the contract until a step succeeds.
awaitable<> note_history_failure(pg::Pool& pool, std::int64_t chain_id, std::vector<std::string> addresses,
                                 std::string error);

}  // namespace fencepost::timelock

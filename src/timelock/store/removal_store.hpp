// Removes contracts with all that is stored of them, however much that is, in transactions of bounded size:
//   1. The contract is marked: users no longer see it, and nothing of it is scanned, announced or moved by time.
//   2. Its flows and its events are deleted in parts.
//   3. Its row is deleted, and with it the mark.
// A removal that is interrupted is finished by the next finish_removal of the contract: by the sweeper of its chain
// (workers/removal_sweeper.hpp), or when it is imported again. Two at once are safe: each part holds the marked row.
//
// Functions throw as pg::Pool does.
#pragma once

#include <cstdint>
#include <vector>

#include "pg/pool.hpp"
#include "timelock/store/timelock_store.hpp"

namespace fencepost::timelock {

inline constexpr std::int64_t kRowsRemovedAtOnce = 10'000;

// The first step. False: there is no such contract.
awaitable<bool> begin_removal(pg::Pool& pool, ContractKey key);
// The other steps. Does nothing if the contract is not marked.
awaitable<> finish_removal(pg::Pool& pool, ContractKey key);

// The marked contracts of a chain.
awaitable<std::vector<ContractKey>> unfinished_removals(pg::Pool& pool, std::int64_t chain_id);

}  // namespace fencepost::timelock

// How far each chain has been scanned, and which node scans it: the table timelock_scan. Functions throw as pg::Pool
// does.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "pg/pool.hpp"
#include "pg/transaction.hpp"

namespace fencepost::timelock {

// A block that was scanned.
struct ScanPoint {
  std::int64_t number = 0;
  std::string hash;
  std::int64_t timestamp = 0;  // seconds since 1970, as the chain says

  friend bool operator==(const ScanPoint&, const ScanPoint&) = default;
};

// What a scanner must know before it asks the chain; a commit compares all of it.
struct ScanState {
  ScanPoint point;
  std::int64_t contracts = 0;  // grows with each change of the set of contracts
  std::int64_t reorgs = 0;

  friend bool operator==(const ScanState&, const ScanState&) = default;
};

// Claims the chain for this node, or renews its claim. nullopt: another node scans it, or nothing is watched there.
awaitable<std::optional<ScanState>> claim_scan(pg::Pool& pool, std::int64_t chain_id, std::string node,
                                               std::chrono::milliseconds duration);
awaitable<> release_scan(pg::Pool& pool, std::int64_t chain_id, std::string node);
// Remembers why the last step failed; empty: it did not.
awaitable<> note_scan_failure(pg::Pool& pool, std::int64_t chain_id, std::string error);

// Locks the row until the end of the transaction. `alone`: also against other readers of the clock.
enum class ScanLock { kShared, kAlone };
awaitable<std::optional<ScanState>> lock_scan(pg::Transaction& tx, std::int64_t chain_id, ScanLock lock);

// Without a lock; in a snapshot, it belongs to the flows that the snapshot has.
awaitable<std::optional<ScanState>> read_scan(pg::Transaction& tx, std::int64_t chain_id);

// A chain as its scanner sees it, for people.
struct ScanReport {
  std::int64_t chain_id = 0;
  ScanPoint point;
  TimePoint moved_at;  // when the chain's clock last moved
  std::string owner_node;
  bool claimed = false;
  std::optional<TimePoint> failing_since;
  std::optional<std::string> last_error;
};
awaitable<std::vector<ScanReport>> scan_reports(pg::Pool& pool);

namespace sql {
// Moves the chain to another block, within the transaction that has locked its row.
extern const pg::Statement kMoveScan;
// The first statement of a transaction that changes the set of contracts: it keeps out a scanner that has asked the
// chain for the old set.
extern const pg::Statement kTouchContracts;
}  // namespace sql

}  // namespace fencepost::timelock

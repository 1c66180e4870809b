// The fence: the statements with which every write for a signer begins. docs/correctness.md gives the reasons.
//
// A fenced write is one batch (one round trip, one commit) of three statements:
//   1. Locks the lease rows FOR KEY SHARE, so that a takeover waits until this transaction has ended.
//   2. Locks the rows that the write will change: nonce cursors, or open transactions (tx_open). Locks them only where
//      the lease is this node's, so that a node that lost the lease never blocks the new owner.
//   3. The write, which the caller adds. It compares owner, token and expiry with the locked lease, and changes nothing
//      where they differ.
//
// Locks are taken in one order everywhere: leases, cursors, tx_open by (signer, nonce), managed_tx in the same order,
// then the log. A statement that waits for another session's lock for longer than kLockPatience fails, and the whole
// batch with it.
//
// Statement 3 looks up each item's rows with LATERAL (… LIMIT 1). A plain join would read tx_open as a whole when the
// plan was made while tx_open was empty, and plans are kept. Rows that statement 2 has locked are then written by their
// ctid, which cannot change.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/uuid.hpp"
#include "pg/batch.hpp"
#include "pg/pool.hpp"
#include "tx/model/lease.hpp"

namespace fencepost::tx {

inline constexpr std::chrono::milliseconds kLockPatience{1000};

namespace sql {
// Constants, so that the protocol tests can run them one at a time.
extern const pg::Statement kLockLeases;   // $1 chains, $2 signers
extern const pg::Statement kLockCursors;  // $1 node, $2 chains, $3 signers, $4 tokens
extern const pg::Statement kLockRows;     // $1 node, $2 transactions
}  // namespace sql

// The leases that a write relies on: one entry for each of its items, as columns for unnest.
struct FencedLeases {
  std::vector<std::int64_t> chains;
  std::vector<std::string> signers;
  std::vector<std::int64_t> tokens;

  FencedLeases() = default;
  explicit FencedLeases(const std::vector<SignerLease>& leases);
  void add(const SignerLease& lease);
};

// The same for a write that changes open transactions: entry i is about transaction ids[i].
struct FencedRows : FencedLeases {
  std::vector<Uuid> ids;

  void add(const SignerLease& lease, const Uuid& id);
};

// Statements 1 and 2 and the lock timeout. The caller adds statement 3.
pg::Batch fence_cursors(const std::string& node, const FencedLeases& leases);
pg::Batch fence_rows(const std::string& node, const FencedRows& rows);
pg::Batch fence_cursors_and_rows(const std::string& node, const FencedRows& rows);

// Returns the result of statement 3. Uses an exclusive connection, because it may wait for locks. Throws as
// Connection::run.
awaitable<pg::ResultSet> run_fenced(pg::Pool& pool, pg::Batch batch);

// The outcome of statement 3 for one transaction.
enum class StepOutcome {
  kDone,
  kFenced,  // this node no longer holds the lease: drop everything in memory about this signer
  kMoved,   // another writer changed the transaction first: read it again
};
// Reads a row with the column `outcome`.
StepOutcome read_outcome(const pg::Row& row);

}  // namespace fencepost::tx

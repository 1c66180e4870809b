// The SQL of signer_lease. docs/correctness.md explains the locks, and lease_protocol_pgtest.cpp tries to break them.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "pg/batch.hpp"
#include "pg/pool.hpp"
#include "tx/model/lease.hpp"
#include "tx/options.hpp"

namespace fencepost::tx {

// A lease of any node, as a reader sees it.
struct LeaseView {
  SignerKey key;
  std::string owner_node;  // empty: released
  std::int64_t fencing_token = 0;
  bool expired = true;                      // any node may take it
  std::string advertise_url;                // of the owner; empty when the owner is not known or has none
  bool registered = false;                  // the owner is in the table of nodes
  std::chrono::milliseconds silent_for{0};  // since the last renewal
};

// The error code of acquire_leases when a session that does not belong to a node holds a lock on the lease.
inline constexpr std::string_view kLeaseLocked = "lease_locked";

namespace sql {
// Constants, so that the protocol tests can run them one at a time.
extern const pg::Statement kPrepareLeases;      // $1 chain, $2 signers
extern const pg::Statement kPrepareCursors;     // $1 chain, $2 signers
extern const pg::Statement kAcquireLeases;      // $1 node, $2 chain, $3 signers, $4 duration ms, $5 skew ms
extern const pg::Statement kRenewLeases;        // $1 node, $2 chains, $3 signers, $4 tokens, $5 duration ms, $6 skew ms
extern const pg::Statement kReleaseLeases;      // $1 node, $2 chains, $3 signers, $4 tokens
extern const pg::Statement kTerminateBlockers;  // $1 the waiting backend's pid
extern const pg::Statement kMakeDue;            // $1 chain, $2 signers
extern const pg::Statement kOrphans;            // $1 chains, $2 skew ms, $3 limit, $4 node
extern const pg::Statement kIdle;               // $1 chains, $2 signers
}  // namespace sql

// Takes the leases that are free, expired or already this node's, and returns them without the others. A lease that was
// taken over, not renewed, has a new token, and its open transactions are due at once. Waits for writers of the old
// owner that hold a lock; after one second their sessions are terminated. Blocks no shared connection. Throws as
// Pool::run, or kUnavailable `lease_locked` when a session that does not belong to a node holds a lock for three
// seconds: then no lease is taken.
awaitable<std::vector<SignerLease>> acquire_leases(pg::Pool& pool, std::string node, std::int64_t chain_id,
                                                   std::vector<std::string> signers, LeaseTimes times);

// Returns the leases that were renewed. A lease that was not renewed is lost, or a takeover has it locked at the
// moment.
awaitable<std::vector<SignerLease>> renew_leases(pg::Pool& pool, std::string node, std::vector<SignerLease> leases,
                                                 LeaseTimes times);

// Releases the leases, so that the next owner need not wait, and notifies all nodes on `kLeaseChannel`. Returns those
// that were released: a lease that another session has locked is skipped. Throws CommitUnknown when there is no answer
// within `timeout`.
awaitable<std::vector<SignerLease>> release_leases(pg::Pool& pool, std::string node, std::vector<SignerLease> leases,
                                                   std::optional<std::chrono::milliseconds> timeout = std::nullopt);

inline constexpr std::string_view kLeaseChannel = "fencepost_lease";

// One result per key, in order; nullopt where no node ever led the signer.
awaitable<std::vector<std::optional<LeaseView>>> find_leases(pg::Pool& pool, std::vector<SignerKey> keys,
                                                             LeaseTimes times);

// Orphaned signers: those with open transactions, or that wait for an operator, whose lease no node holds. With `node`,
// only those whose keys that node has. At most `limit`, in random order, so that two nodes do not compete for the same
// ones.
awaitable<std::vector<SignerKey>> find_orphans(pg::Pool& pool, std::vector<std::int64_t> chains, LeaseTimes times,
                                               std::size_t limit, std::optional<std::string> node = std::nullopt);

// The signers among `leases` without open transactions that do not wait for an operator.
awaitable<std::vector<SignerKey>> idle_signers(pg::Pool& pool, std::vector<SignerLease> leases);

}  // namespace fencepost::tx

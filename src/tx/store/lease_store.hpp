// The SQL of signer_lease. docs/correctness.md explains the locks, lease_protocol_pgtest.cpp tries to
// break them.
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

// Somebody's lease, as a reader sees it.
struct LeaseView {
  SignerKey key;
  std::string owner_node;  // empty: released
  std::int64_t fencing_token = 0;
  bool expired = true;        // so that anybody may take it
  std::string advertise_url;  // of the owner; empty when it is not known or cannot be reached
};

// The code of acquire_leases' refusal when a session that is no node's is in the way.
inline constexpr std::string_view kLeaseLocked = "lease_locked";

namespace sql {
// As constants, so that the protocol's tests can drive them one statement at a time.
extern const pg::Statement kPrepareLeases;      // $1 chain, $2 signers
extern const pg::Statement kPrepareCursors;     // $1 chain, $2 signers
extern const pg::Statement kAcquireLeases;      // $1 node, $2 chain, $3 signers, $4 duration ms, $5 skew ms
extern const pg::Statement kRenewLeases;        // $1 node, $2 chains, $3 signers, $4 tokens, $5 duration ms, $6 skew ms
extern const pg::Statement kReleaseLeases;      // $1 node, $2 chains, $3 signers, $4 tokens
extern const pg::Statement kTerminateBlockers;  // $1 the waiting backend's pid
extern const pg::Statement kMakeDue;            // $1 chain, $2 signers
extern const pg::Statement kOrphans;            // $1 chains, $2 skew ms, $3 limit
extern const pg::Statement kIdle;               // $1 chains, $2 signers
}  // namespace sql

// Takes those that are free, expired or already this node's; the others are left out of the answer. A lease that was
// taken, rather than renewed, has a new token, and everything open under it is due at once. Waits for writers of the
// old owner that still hold it; after a second their sessions are ended. Blocks no shared connection. Throws as
// Pool::run, or kUnavailable `lease_locked` when a session that is no node's holds one of them for three seconds:
// none is taken then.
awaitable<std::vector<SignerLease>> acquire_leases(pg::Pool& pool, std::string node, std::int64_t chain_id,
                                                   std::vector<std::string> signers, LeaseTimes times);

// The ones that are renewed. One that is not may be locked by somebody's takeover at the moment, or lost.
awaitable<std::vector<SignerLease>> renew_leases(pg::Pool& pool, std::string node, std::vector<SignerLease> leases,
                                                 LeaseTimes times);

// Gives them up, so that the next one need not wait; tells all nodes on `kLeaseChannel`. One that somebody keeps locked
// is not waited for, and runs out by itself. Throws CommitUnknown when there is no answer within `timeout`.
awaitable<> release_leases(pg::Pool& pool, std::string node, std::vector<SignerLease> leases,
                           std::optional<std::chrono::milliseconds> timeout = std::nullopt);

inline constexpr std::string_view kLeaseChannel = "fencepost_lease";

// One for each, in order; none where the signer was never led.
awaitable<std::vector<std::optional<LeaseView>>> find_leases(pg::Pool& pool, std::vector<SignerKey> keys,
                                                             LeaseTimes times);

// Signers with unfinished work whose lease nobody holds: at most `limit`, in no order that two nodes would share.
awaitable<std::vector<SignerKey>> find_orphans(pg::Pool& pool, std::vector<std::int64_t> chains, LeaseTimes times,
                                               std::size_t limit);

// Of those, the ones without unfinished work.
awaitable<std::vector<SignerKey>> idle_signers(pg::Pool& pool, std::vector<SignerLease> leases);

}  // namespace fencepost::tx

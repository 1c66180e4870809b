// Which nodes can lead or sign for a signer, and the open work that no node can lead or sign for. A node is alive while
// its heartbeat is at most `silence` older than the newest one. A live node that does not say what it can do, because
// it has the version before, is assumed to have every key and every chain.
//
// Functions throw as pg::Pool does.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pg/batch.hpp"
#include "pg/pool.hpp"
#include "tx/store/lease_store.hpp"

namespace fencepost::tx {

namespace sql {
extern const pg::Statement kKeylessOrphans;  // $1 chains, $2 wait ms, $3 limit, $4 silence ms
extern const pg::Statement kKeyElsewhere;    // $1 node, $2 chains, $3 signers, $4 tokens, $5 silence ms
extern const pg::Statement kKeyHolder;       // $1 chain, $2 signer, $3 node, $4 silence ms
extern const pg::Statement kChainHolder;     // $1 chain, $2 node, $3 silence ms
extern const pg::Statement kKnownSigner;     // $1 chain, $2 signer
extern const pg::Statement kUnledWork;       // $1 silence ms, $2 limit, $3 leaderless after ms
}  // namespace sql

// Orphaned signers, as find_orphans, whose key and chain no live node has, and whose leases expired or were released at
// least `wait` ago: the node that has the key may only be restarting. On an exclusive connection.
awaitable<std::vector<SignerKey>> find_keyless_orphans(pg::Pool& pool, std::vector<std::int64_t> chains,
                                                       std::chrono::milliseconds wait,
                                                       std::chrono::milliseconds silence, std::size_t limit);

// Those of the leases that a live node other than `node` is known to be able to hold: it has the key and the chain. On
// an exclusive connection.
awaitable<std::vector<SignerLease>> led_elsewhere(pg::Pool& pool, std::string node, std::vector<SignerLease> leases,
                                                  std::chrono::milliseconds silence);

// A live node other than `node` that has the signer's key and the chain: the leader if it is one of them, otherwise as
// a lease that has expired. nullopt when there is none.
awaitable<std::optional<LeaseView>> find_key_holder(pg::Pool& pool, SignerKey key, std::string node,
                                                    std::chrono::milliseconds silence);

// Whether the signer was ever led on this chain, or a node that is not forgotten, alive or not, has its key and the
// chain. So a node that has the key may come back.
awaitable<bool> is_known_signer(pg::Pool& pool, SignerKey key);

// As find_key_holder, for a node that has the chain.
awaitable<std::optional<LeaseView>> find_chain_holder(pg::Pool& pool, std::int64_t chain_id, std::string node,
                                                      std::chrono::milliseconds silence);

// Why no node finishes the work of a signer.
inline constexpr std::string_view kChainNotConfigured = "chain_not_configured";
inline constexpr std::string_view kNoKey = "no_key";
inline constexpr std::string_view kNoLeader = "no_leader";

// Far longer than a takeover takes.
inline constexpr std::chrono::milliseconds kLeaderlessAfter = std::chrono::minutes(1);

// A signer with open transactions that no live node can lead (chain_not_configured) or sign for (no_key), or whose
// lease no node has taken for kLeaderlessAfter although one could (no_leader). Under no_key, what is mined does not
// count: it ends without the key.
struct UnledSigner {
  SignerKey key;
  std::string reason;
  std::int64_t transactions = 0;
};
// At most `limit` signers, in the order of their keys. Counts at most 10,000 open transactions of each.
awaitable<std::vector<UnledSigner>> unled_work(pg::Pool& pool, std::chrono::milliseconds silence, std::size_t limit);

}  // namespace fencepost::tx

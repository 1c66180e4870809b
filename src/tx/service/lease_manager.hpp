// The leases of this node: acquires, renews and releases them, and detects that one is lost.
//
// The leases in memory only save queries. PostgreSQL decides whether a lease is still valid, in the fence of each
// write. When a write is fenced, the writer calls `lost`, which removes the lease from memory.
//
// Runs on one loop. Methods marked "any thread" or "any loop" may be called from elsewhere.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "pg/database.hpp"
#include "runtime/async.hpp"
#include "runtime/completion.hpp"
#include "runtime/metrics.hpp"
#include "runtime/worker.hpp"
#include "tx/model/lease.hpp"
#include "tx/options.hpp"
#include "tx/service/chain_counters.hpp"
#include "tx/store/lease_store.hpp"

#include "cluster/node_registry.hpp"

namespace fencepost::tx {

class LeaseManager {
 public:
  // Called with leases that were just acquired, before their first use: reads the chain's nonces and checks the work of
  // the former owner. The callback handles its own errors.
  using OnTaken = std::function<awaitable<>(std::vector<SignerLease>)>;

  // The node's keys. `all` is called when the node is registered, and not before.
  struct Keys {
    std::function<bool(const std::string& signer)> has;
    std::function<std::vector<std::string>()> all;
  };
  LeaseManager(Executor home, pg::Database& database, cluster::NodeIdentity identity, LeaseOptions options,
               const ChainNames& chains, Keys keys, Metrics& metrics);

  // Registers the node and what it can do, or renews its heartbeat. On the loop.
  awaitable<> register_node(pg::Pool& pool);

  // Requires: called before start().
  void on_taken(OnTaken callback) { on_taken_.push_back(std::move(callback)); }
  void start();
  // Releases all leases, so that other nodes need not wait for them to expire. Waits at most half of `limit` for the
  // database to confirm that.
  awaitable<> stop(std::chrono::milliseconds limit = std::chrono::seconds(2));
  // Looks for orphaned signers now, because some node released a lease. Any thread.
  void look_for_orphans() { adopt_worker_.wake(); }

  // The lease, as far as this node knows; nullopt when this node does not hold it. Counts as a use. Any thread.
  std::optional<SignerLease> held(const SignerKey& key);
  // The leases of one chain. Any thread.
  std::vector<SignerLease> held_on(std::int64_t chain_id);
  // Returns this node's lease, and acquires it first if it is free. Returns the LeaseView of the owner when another
  // node holds it. Returns the view of another live node that may lead, while this node does not lead on the chain or
  // has no key of the signer; but acquires a free lease all the same when `last_resort` is set. Any loop. Throws what
  // the database throws.
  awaitable<std::variant<SignerLease, LeaseView>> lead(SignerKey key, bool last_resort = false);
  // Whether this node has the signer's key. Without it, this node leads only to finish what was sent, and only while no
  // live node has the key.
  bool can_sign(const SignerKey& key) const { return keys_.has(key.signer); }
  // A live node, other than this one, that has the signer's key and the chain; or that has the chain. Any loop.
  awaitable<std::optional<LeaseView>> key_holder(SignerKey key);
  awaitable<std::optional<LeaseView>> chain_holder(std::int64_t chain_id);
  // Whether a node that has the key was seen before, so that it may come back. Any loop.
  awaitable<bool> is_known(SignerKey key);
  // Whether the owner of the lease is running, as far as its row tells: it renews its leases, or has just got this one.
  bool is_alive(const LeaseView& leader) const;
  // Whether any of this node's endpoints of the chain answers. After some seconds without one the node releases its
  // leases of the chain, if another node is alive that may take them, and does not lead there again before its
  // endpoints have answered for some seconds. It does so once in an outage, so that leases come to rest. Any thread.
  void set_chain_usable(std::int64_t chain_id, bool usable);

  // Called when a write was fenced: counts it and forgets the lease, unless this node holds a newer token by now. Any
  // thread.
  void lost(const SignerLease& lease);

  const cluster::NodeIdentity& identity() const { return identity_; }
  const LeaseOptions& options() const { return options_; }

 private:
  using Clock = std::chrono::steady_clock;
  using Answer = std::variant<SignerLease, LeaseView>;
  struct Known {
    std::int64_t token = 0;
    Clock::time_point until;  // a lower bound: counted from before the request was sent
    Clock::time_point last_use;
  };
  // What is known about the endpoints of one chain.
  struct ChainHealth {
    bool usable = true;
    Clock::time_point since;  // of `usable`
    bool given_up = false;    // this node leads nothing here until the endpoints have answered for a while
    bool spent = false;       // the leases were given up once in this outage
  };
  using Waiting = Completion<std::expected<Answer, std::exception_ptr>>;
  using Refusals = std::map<SignerKey, std::exception_ptr>;  // leases that could not be acquired, and why

  awaitable<Answer> lead_here(SignerKey key);
  awaitable<> take_wanted();
  awaitable<std::map<SignerKey, Answer>> take_or_name(std::vector<SignerKey> keys, Refusals& refusals);
  awaitable<std::vector<SignerLease>> take(std::int64_t chain_id, std::vector<std::string> signers, Refusals& refusals);
  awaitable<std::vector<SignerLease>> acquire(std::int64_t chain_id, std::vector<std::string> signers,
                                              Refusals& refusals);
  awaitable<std::vector<std::optional<SignerLease>>> acquire_once(std::int64_t chain_id,
                                                                  std::span<const std::string> signers);
  awaitable<> prepare(std::vector<SignerLease> taken);
  awaitable<Worker::Next> renew();
  awaitable<Worker::Next> send_heartbeat();
  awaitable<Worker::Next> adopt();
  awaitable<std::size_t> adopt_all(std::vector<SignerKey> orphans);
  awaitable<std::size_t> adopt_keyless();
  awaitable<> release_keyless();
  awaitable<> release_idle();
  awaitable<std::size_t> release(std::vector<SignerLease> leases);
  // Releases the leases of chains that this node cannot reach, and notices chains that it can reach again.
  awaitable<> give_up_unreachable();
  awaitable<> give_up(std::int64_t chain_id);
  awaitable<bool> others_alive();
  awaitable<std::vector<SignerLease>> leases_for_others(std::vector<SignerLease> leases);
  std::vector<std::int64_t> chains_to_lead();
  void lead_again(std::int64_t chain_id);
  // Another node that may lead in place of this one; nothing: this node may lead.
  awaitable<std::optional<LeaseView>> stand_in(SignerKey key);
  bool has_given_up(std::int64_t chain_id);
  std::vector<SignerLease> all();

  Executor home_;
  pg::Database& database_;
  cluster::NodeIdentity identity_;
  LeaseOptions options_;
  std::vector<std::int64_t> chains_;
  Keys keys_;
  std::shared_ptr<const cluster::NodeAbilities> abilities_;  // null before the node is registered
  std::vector<OnTaken> on_taken_;

  std::mutex mutex_;  // guards known_ and health_
  std::unordered_map<SignerKey, Known> known_;
  std::map<std::int64_t, ChainHealth> health_;  // only chains whose endpoints failed since the start
  std::map<SignerKey, std::vector<std::shared_ptr<Waiting>>> wanted_;  // callers that wait; on the loop only
  bool taking_ = false;
  std::shared_ptr<Completion<bool>> releasing_;  // set while idle leases are released
  pg::Pool renewals_;                            // a session of its own, so that no slow statement delays a renewal
  TaskGroup preparations_;                       // runs preparations and acquisitions

  ChainCounters taken_total_;
  ChainCounters refused_total_;
  ChainCounters failed_total_;
  ChainCounters fenced_total_;
  Metrics::Gauge& held_gauge_;
  Worker renew_worker_;
  Worker heartbeat_worker_;  // apart from the renewals, which must not wait for the table of nodes
  Worker adopt_worker_;
};

}  // namespace fencepost::tx

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
#include "tx/store/lease_store.hpp"

#include "cluster/node_registry.hpp"

namespace fencepost::tx {

class LeaseManager {
 public:
  // Called with leases that were just acquired, before their first use: reads the chain's nonces and checks the work of
  // the former owner. The callback handles its own errors.
  using OnTaken = std::function<awaitable<>(std::vector<SignerLease>)>;

  LeaseManager(Executor home, pg::Database& database, cluster::NodeIdentity identity, LeaseOptions options,
               std::vector<std::int64_t> chains, std::function<bool(const SignerKey&)> can_sign, Metrics& metrics);

  // Requires: called before start().
  void on_taken(OnTaken callback) { on_taken_.push_back(std::move(callback)); }
  void start();
  // Releases all leases, so that other nodes need not wait for them to expire.
  awaitable<> stop();
  // Looks for orphaned signers now, because some node released a lease. Any thread.
  void look_for_orphans() { adopt_worker_.wake(); }

  // The lease, as far as this node knows; nullopt when this node does not hold it. Counts as a use. Any thread.
  std::optional<SignerLease> held(const SignerKey& key);
  // The leases of one chain. Any thread.
  std::vector<SignerLease> held_on(std::int64_t chain_id);
  // Returns this node's lease, and acquires it first if it is free. Returns the LeaseView of the owner when another
  // node holds it. Any loop. Throws what the database throws.
  awaitable<std::variant<SignerLease, LeaseView>> lead(SignerKey key);
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
  awaitable<> renew_held();
  awaitable<Worker::Next> adopt();
  awaitable<> release_idle();
  std::vector<SignerLease> all();

  Executor home_;
  pg::Database& database_;
  cluster::NodeIdentity identity_;
  LeaseOptions options_;
  std::vector<std::int64_t> chains_;
  std::function<bool(const SignerKey&)> can_sign_;
  std::vector<OnTaken> on_taken_;

  std::mutex mutex_;  // guards known_
  std::unordered_map<SignerKey, Known> known_;
  std::map<SignerKey, std::vector<std::shared_ptr<Waiting>>> wanted_;  // callers that wait; on the loop only
  bool taking_ = false;
  std::shared_ptr<Completion<bool>> releasing_;  // set while idle leases are released
  pg::Pool renewals_;                            // a session of its own, so that no slow statement delays a renewal
  TaskGroup preparations_;                       // runs preparations and acquisitions

  Metrics::Counter& taken_total_;
  Metrics::Counter& refused_total_;
  Metrics::Counter& failed_total_;
  Metrics::Counter& fenced_total_;
  Metrics::Gauge& held_gauge_;
  Worker renew_worker_;
  Worker adopt_worker_;
};

}  // namespace fencepost::tx

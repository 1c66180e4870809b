// The leases of this node: gets them, keeps them, notices when they are gone, gives them back.
//
// What is remembered here only saves questions. Whether a lease still holds is decided in PostgreSQL, by the fence of
// each write; a write that comes back FENCED ends in `lost`, and everything in memory about that signer goes with it.
//
// Lives on one loop; methods marked so may be called from any.
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
  // What to do with leases that have just been taken, before anybody uses them: read the chain's nonces, look at what
  // the former owner left. Errors are its own to handle.
  using OnTaken = std::function<awaitable<>(std::vector<SignerLease>)>;

  LeaseManager(Executor home, pg::Database& database, cluster::NodeIdentity identity, LeaseOptions options,
               std::vector<std::int64_t> chains, std::function<bool(const SignerKey&)> can_sign, Metrics& metrics);

  void on_taken(OnTaken callback) { on_taken_.push_back(std::move(callback)); }  // before start
  void start();
  // Gives all leases back, so that others need not wait for them to expire.
  awaitable<> stop();
  // A lease somewhere was given up: look for orphans now. Any thread.
  void look_for_orphans() { adopt_worker_.wake(); }

  // The lease, as far as this node knows. Any thread.
  std::optional<SignerLease> held(const SignerKey& key);
  // Those of one chain. Any thread.
  std::vector<SignerLease> held_on(std::int64_t chain_id);
  // The lease, taken if it is free; otherwise who has it. Any loop. Throws what the database throws.
  awaitable<std::variant<SignerLease, LeaseView>> lead(SignerKey key);
  // A fenced write said so. Any thread. Counts; forgets the lease unless there is a newer one by now.
  void lost(const SignerLease& lease);

  const cluster::NodeIdentity& identity() const { return identity_; }
  const LeaseOptions& options() const { return options_; }

 private:
  using Clock = std::chrono::steady_clock;
  using Answer = std::variant<SignerLease, LeaseView>;
  struct Known {
    std::int64_t token = 0;
    Clock::time_point until;  // believed, counted from before the question was asked
    Clock::time_point last_use;
  };
  using Waiting = Completion<std::expected<Answer, std::exception_ptr>>;
  using Refusals = std::map<SignerKey, std::exception_ptr>;  // those that could not be had, each for its own reason

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
  std::map<SignerKey, std::vector<std::shared_ptr<Waiting>>> wanted_;  // on the loop: who waits for which
  bool taking_ = false;
  std::shared_ptr<Completion<bool>> releasing_;  // while idle leases are given back
  pg::Pool renewals_;       // a session of their own: nobody's slow statement may stand before a renewal
  TaskGroup preparations_;  // and acquisitions

  Metrics::Counter& taken_total_;
  Metrics::Counter& refused_total_;
  Metrics::Counter& failed_total_;
  Metrics::Counter& fenced_total_;
  Metrics::Gauge& held_gauge_;
  Worker renew_worker_;
  Worker adopt_worker_;
};

}  // namespace fencepost::tx

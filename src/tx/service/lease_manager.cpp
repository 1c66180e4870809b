#include "tx/service/lease_manager.hpp"

#include <algorithm>
#include <ranges>
#include <set>

#include "pg/error.hpp"
#include "pg/halving.hpp"
#include "runtime/gather.hpp"
#include "runtime/log.hpp"
#include "runtime/on_loop.hpp"
#include "runtime/test_point.hpp"
#include "tx/store/ability_store.hpp"

namespace fencepost::tx {
namespace {

// How long the first caller waits for the preparations of a new lease. They continue in the background after that;
// until they finish, new transactions stay CREATED.
constexpr auto kPreparationPatience = std::chrono::seconds(2);
constexpr std::size_t kTakenAtOnce = 256;
// If the database does not answer by then, the leases are not released and expire.
constexpr auto kFarewell = std::chrono::milliseconds(1'000);
constexpr auto kStopGrace = std::chrono::milliseconds(500);
constexpr int kMissedRenewals = 2;
constexpr auto kAcquire = "lease_acquire_total";
constexpr auto kAcquireHelp = "Requests for a lease, by result";

// Whether acquiring failed because another session holds the lock on one of the leases.
bool is_locked(const Exception& error) {
  const auto* refused = dynamic_cast<const pg::QueryError*>(&error);
  return refused != nullptr ? refused->is_timeout() : error.error().code == kLeaseLocked;
}

}  // namespace

LeaseManager::LeaseManager(Executor home, pg::Database& database, cluster::NodeIdentity identity, LeaseOptions options,
                           const ChainNames& chains, Keys keys, Metrics& metrics)
    : home_(home),
      database_(database),
      identity_(std::move(identity)),
      options_(options),
      chains_(std::views::keys(chains).begin(), std::views::keys(chains).end()),
      keys_(std::move(keys)),
      renewals_(home, database.connector(), {.shared_connections = 1, .exclusive_connections = 1}, metrics),
      preparations_(home, "lease preparations", 1024),
      taken_total_(metrics, chains, kAcquire, kAcquireHelp, {{"result", "acquired"}}),
      refused_total_(metrics, chains, kAcquire, kAcquireHelp, {{"result", "not_leader"}}),
      failed_total_(metrics, chains, kAcquire, kAcquireHelp, {{"result", "error"}}),
      fenced_total_(metrics, chains, "lease_fenced_total", "Writes refused because the lease was lost"),
      held_gauge_(metrics.gauge("lease_held", "Leases that this node holds")),
      renew_worker_(
          home,
          {.name = "lease_renewal",
           .interval = options.renew_interval,
           .backoff = {.initial = std::chrono::milliseconds(100), .cap = options.renew_interval},
           .stop_grace = kStopGrace},
          [this] { return renew(); }, metrics),
      heartbeat_worker_(
          home,
          {.name = "node_heartbeat",
           .interval = options.renew_interval,
           .backoff = {.initial = std::chrono::milliseconds(100), .cap = options.renew_interval},
           .stop_grace = kStopGrace},
          [this] { return send_heartbeat(); }, metrics),
      adopt_worker_(
          home, {.name = "lease_adoption", .interval = options.renew_interval, .stop_grace = kStopGrace},
          [this] { return adopt(); }, metrics) {}

void LeaseManager::start() {
  renewals_.start();
  renew_worker_.start();
  heartbeat_worker_.start();
  adopt_worker_.start();
}

awaitable<> LeaseManager::stop(std::chrono::milliseconds limit) {
  // Together: a database that does not answer holds up each of them for as long as it may.
  std::vector<awaitable<>> stops;
  stops.push_back(adopt_worker_.stop());
  stops.push_back(preparations_.stop(kStopGrace));
  stops.push_back(renew_worker_.stop());
  stops.push_back(heartbeat_worker_.stop());
  co_await gather(std::move(stops));
  co_await renewals_.stop(std::chrono::milliseconds(0));
  const auto farewell = std::min(kFarewell, limit / 2);
  const auto leases = all();
  {
    const std::scoped_lock lock(mutex_);
    known_.clear();
  }
  if (!leases.empty()) {
    const auto released = co_await release_leases(database_.pool(), identity_.node_id, leases, farewell);
    log::info("leases released", {{"leases", released.size()}});
  }
  co_await cluster::forget_node(database_.pool(), identity_.node_id, farewell);
}

std::optional<SignerLease> LeaseManager::held(const SignerKey& key) {
  const auto now = Clock::now();
  const std::scoped_lock lock(mutex_);
  const auto it = known_.find(key);
  if (it == known_.end() || it->second.until <= now) return std::nullopt;
  it->second.last_use = now;
  return SignerLease{key, it->second.token};
}

std::vector<SignerLease> LeaseManager::held_on(std::int64_t chain_id) {
  auto leases = all();
  std::erase_if(leases, [&](const SignerLease& lease) { return lease.key.chain_id != chain_id; });
  return leases;
}

std::vector<SignerLease> LeaseManager::all() {
  const std::scoped_lock lock(mutex_);
  std::vector<SignerLease> leases;
  leases.reserve(known_.size());
  for (const auto& [key, known] : known_) leases.push_back({key, known.token});
  return leases;
}

void LeaseManager::lost(const SignerLease& lease) {
  fenced_total_.add(lease.key.chain_id);
  log::warn("a write was fenced: the lease is lost", {{"chainId", lease.key.chain_id},
                                                      {"signer", lease.key.signer},
                                                      {"nodeId", identity_.node_id},
                                                      {"fencingToken", lease.fencing_token}});
  const std::scoped_lock lock(mutex_);
  const auto it = known_.find(lease.key);
  if (it != known_.end() && it->second.token == lease.fencing_token) known_.erase(it);
  held_gauge_.Set(static_cast<double>(known_.size()));
}

awaitable<LeaseManager::Answer> LeaseManager::lead(SignerKey key, bool last_resort) {
  if (auto lease = held(key)) co_return std::move(*lease);
  if (!last_resort) {
    if (auto other = co_await stand_in(key)) {
      const auto views = co_await find_leases(database_.pool(), {key}, options_.times);
      const auto& led = views.front();
      if (led && !led->expired && led->owner_node != identity_.node_id) co_return *led;
      co_return std::move(*other);
    }
  }
  if (last_resort) lead_again(key.chain_id);
  co_return co_await on_loop(home_, [this, key = std::move(key)] { return lead_here(key); });
}

// No other node wants to lead: keep what is acquired now. `spent` stays, so that it is not given up again before the
// endpoints have answered for a while.
void LeaseManager::lead_again(std::int64_t chain_id) {
  const std::scoped_lock lock(mutex_);
  const auto it = health_.find(chain_id);
  if (it != health_.end()) it->second.given_up = false;
}

awaitable<std::optional<LeaseView>> LeaseManager::key_holder(SignerKey key) {
  const auto silence = cluster::longest_silence(options_.renew_interval);
  co_return co_await find_key_holder(database_.pool(), std::move(key), identity_.node_id, silence);
}

awaitable<bool> LeaseManager::is_known(SignerKey key) {
  co_return co_await is_known_signer(database_.pool(), std::move(key));
}

awaitable<std::optional<LeaseView>> LeaseManager::chain_holder(std::int64_t chain_id) {
  const auto silence = cluster::longest_silence(options_.renew_interval);
  co_return co_await find_chain_holder(database_.pool(), chain_id, identity_.node_id, silence);
}

bool LeaseManager::is_alive(const LeaseView& leader) const {
  return leader.registered && !leader.owner_node.empty() &&
         leader.silent_for < kMissedRenewals * options_.renew_interval;
}

// Requests are grouped: all requests for one signer, and requests for up to kTakenAtOnce signers, are one acquisition.
// Requests that arrive while an acquisition runs form the next one.
awaitable<LeaseManager::Answer> LeaseManager::lead_here(SignerKey key) {
  if (auto lease = held(key)) co_return std::move(*lease);
  const auto mine = std::make_shared<Waiting>(home_);
  wanted_[key].push_back(mine);
  if (!taking_) {
    taking_ = preparations_.spawn(take_wanted());
    if (!taking_) throw Exception(unavailable("stopping", "the node is stopping").after(std::chrono::seconds(1)));
  }
  co_await mine->wait();
  if (!mine->value()) std::rethrow_exception(mine->value().error());
  co_return *mine->value();
}

awaitable<> LeaseManager::take_wanted() {
  while (!wanted_.empty()) {
    // Wait for the release: otherwise this node could get the lease again under the token that it is releasing.
    if (const auto release = releasing_) co_await release->wait();
    decltype(wanted_) now;
    while (!wanted_.empty() && now.size() < kTakenAtOnce) now.insert(wanted_.extract(wanted_.begin()));
    std::vector<SignerKey> keys;
    for (const auto& [key, waiting] : now) keys.push_back(key);
    std::map<SignerKey, Answer> answers;
    Refusals refused;
    std::exception_ptr failure;
    try {
      answers = co_await take_or_name(std::move(keys), refused);
    } catch (const std::exception&) {
      failure = std::current_exception();
      std::set<std::int64_t> chains;
      for (const auto& [key, waiting] : now) chains.insert(key.chain_id);
      for (const auto chain_id : chains) failed_total_.add(chain_id);
    }
    for (auto& [key, waiting] : now) {
      const auto alone = refused.find(key);
      for (const auto& one : waiting) {
        if (failure || alone != refused.end()) {
          one->complete(std::unexpected(failure ? failure : alone->second));
        } else {
          one->complete(answers.at(key));
        }
      }
    }
  }
  taking_ = false;
}

awaitable<std::map<SignerKey, LeaseManager::Answer>> LeaseManager::take_or_name(std::vector<SignerKey> keys,
                                                                                Refusals& refusals) {
  auto& pool = database_.pool();
  std::map<SignerKey, Answer> answers;
  std::map<std::int64_t, std::vector<std::string>> free;
  auto views = co_await find_leases(pool, keys, options_.times);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (!views[i] || views[i]->expired || views[i]->owner_node == identity_.node_id) {
      free[keys[i].chain_id].push_back(keys[i].signer);
    } else {
      answers.emplace(keys[i], std::move(*views[i]));
    }
  }
  for (auto& [chain_id, signers] : free) {
    for (auto& lease : co_await take(chain_id, std::move(signers), refusals)) answers.emplace(lease.key, lease);
  }
  std::erase_if(keys, [&](const SignerKey& key) { return answers.contains(key) || refusals.contains(key); });
  if (!keys.empty()) {
    // Another node acquired these leases first: find out which.
    views = co_await find_leases(pool, keys, options_.times);
    for (std::size_t i = 0; i < keys.size(); ++i)
      answers.emplace(keys[i], views[i].value_or(LeaseView{.key = keys[i]}));
  }
  for (const auto& [key, answer] : answers) {
    if (std::holds_alternative<LeaseView>(answer)) refused_total_.add(key.chain_id);
  }
  co_return answers;
}

// Halves the set when another session holds a lock on one of the leases, so that the lock delays only that lease.
awaitable<std::vector<SignerLease>> LeaseManager::acquire(std::int64_t chain_id, std::vector<std::string> signers,
                                                          Refusals& refusals) {
  const auto take_some = [this, chain_id](std::span<const std::string> some) { return acquire_once(chain_id, some); };
  const auto outcomes = co_await pg::write_or_halve<std::optional<SignerLease>>(std::span<const std::string>(signers),
                                                                                take_some, is_locked);
  std::vector<SignerLease> taken;
  for (std::size_t i = 0; i < signers.size(); ++i) {
    const auto& outcome = outcomes[i];
    if (!outcome) {
      log::error("a lease cannot be acquired", error_of(outcome.error()),
                 {{"chainId", chain_id}, {"signer", signers[i]}});
      refusals.emplace(SignerKey{chain_id, signers[i]}, outcome.error());
      failed_total_.add(chain_id);
    } else if (*outcome) {
      taken.push_back(**outcome);
    }
  }
  co_return taken;
}

// One result per signer, in order; nullopt where another node holds the lease.
awaitable<std::vector<std::optional<SignerLease>>> LeaseManager::acquire_once(std::int64_t chain_id,
                                                                              std::span<const std::string> signers) {
  const auto taken = co_await acquire_leases(database_.pool(), identity_.node_id, chain_id,
                                             {signers.begin(), signers.end()}, options_.times);
  std::map<std::string_view, const SignerLease*> by_signer;
  for (const auto& lease : taken) by_signer.emplace(lease.key.signer, &lease);
  std::vector<std::optional<SignerLease>> out;
  for (const auto& signer : signers) {
    const auto found = by_signer.find(signer);
    out.push_back(found == by_signer.end() ? std::nullopt : std::optional(*found->second));
  }
  co_return out;
}

awaitable<std::vector<SignerLease>> LeaseManager::take(std::int64_t chain_id, std::vector<std::string> signers,
                                                       Refusals& refusals) {
  const auto asked = Clock::now();
  auto taken = co_await acquire(chain_id, std::move(signers), refusals);
  if (taken.empty()) co_return taken;
  test_point("lease.taken");
  co_await prepare(taken);
  {
    const std::scoped_lock lock(mutex_);
    for (const auto& lease : taken) {
      known_[lease.key] = {lease.fencing_token, asked + options_.times.duration, Clock::now()};
    }
    held_gauge_.Set(static_cast<double>(known_.size()));
  }
  taken_total_.add(chain_id, static_cast<double>(taken.size()));
  for (const auto& lease : taken) {
    log::info("lease acquired", {{"chainId", lease.key.chain_id},
                                 {"signer", lease.key.signer},
                                 {"nodeId", identity_.node_id},
                                 {"fencingToken", lease.fencing_token}});
  }
  co_return taken;
}

awaitable<> LeaseManager::prepare(std::vector<SignerLease> taken) {
  const auto done = std::make_shared<Completion<bool>>(home_);
  auto run = [](std::vector<OnTaken> callbacks, std::vector<SignerLease> leases,
                std::shared_ptr<Completion<bool>> finished) -> awaitable<> {
    for (const auto& callback : callbacks) co_await callback(leases);
    finished->complete(true);
  };
  if (preparations_.spawn(run(on_taken_, std::move(taken), done))) {
    co_await done->wait(Clock::now() + kPreparationPatience);
  }
}

awaitable<> LeaseManager::register_node(pg::Pool& pool) {
  if (!abilities_) {
    abilities_ = std::make_shared<const cluster::NodeAbilities>(
        cluster::NodeAbilities{.signers = keys_.all(), .chains = chains_});
  }
  co_await cluster::heartbeat(pool, identity_, abilities_);
}

awaitable<Worker::Next> LeaseManager::send_heartbeat() {
  co_await register_node(renewals_);
  co_return Worker::Next::kRest;
}

awaitable<Worker::Next> LeaseManager::renew() {
  const auto asked = Clock::now();
  const auto leases = all();
  if (leases.empty()) co_return Worker::Next::kRest;
  const auto renewed = co_await renew_leases(renewals_, identity_.node_id, leases, options_.times);
  test_point("lease.renewed");
  const std::scoped_lock lock(mutex_);
  for (const auto& lease : renewed) {
    const auto it = known_.find(lease.key);
    if (it != known_.end() && it->second.token == lease.fencing_token)
      it->second.until = asked + options_.times.duration;
  }
  // Keep a lease that was not renewed until it expires: another session may only have locked the row for a moment.
  std::erase_if(known_, [&](const auto& entry) {
    const bool gone = entry.second.until + options_.times.clock_skew_allowance <= asked;
    if (gone) log::warn("lease expired", {{"signer", entry.first.signer}, {"fencingToken", entry.second.token}});
    return gone;
  });
  held_gauge_.Set(static_cast<double>(known_.size()));
  co_return Worker::Next::kRest;
}

}  // namespace fencepost::tx

// The part of LeaseManager that decides which signers this node leads: it adopts orphaned signers, and releases leases
// that are idle or that another node can serve better.
#include <algorithm>

#include "runtime/log.hpp"
#include "tx/service/lease_manager.hpp"
#include "tx/store/ability_store.hpp"

namespace fencepost::tx {
namespace {

constexpr auto kAdoptPause = std::chrono::milliseconds(100);
// Longer than a restart of an endpoint, and than the takeover costs.
constexpr auto kGiveUpAfter = std::chrono::seconds(5);
constexpr auto kLeadAgainAfter = std::chrono::seconds(3);

}  // namespace

awaitable<> LeaseManager::release_idle() {
  const auto now = Clock::now();
  std::vector<SignerLease> unused;
  {
    const std::scoped_lock lock(mutex_);
    for (const auto& [key, known] : known_) {
      if (now - known.last_use >= options_.idle_release) unused.push_back({key, known.token});
    }
  }
  if (unused.empty()) co_return;
  const auto idle = co_await idle_signers(database_.pool(), unused);
  std::erase_if(unused, [&](const SignerLease& lease) { return std::ranges::find(idle, lease.key) == idle.end(); });
  if (unused.empty()) co_return;
  const auto released = co_await release(std::move(unused));
  if (released > 0) log::info("idle leases released", {{"leases", released}});
}

awaitable<std::size_t> LeaseManager::release(std::vector<SignerLease> leases) {
  std::unordered_map<SignerKey, Known> forgotten;
  {
    // Forget the leases first: a caller that arrives now waits for the release and gets the lease under a new token.
    const std::scoped_lock lock(mutex_);
    for (const auto& lease : leases) {
      if (auto known = known_.extract(lease.key)) forgotten.insert(std::move(known));
    }
  }
  const auto done = releasing_ = std::make_shared<Completion<bool>>(home_);
  std::vector<SignerLease> released;
  std::exception_ptr failure;
  try {
    released = co_await release_leases(database_.pool(), identity_.node_id, std::move(leases));
  } catch (const std::exception&) {
    failure = std::current_exception();
  }
  {
    // A lease that another session has locked, for instance this node's renewal, is still held: keep it, and try again
    // in the next round.
    for (const auto& lease : released) forgotten.erase(lease.key);
    const std::scoped_lock lock(mutex_);
    if (!failure) known_.merge(forgotten);
    held_gauge_.Set(static_cast<double>(known_.size()));
  }
  releasing_.reset();
  done->complete(true);
  if (failure) std::rethrow_exception(failure);
  co_return released.size();
}

void LeaseManager::set_chain_usable(std::int64_t chain_id, bool usable) {
  const std::scoped_lock lock(mutex_);
  auto& health = health_[chain_id];
  health.usable = usable;
  health.since = Clock::now();
}

awaitable<> LeaseManager::give_up_unreachable() {
  const auto now = Clock::now();
  std::vector<std::int64_t> lost, back, given_up;
  {
    const std::scoped_lock lock(mutex_);
    for (auto& [chain_id, health] : health_) {
      if (!health.usable && !health.spent && now - health.since >= kGiveUpAfter) lost.push_back(chain_id);
      const bool well = health.usable && now - health.since >= kLeadAgainAfter;
      if (health.given_up) (well ? back : given_up).push_back(chain_id);
      if (well) health.given_up = health.spent = false;
    }
  }
  for (const auto chain_id : back)
    log::info("the chain's endpoints answer again: leading there", {{"chainId", chain_id}});
  for (const auto chain_id : lost) co_await give_up(chain_id);
  if (given_up.empty()) co_return;
  for (const auto chain_id : given_up) {
    // Leases that were locked when the chain was given up.
    if (auto left = co_await leases_for_others(held_on(chain_id)); !left.empty()) co_await release(std::move(left));
  }
  const bool others = co_await others_alive();
  const std::scoped_lock lock(mutex_);
  for (const auto chain_id : given_up) {
    auto& health = health_[chain_id];
    health.given_up = health.given_up && others;  // a request may have led there again meanwhile, as the last resort
  }
}

// Without another node that can lead a signer its lease stays: creates are accepted, and nothing would be sent sooner.
awaitable<> LeaseManager::give_up(std::int64_t chain_id) {
  if (!co_await others_alive()) co_return;
  auto leases = co_await leases_for_others(held_on(chain_id));
  {
    const std::scoped_lock lock(mutex_);
    auto& health = health_[chain_id];
    if (health.usable) co_return;
    health.given_up = health.spent = true;
  }
  const auto count = leases.size();
  if (!leases.empty()) co_await release(std::move(leases));
  log::warn("no endpoint of the chain answers: leases released, so that other nodes lead",
            {{"chainId", chain_id}, {"leases", count}});
}

awaitable<bool> LeaseManager::others_alive() {
  const auto nodes = co_await cluster::list_nodes(database_.pool());
  const auto alive = cluster::alive_nodes(nodes, options_.renew_interval);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (alive[i] && nodes[i].node_id != identity_.node_id && !nodes[i].advertise_url.empty()) co_return true;
  }
  co_return false;
}

awaitable<std::vector<SignerLease>> LeaseManager::leases_for_others(std::vector<SignerLease> leases) {
  const auto silence = cluster::longest_silence(options_.renew_interval);
  co_return co_await led_elsewhere(database_.pool(), identity_.node_id, std::move(leases), silence);
}

std::vector<std::int64_t> LeaseManager::chains_to_lead() {
  auto chains = chains_;
  std::erase_if(chains, [this](std::int64_t chain_id) { return has_given_up(chain_id); });
  return chains;
}

awaitable<std::optional<LeaseView>> LeaseManager::stand_in(SignerKey key) {
  if (can_sign(key) && !has_given_up(key.chain_id)) co_return std::nullopt;
  co_return co_await key_holder(std::move(key));
}

bool LeaseManager::has_given_up(std::int64_t chain_id) {
  const std::scoped_lock lock(mutex_);
  const auto it = health_.find(chain_id);
  return it != health_.end() && it->second.given_up;
}

// Leads no longer where a live node has the key.
awaitable<> LeaseManager::release_keyless() {
  std::vector<SignerLease> keyless = all();
  std::erase_if(keyless, [this](const SignerLease& lease) { return can_sign(lease.key); });
  if (keyless.empty()) co_return;
  keyless = co_await leases_for_others(std::move(keyless));
  if (keyless.empty()) co_return;
  const auto released = co_await release(std::move(keyless));
  log::info("leases released to nodes that have the keys", {{"leases", released}});
}

awaitable<std::size_t> LeaseManager::adopt_all(std::vector<SignerKey> orphans) {
  std::map<std::int64_t, std::vector<std::string>> by_chain;
  for (auto& key : orphans) by_chain[key.chain_id].push_back(std::move(key.signer));
  std::size_t adopted = 0;
  Refusals refusals;  // already logged; the next round retries
  for (auto& [chain_id, signers] : by_chain) adopted += (co_await take(chain_id, std::move(signers), refusals)).size();
  co_return adopted;
}

// Receipts and ends need no key. The node that has the key may only be restarting, so it gets the time to come back.
awaitable<std::size_t> LeaseManager::adopt_keyless() {
  const auto silence = cluster::longest_silence(options_.renew_interval);
  auto orphans = co_await find_keyless_orphans(database_.pool(), chains_to_lead(), 2 * options_.times.duration, silence,
                                               options_.adopt_step);
  if (orphans.empty()) co_return 0;
  const auto adopted = co_await adopt_all(std::move(orphans));
  if (adopted > 0) {
    log::warn(
        "leads signers without their keys, because no live node has them: what is sent is finished, and nothing "
        "new is signed",
        {{"leases", adopted}});
  }
  co_return adopted;
}

// Works in small steps with a pause between them, so that several nodes share the orphaned signers of a dead node. The
// signers whose keys this node has come first.
awaitable<Worker::Next> LeaseManager::adopt() {
  co_await give_up_unreachable();
  co_await release_idle();
  auto orphans =
      co_await find_orphans(database_.pool(), chains_to_lead(), options_.times, options_.adopt_step, identity_.node_id);
  bool full = orphans.size() >= options_.adopt_step;
  auto adopted = co_await adopt_all(std::move(orphans));
  if (adopted == 0 || !full) {
    co_await release_keyless();
    adopted = co_await adopt_keyless();
    full = adopted >= options_.adopt_step;
  }
  if (adopted == 0 || !full) co_return Worker::Next::kRest;
  asio::steady_timer pause(home_, kAdoptPause);
  co_await pause.async_wait(asio::use_awaitable);
  co_return Worker::Next::kAgain;
}

}  // namespace fencepost::tx

#include "tx/service/lease_watch.hpp"

#include <map>

#include <boost/asio/post.hpp>

namespace fencepost::tx {
namespace {

constexpr std::chrono::milliseconds kLeaseLookInterval{200};

bool has_moved(const LeaseView& seen, const std::optional<LeaseView>& now) {
  return !now || now->expired || now->owner_node != seen.owner_node || now->fencing_token != seen.fencing_token;
}

}  // namespace

LeaseWatch::LeaseWatch(Executor home, pg::Database& database, LeaseTimes times, Metrics& metrics)
    : database_(database),
      times_(times),
      worker_(home, {.name = "lease_watch", .interval = kLeaseLookInterval}, [this] { return look(); }, metrics) {}

void LeaseWatch::look_now() {
  hurry_ = true;
  worker_.wake();
}

awaitable<bool> LeaseWatch::moved(LeaseView seen, Deadline deadline) {
  const auto home = co_await this_executor();
  const auto done = std::make_shared<Completion<bool>>(home);
  if (seen.expired || seen.owner_node.empty()) {
    co_await done->wait(deadline);
    co_return false;
  }
  // Removes the waiter also when the caller is cancelled.
  struct Place {
    LeaseWatch& watch;
    std::list<Waiter>::iterator at;
    Place(LeaseWatch& of, Waiter waiter) : watch(of) {
      const std::scoped_lock lock(watch.mutex_);
      at = watch.waiters_.insert(watch.waiters_.end(), std::move(waiter));
    }
    ~Place() {
      const std::scoped_lock lock(watch.mutex_);
      watch.waiters_.erase(at);
    }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
  };
  const Place place(*this, {std::move(seen), home, done, std::chrono::steady_clock::now()});
  co_return co_await done->wait(deadline);
}

// Most requests are answered before the first look, and cost no query.
awaitable<Worker::Next> LeaseWatch::look() {
  const auto now = std::chrono::steady_clock::now();
  const bool hurry = hurry_.exchange(false);
  std::map<SignerKey, std::vector<Waiter>> waiting;
  {
    const std::scoped_lock lock(mutex_);
    for (const auto& waiter : waiters_) {
      if (hurry || now - waiter.since >= kLeaseLookInterval) waiting[waiter.seen.key].push_back(waiter);
    }
  }
  if (waiting.empty()) co_return Worker::Next::kRest;
  std::vector<SignerKey> keys;
  keys.reserve(waiting.size());
  for (const auto& [key, some] : waiting) keys.push_back(key);
  const auto views = co_await find_leases(database_.pool(), keys, times_);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    for (const auto& waiter : waiting.at(keys[i])) {
      if (!has_moved(waiter.seen, views[i])) continue;
      asio::post(waiter.home, [done = waiter.done] { done->complete(true); });
    }
  }
  co_return Worker::Next::kRest;
}

}  // namespace fencepost::tx

#include "tx/service/hash_waits.hpp"

#include <algorithm>
#include <map>

#include <boost/asio/post.hpp>

#include "tx/store/tx_store.hpp"

namespace fencepost::tx {
namespace {

constexpr std::chrono::milliseconds kHashLookInterval{100};
constexpr std::chrono::milliseconds kFirstHashLook{200};
constexpr std::chrono::milliseconds kLongestHashLook{2'000};
constexpr std::size_t kHashesAtOnce = 1'000;

}  // namespace

HashWaits::HashWaits(Executor home, pg::Database& database, std::size_t limit, Metrics& metrics)
    : database_(database),
      limit_(limit),
      waiting_gauge_(metrics.gauge("jsonrpc_waiting_sends", "Sends over JSON-RPC that wait for their hash")),
      worker_(home, {.name = "tx_hash_waits", .interval = kHashLookInterval}, [this] { return look(); }, metrics) {}

HashWaits::Wait::Wait(HashWaits& waits, Uuid tx_id, Executor home)
    : waits_(waits),
      tx_id_(tx_id),
      home_(home),
      done_(std::make_shared<Completion<HashOutcome>>(home)),
      look_at_(std::chrono::steady_clock::now() + kFirstHashLook),
      look_again_in_(kFirstHashLook) {}

HashWaits::Wait::~Wait() {
  const std::scoped_lock lock(waits_.mutex_);
  const auto it = waits_.waits_.find(tx_id_);
  std::erase(it->second, this);
  if (it->second.empty()) waits_.waits_.erase(it);
  waits_.waiting_gauge_.Set(static_cast<double>(--waits_.count_));
}

awaitable<std::optional<HashOutcome>> HashWaits::Wait::outcome(Deadline deadline) {
  const auto done = done_;
  if (!co_await done->wait(deadline)) co_return std::nullopt;
  co_return done->value();
}

std::unique_ptr<HashWaits::Wait> HashWaits::begin(Uuid tx_id, Executor home) {
  auto wait = std::unique_ptr<Wait>();
  const std::scoped_lock lock(mutex_);
  if (count_ >= limit_) return nullptr;
  wait = std::make_unique<Wait>(*this, tx_id, home);
  waits_[tx_id].push_back(wait.get());
  waiting_gauge_.Set(static_cast<double>(++count_));
  return wait;
}

void HashWaits::announce(std::vector<std::pair<Uuid, std::string>> stored) {
  std::vector<std::pair<Uuid, HashOutcome>> outcomes;
  outcomes.reserve(stored.size());
  for (auto& [tx_id, hash] : stored) outcomes.emplace_back(tx_id, HashOutcome{.tx_hash = std::move(hash)});
  deliver(std::move(outcomes));
}

// Posts once per loop, not once per request.
void HashWaits::deliver(std::vector<std::pair<Uuid, HashOutcome>> outcomes) {
  using Delivery = std::vector<std::pair<std::shared_ptr<Completion<HashOutcome>>, HashOutcome>>;
  std::map<asio::execution_context*, std::pair<Executor, std::shared_ptr<Delivery>>> by_loop;
  {
    const std::scoped_lock lock(mutex_);
    if (waits_.empty()) return;
    for (const auto& [tx_id, outcome] : outcomes) {
      const auto it = waits_.find(tx_id);
      if (it == waits_.end()) continue;
      for (const auto* wait : it->second) {
        by_loop.try_emplace(&wait->home_.context(), wait->home_, std::make_shared<Delivery>())
            .first->second.second->emplace_back(wait->done_, outcome);
      }
    }
  }
  for (auto& [context, target] : by_loop) {
    asio::post(target.first, [delivery = std::move(target.second)] {
      for (auto& [done, outcome] : *delivery) done->complete(std::move(outcome));
    });
  }
}

std::vector<Uuid> HashWaits::due(Deadline now) {
  std::vector<Uuid> ids;
  const std::scoped_lock lock(mutex_);
  for (auto& [tx_id, waits] : waits_) {
    bool look = false;
    for (auto* wait : waits) {
      if (wait->look_at_ > now) continue;
      look = true;
      wait->look_again_in_ = std::min(2 * wait->look_again_in_, kLongestHashLook);
      wait->look_at_ = now + wait->look_again_in_;
    }
    if (look) ids.push_back(tx_id);
    if (ids.size() == kHashesAtOnce) break;
  }
  return ids;
}

awaitable<Worker::Next> HashWaits::look() {
  auto ids = due(std::chrono::steady_clock::now());
  if (ids.empty()) co_return Worker::Next::kRest;
  const bool full = ids.size() == kHashesAtOnce;
  const auto found = co_await find_hashes(database_.pool(), std::move(ids));
  std::vector<std::pair<Uuid, HashOutcome>> outcomes;
  for (const auto& tx : found) {
    const bool hopeless = tx.state == TxState::kStuck || kManagedTx.terminal(tx.state);
    if (!tx.tx_hash && !hopeless) continue;
    outcomes.emplace_back(
        tx.tx_id, HashOutcome{tx.tx_hash, std::string(kManagedTx.name(tx.state)), tx.error_message.value_or("")});
  }
  deliver(std::move(outcomes));
  co_return full ? Worker::Next::kAgain : Worker::Next::kRest;
}

}  // namespace fencepost::tx

#include "tx/service/tx_watch.hpp"

#include <boost/asio/post.hpp>

namespace fencepost::tx {

TxWatch::Listener::Listener(TxWatch& watch, Uuid tx_id, Executor home)
    : watch_(watch), tx_id_(tx_id), home_(home), told_(std::make_shared<Completion<bool>>(home)) {
  const std::scoped_lock lock(watch_.mutex_);
  watch_.listeners_[tx_id_].push_back(this);
}

TxWatch::Listener::~Listener() {
  const std::scoped_lock lock(watch_.mutex_);
  const auto it = watch_.listeners_.find(tx_id_);
  std::erase(it->second, this);
  if (it->second.empty()) watch_.listeners_.erase(it);
}

awaitable<bool> TxWatch::Listener::changed(std::chrono::milliseconds patience) {
  const auto current = told_;
  const bool heard = co_await current->wait(std::chrono::steady_clock::now() + patience);
  if (heard) {
    const std::scoped_lock lock(watch_.mutex_);
    told_ = std::make_shared<Completion<bool>>(home_);
  }
  co_return heard;
}

void TxWatch::tell(std::span<const Uuid> changed) {
  const std::scoped_lock lock(mutex_);
  if (listeners_.empty()) return;
  for (const auto& tx_id : changed) {
    const auto it = listeners_.find(tx_id);
    if (it == listeners_.end()) continue;
    for (const auto* listener : it->second) {
      asio::post(listener->home_, [told = listener->told_] { told->complete(true); });
    }
  }
}

}  // namespace fencepost::tx

#include "tx/service/tx_change_signal.hpp"

#include <boost/asio/post.hpp>

namespace fencepost::tx {

TxChangeSignal::Listener::Listener(TxChangeSignal& signal, Uuid tx_id, Executor home)
    : signal_(signal), tx_id_(tx_id), home_(home), heard_(std::make_shared<Completion<bool>>(home)) {
  const std::scoped_lock lock(signal_.mutex_);
  signal_.listeners_[tx_id_].push_back(this);
}

TxChangeSignal::Listener::~Listener() {
  const std::scoped_lock lock(signal_.mutex_);
  const auto it = signal_.listeners_.find(tx_id_);
  std::erase(it->second, this);
  if (it->second.empty()) signal_.listeners_.erase(it);
}

awaitable<bool> TxChangeSignal::Listener::changed(std::chrono::milliseconds patience) {
  const auto current = heard_;
  const bool woken = co_await current->wait(std::chrono::steady_clock::now() + patience);
  if (woken) {
    const std::scoped_lock lock(signal_.mutex_);
    heard_ = std::make_shared<Completion<bool>>(home_);
  }
  co_return woken;
}

void TxChangeSignal::raise(std::span<const Uuid> changed) {
  const std::scoped_lock lock(mutex_);
  if (listeners_.empty()) return;
  for (const auto& tx_id : changed) {
    const auto it = listeners_.find(tx_id);
    if (it == listeners_.end()) continue;
    for (const auto* listener : it->second) {
      asio::post(listener->home_, [signal = listener->heard_] { signal->complete(true); });
    }
  }
}

}  // namespace fencepost::tx

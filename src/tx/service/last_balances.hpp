// The last known balances of signers on one chain, so that a create need not ask the chain. Any thread.
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "base/uint256.hpp"

namespace fencepost::tx {

class LastBalances {
 public:
  // nullopt: not known, or known to be out of date.
  std::optional<Uint256> find(const std::string& signer) const {
    const std::scoped_lock lock(mutex_);
    const auto it = balances_.find(signer);
    return it == balances_.end() ? std::nullopt : std::optional(it->second);
  }
  void set(const std::string& signer, const Uint256& balance) {
    const std::scoped_lock lock(mutex_);
    balances_[signer] = balance;
  }
  // An endpoint said that the signer cannot pay.
  void forget(const std::string& signer) {
    const std::scoped_lock lock(mutex_);
    balances_.erase(signer);
  }

  // False for some seconds after the chain gave no answer, so that creates do not wait for one each.
  bool may_ask() const {
    const std::scoped_lock lock(mutex_);
    return std::chrono::steady_clock::now() >= ask_after_;
  }
  void asked_in_vain() {
    const std::scoped_lock lock(mutex_);
    ask_after_ = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, Uint256> balances_;  // at most one entry for each key of the node
  std::chrono::steady_clock::time_point ask_after_;
};

}  // namespace fencepost::tx

// Bounds the open streams of wallets: everyone can have any number of wallets, and a stream holds a connection for as
// long as it likes. Any thread may call.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

namespace fencepost::outbox {

class WalletStreams : public std::enable_shared_from_this<WalletStreams> {
 public:
  static constexpr std::size_t kOfOneWallet = 4;
  static constexpr std::size_t kInAll = 256;

  // Held as long as the stream is open.
  using Place = std::shared_ptr<void>;
  // Null: too many are open.
  Place take(const std::string& wallet) {
    const std::lock_guard lock(mutex_);
    auto& open = open_[wallet];
    if (open >= kOfOneWallet || in_all_ >= kInAll) {
      if (open == 0) open_.erase(wallet);
      return nullptr;
    }
    ++open;
    ++in_all_;
    return {this, [self = shared_from_this(), wallet](void*) { self->give_back(wallet); }};
  }

 private:
  void give_back(const std::string& wallet) {
    const std::lock_guard lock(mutex_);
    --in_all_;
    if (const auto it = open_.find(wallet); --it->second == 0) open_.erase(it);
  }

  std::mutex mutex_;
  std::unordered_map<std::string, std::size_t> open_;
  std::size_t in_all_ = 0;
};

}  // namespace fencepost::outbox

// How long to wait for an account that somebody has locked: a while, and less where somebody was just found to keep
// one. Whoever waits holds locks himself, and others wait behind those.
//
// Any thread.
#pragma once

#include <atomic>
#include <chrono>

namespace fencepost::transfer {

class Patience {
 public:
  Patience(std::chrono::milliseconds usual, std::chrono::milliseconds little) : usual_(usual), little_(little) {}

  std::chrono::milliseconds get() const {
    return std::chrono::steady_clock::now().time_since_epoch().count() < little_until_ ? little_ : usual_;
  }
  void account_was_locked() {
    little_until_ = (std::chrono::steady_clock::now() + std::chrono::seconds(5)).time_since_epoch().count();
  }

 private:
  std::chrono::milliseconds usual_;
  std::chrono::milliseconds little_;
  std::atomic<std::chrono::steady_clock::rep> little_until_{0};
};

}  // namespace fencepost::transfer

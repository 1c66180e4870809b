// How long a set waits for an account that another session has locked: `usual`, or `little` for five seconds after
// account_was_locked. A waiting set holds locks itself, so a long wait delays other sets.
//
// Any thread may call.
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

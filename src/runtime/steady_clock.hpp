// Steady time and waits, injected so that tests control both.
#pragma once

#include <chrono>

#include "runtime/async.hpp"

namespace fencepost {

class SteadyClock {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  virtual ~SteadyClock() = default;
  virtual TimePoint now() const = 0;
  // Returns at `deadline`, or earlier when the caller cancels the timer. Requires: `timer` outlives the wait.
  virtual awaitable<> wait_until(asio::steady_timer& timer, TimePoint deadline) = 0;

  static SteadyClock& real();
};

}  // namespace fencepost

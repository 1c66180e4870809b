// A SteadyClock that moves only when a test advances it. Use it on one loop only.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "runtime/steady_clock.hpp"

namespace fencepost::test {

class ManualSteadyClock final : public SteadyClock {
 public:
  TimePoint now() const override { return now_; }

  awaitable<> wait_until(asio::steady_timer& timer, TimePoint deadline) override {
    if (deadline <= now_) co_return;
    waits_.push_back({&timer, deadline});
    timer.expires_at(TimePoint::max());
    co_await timer.async_wait(use_tuple);
    std::erase_if(waits_, [&](const Wait& wait) { return wait.timer == &timer; });
  }

  // Ends the waits that are due; their coroutines resume in the loop's next iteration.
  void advance(std::chrono::nanoseconds by) {
    now_ += by;
    for (const auto& wait : waits_) {
      if (wait.deadline <= now_) wait.timer->cancel();
    }
  }
  // How long until the next wait ends; nullopt when no coroutine waits.
  std::optional<std::chrono::nanoseconds> next() const {
    if (waits_.empty()) return std::nullopt;
    return std::ranges::min(waits_, {}, &Wait::deadline).deadline - now_;
  }

 private:
  struct Wait {
    asio::steady_timer* timer;
    TimePoint deadline;
  };

  TimePoint now_{std::chrono::hours(1)};
  std::vector<Wait> waits_;
};

}  // namespace fencepost::test

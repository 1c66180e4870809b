#include "runtime/steady_clock.hpp"

namespace fencepost {
namespace {

class RealSteadyClock final : public SteadyClock {
 public:
  TimePoint now() const override { return std::chrono::steady_clock::now(); }
  awaitable<> wait_until(asio::steady_timer& timer, TimePoint deadline) override {
    timer.expires_at(deadline);
    co_await timer.async_wait(use_tuple);
  }
};

}  // namespace

SteadyClock& SteadyClock::real() {
  static RealSteadyClock clock;
  return clock;
}

}  // namespace fencepost

// Watches the endpoints of one chain: which block each has reached, whether each is on the right chain, and whether any
// of them can be used at all.
//
// Heads are compared every `head_interval`, if there is more than one endpoint. Chain ids are asked for at the start
// and every `id_interval`; an endpoint on another chain is asked more often, so that it is used again soon after it is
// corrected. (JsonRpcClient asks again after each failure.)
//
// The chain is usable while one endpoint for reads and one for broadcasts answered their last request; a chain id alone
// is no such answer, except of a relay, of which nothing else may be asked. Pinned to one loop.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "evm/json_rpc.hpp"
#include "runtime/async.hpp"
#include "runtime/metrics.hpp"
#include "runtime/worker.hpp"

namespace fencepost::evm {

class EndpointWatch {
 public:
  struct Options {
    std::string chain;  // the label in metrics and log lines
    std::uint64_t chain_id = 0;
    std::chrono::milliseconds head_interval{5'000};
    std::chrono::milliseconds id_interval{300'000};
    std::chrono::milliseconds stop_grace{500};
    SteadyClock* steady = &SteadyClock::real();
  };
  // Called at each change; `lasted` is how long the state before it lasted.
  using OnChange = std::function<void(bool usable, std::chrono::milliseconds lasted)>;

  // Keeps references: all of them must outlive the watch. `submit` may be null: broadcasts go to `rpc`.
  EndpointWatch(Executor executor, JsonRpcClient& rpc, JsonRpcClient* submit, Options options, Metrics& metrics);

  // Requires: not started.
  void on_change(OnChange callback) { callbacks_.push_back(std::move(callback)); }

  void start() { worker_.start(); }
  awaitable<> stop() { return worker_.stop(); }
  // Asks every endpoint for its chain id and its head.
  awaitable<> check_all();

  bool usable() const { return usable_; }
  // When `usable` changed last; nothing: it never did.
  std::optional<SteadyClock::TimePoint> changed_at() const { return changed_at_; }

 private:
  awaitable<Worker::Next> check();
  awaitable<> check_ids(JsonRpcClient& rpc, bool all, Proof proof);
  awaitable<> compare_heads();
  awaitable<std::optional<std::int64_t>> head_of(std::size_t endpoint);
  void look();

  JsonRpcClient& rpc_;
  JsonRpcClient* submit_;
  Options options_;
  std::vector<OnChange> callbacks_;
  bool usable_ = true;
  SteadyClock::TimePoint since_;
  std::optional<SteadyClock::TimePoint> changed_at_;
  std::optional<SteadyClock::TimePoint> ids_checked_at_;
  Metrics::Gauge& usable_gauge_;
  Worker worker_;
};

}  // namespace fencepost::evm

// A repeated job: its step runs every `interval`, at once when woken, and at once again while it returns kAgain. Steps
// never overlap. A step that throws is logged and counted, and the next one waits with exponential backoff, so that a
// failing database or endpoint is not overloaded.
//
// The worker loop is one of the two places that catch exceptions; the request handler is the other.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/backoff.hpp"
#include "base/random.hpp"
#include "runtime/async.hpp"
#include "runtime/metrics.hpp"
#include "runtime/steady_clock.hpp"
#include "runtime/task_group.hpp"

namespace fencepost {

class Worker {
 public:
  enum class Next {
    kRest,   // no work left: wait for the interval or a wake
    kAgain,  // a full batch was done: more work may be due
  };
  using Step = std::function<awaitable<Next>()>;
  struct Options {
    std::string name;
    std::string chain = {};  // the `chain` label of its metrics; empty: no label
    std::chrono::milliseconds interval{1000};
    BackoffOptions backoff{.initial = std::chrono::milliseconds(100), .cap = std::chrono::seconds(30)};
    std::chrono::milliseconds stop_grace{500};  // for the step that runs when stop is called; 0: cancel it at once
    SteadyClock* clock = &SteadyClock::real();  // for the interval and the backoff; must outlive the worker
  };

  Worker(Executor executor, Options options, Step step, Metrics& metrics);

  void start();  // call on the loop's thread; the first step runs at once
  // Any thread may call. Wakes are merged; a wake during a step starts another step after it.
  void wake();
  // Call on the loop's thread. A running step may finish within stop_grace, but no longer than `at_most`; then it is
  // cancelled.
  awaitable<> stop(std::chrono::milliseconds at_most = std::chrono::milliseconds::max());

 private:
  // Shared with posted wakes, which may outlive the worker.
  struct Alarm {
    explicit Alarm(Executor executor) : home(executor), timer(executor) {}
    Executor home;
    asio::steady_timer timer;
    std::atomic<bool> woken{false};
  };

  awaitable<> run();
  awaitable<std::optional<Next>> step_once();
  awaitable<> rest(std::chrono::milliseconds delay, bool wakeable);

  Options options_;
  Step step_;
  SeededRandom random_;
  Backoff backoff_;
  TaskGroup group_;
  std::shared_ptr<Alarm> alarm_;
  Metrics::Counter& ok_total_;
  Metrics::Counter& failed_total_;
  Metrics::Summary& duration_;
};

}  // namespace fencepost

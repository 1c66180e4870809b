// A job that runs again and again: every `interval`, at once when woken, at once again while it says that there is
// more to do. It never overlaps itself. A run that throws is logged and counted, and the next one waits with
// exponential backoff: a broken world is not hammered.
//
// This is one of the two places where exceptions end.
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
    kRest,   // nothing left: wait for the interval or a wake
    kAgain,  // a full batch was done: there may be more
  };
  using Step = std::function<awaitable<Next>()>;
  struct Options {
    std::string name;
    std::string chain = {};  // the label of its metrics when it works for one chain
    std::chrono::milliseconds interval{1000};
    BackoffOptions backoff{.initial = std::chrono::milliseconds(100), .cap = std::chrono::seconds(30)};
    std::chrono::milliseconds stop_grace{500};  // for the step that runs when stop is called; 0: it is cancelled
    SteadyClock* clock = &SteadyClock::real();  // for the interval and the backoff; outlives the worker
  };

  Worker(Executor executor, Options options, Step step, Metrics& metrics);

  void start();  // on the loop's thread; the first step runs at once
  // Any thread, any number of times: wakes are merged, and one that comes during a step starts another after it.
  void wake();
  // On the loop's thread. A step in progress may finish within stop_grace, then it is cancelled.
  awaitable<> stop();

 private:
  // Shared with wakes that are still on their way when the worker is gone.
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
  Metrics::Histogram& duration_;
};

}  // namespace fencepost

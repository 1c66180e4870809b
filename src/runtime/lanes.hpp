// Serial lanes: tasks with the same key run one after the other, in the order they came, whichever thread they
// came from; tasks of different keys run side by side, `hash(key) % count` lanes at a time.
//
// Each lane is pinned to a loop and its line is bounded. A task that throws is logged and counted, and the lane
// goes on.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/async.hpp"
#include "runtime/bounded_queue.hpp"
#include "runtime/metrics.hpp"
#include "runtime/runtime.hpp"
#include "runtime/task_group.hpp"

namespace fencepost {

class Lanes {
 public:
  using Task = std::function<awaitable<>()>;
  struct Options {
    std::string name;
    std::size_t count = 16;
    std::size_t queue_limit = 1024;  // tasks waiting in one lane
  };

  Lanes(Runtime& runtime, Options options, Metrics& metrics);
  ~Lanes();

  void start();
  // Refuses new tasks, runs those in line, up to `grace`; then cancels the one that runs and drops those behind it,
  // with a line in the log. From a loop's thread. Stop whoever posts first: a task posted at the same moment may be
  // accepted and never run.
  awaitable<> stop(std::chrono::milliseconds grace);

  // Any thread. False, and the task never runs, when the lane is full or stopping: answer 503 with Retry-After.
  [[nodiscard]] bool post(std::string_view key, Task task);

  // Stable across runs and machines.
  std::size_t lane_of(std::string_view key) const;
  Executor executor_of(std::string_view key) const;

 private:
  struct Lane;

  awaitable<> serve(Lane& lane);
  awaitable<> stop_lanes_of(std::size_t loop, std::chrono::steady_clock::time_point deadline);

  Runtime& runtime_;
  Options options_;
  Metrics::Counter& refused_total_;
  Metrics::Counter& failed_total_;
  std::atomic<bool> stopping_{false};
  std::vector<std::unique_ptr<Lane>> lanes_;
};

}  // namespace fencepost

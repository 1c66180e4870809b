// A bounded set of coroutines that one owner starts and waits for, instead of `detached`.
//
// Pinned to one io_context: construct on any thread, call every method on the loop's thread. A task that throws is
// logged with the group's name (except when stop cancelled it) and counts as finished. Requires: the owner awaits
// `stop()` before it destroys the group; one stop at a time.
#pragma once

#include <chrono>
#include <list>
#include <memory>
#include <string>

#include <boost/asio/cancellation_signal.hpp>

#include "runtime/async.hpp"

namespace fencepost {

class TaskGroup {
 public:
  TaskGroup(Executor executor, std::string name, std::size_t limit);
  ~TaskGroup();
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;

  // Starts the task. Returns false, and never runs the task, when the group is full or stopping.
  [[nodiscard]] bool spawn(awaitable<> task);

  // Refuses new tasks, waits up to `grace` for the running ones, then cancels them (each pending operation ends with
  // operation_aborted) and waits until all have ended.
  awaitable<> stop(std::chrono::milliseconds grace);

  // Cancels the running tasks. Does not wait, and does not refuse new tasks.
  void cancel();

  std::size_t size() const { return running_.size(); }
  bool full() const { return running_.size() >= limit_; }
  bool stopping() const { return stopping_; }
  Executor executor() const { return executor_; }

 private:
  // Shared, because a task may finish and be removed from the list while its own signal is being emitted.
  using Signal = std::shared_ptr<asio::cancellation_signal>;

  awaitable<bool> wait_until_empty(std::chrono::steady_clock::time_point deadline);

  Executor executor_;
  std::string name_;
  std::size_t limit_;
  std::list<Signal> running_;
  asio::steady_timer emptied_;
  bool stopping_ = false;
};

}  // namespace fencepost

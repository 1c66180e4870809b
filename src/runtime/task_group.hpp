// A bounded set of coroutines that one owner starts and waits for, instead of `detached`.
//
// Pinned to one io_context: construct anywhere, call every method on its thread. A task that throws is logged
// with the group's name (unless it only says that it was cancelled by stop) and counts as finished. The owner must
// `co_await stop()` before the group is destroyed; one at a time.
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

  // Starts the task. False, and the task never runs, when the group is full or stopping.
  [[nodiscard]] bool spawn(awaitable<> task);

  // Refuses new tasks, waits up to `grace` for those that run, then cancels them (each pending operation ends
  // with operation_aborted) and waits until all are gone.
  awaitable<> stop(std::chrono::milliseconds grace);

  // Cancels what runs now, without waiting and without refusing new tasks.
  void cancel();

  std::size_t size() const { return running_.size(); }
  bool full() const { return running_.size() >= limit_; }
  bool stopping() const { return stopping_; }
  Executor executor() const { return executor_; }

 private:
  // Shared, since a task may finish, and leave the list, while its own signal is being emitted.
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

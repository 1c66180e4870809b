#include "runtime/task_group.hpp"

#include <cassert>
#include <utility>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>

#include "base/error.hpp"
#include "runtime/log.hpp"

namespace fencepost {

TaskGroup::TaskGroup(Executor executor, std::string name, std::size_t limit)
    : executor_(executor), name_(std::move(name)), limit_(limit), emptied_(executor) {}

TaskGroup::~TaskGroup() { assert(running_.empty() && "TaskGroup destroyed before stop() finished"); }

bool TaskGroup::spawn(awaitable<> task) {
  if (stopping_ || full()) return false;
  const auto signal = running_.emplace(running_.end());
  auto finished = [this, signal](const std::exception_ptr& failure) {
    if (failure && !stopping_) log::error("task failed", error_of(failure), {{"group", name_}});
    running_.erase(signal);
    if (running_.empty()) emptied_.cancel();
  };
  asio::co_spawn(executor_, std::move(task), asio::bind_cancellation_slot(signal->slot(), std::move(finished)));
  return true;
}

void TaskGroup::cancel() {
  // A cancelled task may finish inside emit and take its list node with it, so step on first.
  for (auto it = running_.begin(); it != running_.end();) (it++)->emit(asio::cancellation_type::all);
}

awaitable<> TaskGroup::stop(std::chrono::milliseconds grace) {
  stopping_ = true;
  if (co_await wait_until_empty(std::chrono::steady_clock::now() + grace)) co_return;
  // Cancellation reaches only the operation that is pending; a task that starts another one is asked again.
  while (!running_.empty()) {
    cancel();
    co_await wait_until_empty(std::chrono::steady_clock::now() + std::chrono::milliseconds(50));
  }
}

awaitable<bool> TaskGroup::wait_until_empty(std::chrono::steady_clock::time_point deadline) {
  while (!running_.empty() && std::chrono::steady_clock::now() < deadline) {
    emptied_.expires_at(deadline);
    co_await emptied_.async_wait(use_tuple);
  }
  co_return running_.empty();
}

}  // namespace fencepost

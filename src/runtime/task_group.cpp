#include "runtime/task_group.hpp"

#include <cassert>
#include <utility>
#include <vector>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>

#include "base/error.hpp"
#include "runtime/log.hpp"

namespace fencepost {
namespace {

bool is_cancellation(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const boost::system::system_error& e) {
    return e.code() == asio::error::operation_aborted;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace

TaskGroup::TaskGroup(Executor executor, std::string name, std::size_t limit)
    : executor_(executor), name_(std::move(name)), limit_(limit), emptied_(executor) {}

TaskGroup::~TaskGroup() {
  assert(running_.empty() && "TaskGroup destroyed before stop() finished");
}

bool TaskGroup::spawn(awaitable<> task) {
  if (stopping_ || full()) return false;
  const auto place = running_.insert(running_.end(), std::make_shared<asio::cancellation_signal>());
  auto finished = [this, place](const std::exception_ptr& failure) {
    if (failure && !(stopping_ && is_cancellation(failure))) {
      log::error("task failed", error_of(failure), {{"group", name_}});
    }
    running_.erase(place);
    if (running_.empty()) emptied_.cancel();
  };
  asio::co_spawn(executor_, std::move(task), asio::bind_cancellation_slot((*place)->slot(), std::move(finished)));
  return true;
}

void TaskGroup::cancel() {
  const std::vector<Signal> signals(running_.begin(), running_.end());
  for (const auto& signal : signals) signal->emit(asio::cancellation_type::all);
}

awaitable<> TaskGroup::stop(std::chrono::milliseconds grace) {
  stopping_ = true;
  if (co_await wait_until_empty(std::chrono::steady_clock::now() + grace)) co_return;
  // Cancellation ends only the pending operation. A task that starts another operation is cancelled again.
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
  co_return size() == 0;
}

}  // namespace fencepost

// Runs coroutines side by side on the caller's loop and waits for all of them.
#pragma once

#include <exception>
#include <expected>
#include <memory>
#include <optional>
#include <vector>

#include <boost/asio/co_spawn.hpp>

#include "runtime/async.hpp"
#include "runtime/completion.hpp"

namespace fencepost {

// Returns the results in the order of the tasks, or rethrows the first exception once all tasks have ended. A cancelled
// caller returns at once and the tasks continue, so they must own what they use. The caller must bound their number.
template <class T>
awaitable<std::vector<T>> gather(std::vector<awaitable<T>> tasks) {
  struct State {
    explicit State(Executor home, std::size_t count) : results(count), left(count), done(home) {}
    std::vector<std::optional<T>> results;
    std::size_t left;
    std::exception_ptr failure;
    Completion<bool> done;
  };
  if (tasks.empty()) co_return std::vector<T>();
  const Executor home = co_await this_executor();
  const auto state = std::make_shared<State>(home, tasks.size());
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    asio::co_spawn(home, std::move(tasks[i]), [state, i](const std::exception_ptr& failure, T result) {
      if (failure && !state->failure) state->failure = failure;
      if (!failure) state->results[i] = std::move(result);
      if (--state->left == 0) state->done.complete(true);
    });
  }
  co_await state->done.wait();
  if (state->failure) std::rethrow_exception(state->failure);
  std::vector<T> out;
  out.reserve(state->results.size());
  for (auto& result : state->results) out.push_back(std::move(*result));
  co_return out;
}

// The same for coroutines without a result.
inline awaitable<> gather(std::vector<awaitable<>> tasks) {
  const auto finish = [](awaitable<> task) -> awaitable<bool> {
    co_await std::move(task);
    co_return true;
  };
  std::vector<awaitable<bool>> finished;
  finished.reserve(tasks.size());
  for (auto& task : tasks) finished.push_back(finish(std::move(task)));
  co_await gather(std::move(finished));
}

}  // namespace fencepost

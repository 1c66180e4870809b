// Runs a coroutine on another loop and waits for it on the caller's loop.
#pragma once

#include <exception>
#include <expected>
#include <memory>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>

#include "runtime/async.hpp"
#include "runtime/completion.hpp"

namespace fencepost {

// Calls `make()`, which returns the coroutine, on the target's thread; its captures live until the coroutine ends. When
// the target is the caller's own loop, the coroutine runs there directly. A cancelled caller returns at once
// (operation_aborted); the coroutine runs to its end and its result is dropped.
template <class F>
auto on_loop(Executor target, F make) -> std::invoke_result_t<F&> {
  using Value = typename std::invoke_result_t<F&>::value_type;
  using Outcome = std::expected<Value, std::exception_ptr>;
  const Executor home = co_await this_executor();
  if (home == target) co_return co_await make();

  const auto answer = std::make_shared<Completion<Outcome>>(home);
  auto task = [](F body) -> awaitable<Outcome> {
    try {
      if constexpr (std::is_void_v<Value>) {
        co_await body();
        co_return Outcome();
      } else {
        co_return Outcome(co_await body());
      }
    } catch (const std::exception&) {
      co_return Outcome(std::unexpected(std::current_exception()));
    }
  };
  asio::co_spawn(
      target, task(std::move(make)), [home, answer](const std::exception_ptr& failure, Outcome outcome) mutable {
        auto carried = std::make_shared<Outcome>(failure ? Outcome(std::unexpected(failure)) : std::move(outcome));
        asio::post(home, [answer = std::move(answer), carried = std::move(carried)] {
          answer->complete(std::move(*carried));
        });
      });
  co_await answer->wait();
  if (!answer->value()) std::rethrow_exception(answer->value().error());
  if constexpr (!std::is_void_v<Value>) co_return std::move(*answer->value());
}

}  // namespace fencepost

// The names of Asio that the other modules use.
#pragma once

#include <chrono>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace fencepost {

namespace asio = boost::asio;

template <class T = void>
using awaitable = asio::awaitable<T>;

// Every coroutine runs on one io_context, and one thread runs each io_context. Objects of one loop therefore need no
// locks; work for another loop is posted to it.
using Executor = asio::io_context::executor_type;

// `auto [ec, n] = co_await socket.async_read_some(buffer, use_tuple);`: returns errors as values.
inline constexpr auto use_tuple = asio::as_tuple(asio::use_awaitable);

// The executor of the loop that the calling coroutine runs on.
inline awaitable<Executor> this_executor() {
  const asio::any_io_executor executor = co_await asio::this_coro::executor;
  co_return *executor.target<Executor>();
}

}  // namespace fencepost

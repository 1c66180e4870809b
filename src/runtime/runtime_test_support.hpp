// What the tests of coroutines share: a loop with a deadline, conditions to await, and the log as text.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iterator>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/system/system_error.hpp>

#include "runtime/async.hpp"
#include "runtime/log.hpp"

namespace fencepost::test {

inline constexpr std::chrono::seconds kLimit{20};

// Runs body() to its end on a fresh loop in this thread; throws what it throws, and when it hangs.
inline void on_loop(std::function<awaitable<>()> body) {
  asio::io_context context(1);
  auto done = asio::co_spawn(context, body(), asio::use_future);
  context.run_for(kLimit);
  if (done.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    throw std::runtime_error("the test did not end in time");
  }
  done.get();
}

// True as soon as the condition holds; false when it does not in time.
inline awaitable<bool> comes_true(std::function<bool()> condition) {
  asio::steady_timer timer(co_await asio::this_coro::executor);
  const auto deadline = std::chrono::steady_clock::now() + kLimit / 2;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= deadline) co_return false;
    timer.expires_after(std::chrono::milliseconds(1));
    co_await timer.async_wait(asio::use_awaitable);
  }
  co_return true;
}

// Lets everything that is ready on this loop run, several times over: what was going to happen at once has happened.
inline awaitable<> turns(int count = 50) {
  for (int i = 0; i < count; ++i) co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
}

// Never ends by itself; ends with operation_aborted when cancelled.
inline awaitable<> hang() {
  asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
  co_await never.async_wait(asio::use_awaitable);
}

// Closed until opened, on one loop.
class Gate {
 public:
  explicit Gate(Executor executor) : timer_(executor, asio::steady_timer::time_point::max()) {}
  void open() {
    open_ = true;
    timer_.cancel();
  }
  awaitable<> pass() {
    if (!open_) co_await timer_.async_wait(use_tuple);
    if (!open_) throw boost::system::system_error(asio::error::operation_aborted);
  }

 private:
  asio::steady_timer timer_;
  bool open_ = false;
};

// Collects what is logged from now on.
class LogText {
 public:
  LogText() {
    std::remove(path_.c_str());
    log::init({.level = log::Level::kDebug, .file = path_});
  }
  ~LogText() {
    log::shutdown();
    std::remove(path_.c_str());
  }
  // What was logged so far; nothing is collected afterwards.
  std::string take() {
    log::shutdown();
    std::ifstream in(path_);
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  std::string path_ = testing::TempDir() + "fencepost-log-" + std::to_string(::getpid());
};

}  // namespace fencepost::test

// Helpers for tests of coroutines: a loop with a deadline, conditions to await, and the log as text.
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

// Runs body() to its end on a new loop in this thread. Throws what body() throws, and throws when it hangs.
inline void on_loop(std::function<awaitable<>()> body) {
  asio::io_context context(1);
  auto done = asio::co_spawn(context, body(), asio::use_future);
  context.run_for(kLimit);
  if (done.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    throw std::runtime_error("the test did not end in time");
  }
  done.get();
}

// Returns true as soon as the condition holds, false at the deadline.
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

// Lets all ready work of this loop run, several times, so that anything due without a wait has happened.
inline awaitable<> turns(int count = 50) {
  for (int i = 0; i < count; ++i) co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
}

// Never ends by itself; ends with operation_aborted when cancelled.
inline awaitable<> hang() {
  asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
  co_await never.async_wait(asio::use_awaitable);
}

// A gate that coroutines of one loop wait at until a test opens it.
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

// Collects log lines from its construction on.
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
  // Returns the lines logged so far, and stops collecting.
  std::string take() {
    log::shutdown();
    std::ifstream in(path_);
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  std::string path_ = testing::TempDir() + "fencepost-log-" + std::to_string(::getpid());
};

}  // namespace fencepost::test

// A value that one coroutine waits for and somebody else delivers.
//
// Pinned to one loop, and shared (std::shared_ptr) between the two sides, so that the waiter may give up, by
// deadline or by cancellation, and a late delivery finds its place still there and nobody hurt.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>

#include "runtime/async.hpp"

namespace fencepost {

using Deadline = std::chrono::steady_clock::time_point;
inline constexpr Deadline kNoDeadline = Deadline::max();

template <class T>
class Completion {
 public:
  explicit Completion(Executor executor) : wake_(executor, kNoDeadline) {}

  // Delivers, on the loop's thread. The first value counts.
  void complete(T value) {
    if (value_) return;
    value_.emplace(std::move(value));
    wake_.cancel();
  }

  bool done() const { return value_.has_value(); }
  T& value() { return *value_; }

  // True once the value is there, false when the deadline came first; it may be awaited again then, by one coroutine
  // at a time. Throws system_error(operation_aborted) when the waiting coroutine is cancelled.
  awaitable<bool> wait(Deadline deadline = kNoDeadline) {
    if (!value_) {
      if (wake_.expiry() != deadline) wake_.expires_at(deadline);
      const auto [ec] = co_await wake_.async_wait(use_tuple);
      if (!value_ && ec) throw boost::system::system_error(asio::error::operation_aborted);
    }
    co_return value_.has_value();
  }

 private:
  asio::steady_timer wake_;
  std::optional<T> value_;
};

}  // namespace fencepost

// A value that one coroutine waits for and other code delivers.
//
// Pinned to one loop. Both sides share it by std::shared_ptr, so the waiter may give up, by deadline or cancellation,
// and a late delivery is still safe.
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

  // Delivers the value; call on the loop's thread. Later values are ignored.
  void complete(T value) {
    if (value_) return;
    value_.emplace(std::move(value));
    wake_.cancel();
  }

  bool done() const { return value_.has_value(); }
  T& value() { return *value_; }

  // Returns true once the value is there, false when the deadline passed first; the caller may then wait again.
  // Requires: one waiting coroutine at a time. Throws system_error(operation_aborted) when that coroutine is cancelled.
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

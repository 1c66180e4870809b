// A queue with a limit between coroutines of one loop.
//
// The consumer takes what has gathered while it was busy, so work forms batches under load and waits for nothing
// when idle. Full is an answer for the producer to pass on, never memory without end.
#pragma once

#include <deque>
#include <utility>
#include <vector>

#include "runtime/async.hpp"

namespace fencepost {

template <class T>
class BoundedQueue {
 public:
  BoundedQueue(Executor executor, std::size_t limit) : limit_(limit), changed_(executor, Timer::time_point::max()) {}

  // False, and nothing is taken from the caller, when the queue is full or closed.
  [[nodiscard]] bool try_push(T&& item) {
    if (closed_ || items_.size() >= limit_) return false;
    items_.push_back(std::move(item));
    changed_.cancel();
    return true;
  }

  // Until there is something to take; false once the queue is closed and drained. One consumer.
  awaitable<bool> wait() {
    while (items_.empty() && !closed_) {
      const auto [ec] = co_await changed_.async_wait(use_tuple);
      // Woken by try_push or close; an empty queue then means that this coroutine itself was cancelled.
      if (items_.empty() && !closed_) throw boost::system::system_error(ec);
    }
    co_return !items_.empty();
  }

  // At most `most` items, in order.
  std::vector<T> take(std::size_t most) {
    std::vector<T> out;
    const auto count = std::min(most, items_.size());
    out.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      out.push_back(std::move(items_.front()));
      items_.pop_front();
    }
    return out;
  }

  // Refuses new items; what is queued can still be taken.
  void close() {
    closed_ = true;
    changed_.cancel();
  }

  std::size_t size() const { return items_.size(); }
  bool closed() const { return closed_; }

 private:
  using Timer = asio::steady_timer;

  std::size_t limit_;
  std::deque<T> items_;
  Timer changed_;
  bool closed_ = false;
};

}  // namespace fencepost

// A bounded queue between coroutines of one loop. Call every method on that loop's thread.
//
// The consumer takes all items that arrived while it was busy: batches grow under load, and an idle consumer starts at
// once. When the queue is full, the producer must refuse the work.
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

  // Returns false, and leaves the item with the caller, when the queue is full or closed.
  [[nodiscard]] bool try_push(T&& item) {
    if (closed_ || items_.size() >= limit_) return false;
    items_.push_back(std::move(item));
    changed_.cancel();
    return true;
  }

  // Waits for an item; returns false once the queue is closed and empty. Requires: one consumer at a time.
  awaitable<bool> wait() {
    while (items_.empty() && !closed_) {
      const auto [ec] = co_await changed_.async_wait(use_tuple);
      // try_push and close wake this wait. If the queue is still empty and open, the coroutine itself was cancelled.
      if (items_.empty() && !closed_) throw boost::system::system_error(ec);
    }
    co_return !items_.empty();
  }

  // Returns at most `most` items, in order; empty when there are none.
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

  // Refuses new items; queued items can still be taken.
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

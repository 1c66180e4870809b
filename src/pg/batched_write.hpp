// Combines many small writes into few commits: items that arrive while a commit is in flight form the next one
// (runtime/batcher), and an item that PostgreSQL refuses fails alone (pg/halving).
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "pg/halving.hpp"
#include "runtime/batcher.hpp"

namespace fencepost::pg {

template <class Item, class Answer>
class BatchedWrite {
 public:
  // Writes the items in one transaction, and returns one answer for each, in order. Runs on a lane's loop. It is called
  // again for each half of a set that was refused.
  using Write = std::function<awaitable<std::vector<Answer>>(std::span<const Item>)>;

  BatchedWrite(Runtime& runtime, BatcherOptions options, Write write, Metrics& metrics)
      : runtime_(runtime),
        write_(std::move(write)),
        batcher_(
            runtime, std::move(options), [this](std::vector<Item> items) { return write_all(std::move(items)); },
            metrics) {}

  void start() { batcher_.start(); }  // any thread may call
  // Call on a loop's thread. Refuses new items, and writes the queued ones within `grace`.
  awaitable<> stop(std::chrono::milliseconds grace) { return batcher_.stop(runtime_, grace); }

  // Any loop may call. Items of one key are written in order of arrival. Throws this item's own error, the error that
  // failed the whole set, or kUnavailable `busy` as Batcher::submit does.
  awaitable<Answer> submit(std::string_view key, Item item) {
    auto outcome = co_await batcher_.submit(key, std::move(item));
    if (!outcome) std::rethrow_exception(outcome.error());
    co_return std::move(*outcome);
  }

 private:
  awaitable<std::vector<Outcome<Answer>>> write_all(std::vector<Item> items) {
    co_return co_await write_or_halve<Answer>(std::span<const Item>(items), write_);
  }

  Runtime& runtime_;
  Write write_;
  Batcher<Item, Outcome<Answer>> batcher_;
};

}  // namespace fencepost::pg

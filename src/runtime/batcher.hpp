// Combines small requests into large ones: requests that arrive while a batch is in flight form the next batch.
//
// Callers that were answered together tend to submit again together. So after a batch, a lane waits up to a quarter of
// that batch's duration for as many requests again; otherwise the first new request would form a batch of its own. An
// idle lane, or one with a single caller at a time, never waits.
//
// Requests are spread over lanes by key. Requests of one key are handled in order of arrival, one batch at a time. Each
// lane is pinned to a loop; any loop of the runtime may call `submit`, and gets its answer on that loop. Lanes are
// bounded: a full lane refuses new requests.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/post.hpp>

#include "base/error.hpp"
#include "base/stable_hash.hpp"
#include "runtime/bounded_queue.hpp"
#include "runtime/completion.hpp"
#include "runtime/log.hpp"
#include "runtime/metrics.hpp"
#include "runtime/runtime.hpp"
#include "runtime/task_group.hpp"

namespace fencepost {

struct BatcherOptions {
  std::string name;
  std::size_t lanes = 2;
  std::size_t max_batch = 256;
  std::size_t queue_limit = 8192;             // requests waiting in one lane
  double wait_share = 0.25;                   // wait at most this share of the last batch's duration
  std::chrono::milliseconds longest_wait{2};  // and never longer than this
};

template <class Item, class Answer>
class Batcher {
 public:
  // Runs on the lane's loop. Returns one answer for each item, in order. An exception is passed to every caller.
  using Handler = std::function<awaitable<std::vector<Answer>>(std::vector<Item>)>;

  Batcher(Runtime& runtime, BatcherOptions options, Handler handler, Metrics& metrics)
      : options_(std::move(options)),
        handler_(std::move(handler)),
        batches_total_(metrics.counter("batcher_batches_total", "Batches handled", {{"batcher", options_.name}})),
        items_total_(
            metrics.counter("batcher_items_total", "Items in the batches handled", {{"batcher", options_.name}})),
        refused_total_(metrics.counter("batcher_items_refused_total", "Items that a full lane refused",
                                       {{"batcher", options_.name}})) {
    for (std::size_t i = 0; i < options_.lanes; ++i) {
      lanes_.push_back(std::make_unique<Lane>(runtime.executor(i % runtime.size()), options_));
    }
  }

  // Any thread may call.
  void start() {
    for (auto& lane : lanes_) {
      asio::post(lane->home, [this, lane = lane.get()] {
        if (!lane->group.spawn(serve(*lane))) log::error("a batcher lane did not start", {{"batcher", options_.name}});
      });
    }
  }

  // Call on a loop's thread. Refuses new items, and handles the queued ones within `grace`.
  awaitable<> stop(Runtime& runtime, std::chrono::milliseconds grace) {
    stopping_ = true;
    co_await runtime.on_every_loop(
        [this, &runtime, grace](std::size_t index) { return stop_on(runtime.executor(index), grace); });
  }

  // Throws what the handler threw, or Exception kUnavailable `busy` when the lane is full or stopping; the item was
  // then not handled.
  awaitable<Answer> submit(std::string_view key, Item item) {
    auto& lane = *lanes_[stable_hash(key) % lanes_.size()];
    const Executor home = co_await this_executor();
    const auto pending = std::make_shared<Pending>(Pending{std::move(item), home, std::make_shared<Waiting>(home)});
    const auto waiting = pending->waiting;
    if (home == lane.home) {
      enqueue(lane, pending);
    } else {
      asio::post(lane.home, [this, &lane, pending] { enqueue(lane, pending); });
    }
    co_await waiting->wait();
    if (!waiting->value()) std::rethrow_exception(waiting->value().error());
    co_return std::move(*waiting->value());
  }

 private:
  using Outcome = std::expected<Answer, std::exception_ptr>;
  using Waiting = Completion<Outcome>;
  struct Pending {
    Item item;
    Executor home;
    std::shared_ptr<Waiting> waiting;
  };
  using PendingPtr = std::shared_ptr<Pending>;
  struct Lane {
    Lane(Executor executor, const BatcherOptions& options)
        : home(executor), queue(executor, options.queue_limit), group(executor, options.name, 1) {}
    Executor home;
    BoundedQueue<PendingPtr> queue;
    TaskGroup group;
    std::size_t expected = 0;  // queue length to wait for before the next batch
    Deadline patience;
    std::shared_ptr<Completion<bool>> enough;  // set while the lane waits for `expected`
  };

  void enqueue(Lane& lane, PendingPtr pending) {
    auto copy = pending;
    if (!stopping_ && lane.queue.try_push(std::move(copy))) {
      if (lane.enough && lane.queue.size() >= lane.expected) lane.enough->complete(true);
      return;
    }
    refused_total_.Increment();
    const auto busy = std::make_exception_ptr(Exception(
        unavailable("busy", "too many requests are waiting; try again shortly").after(std::chrono::seconds(1))));
    deliver({std::move(pending)}, {}, busy);
  }

  // Expects the callers just answered to submit again, spread evenly over the lanes, behind the queued requests.
  void expect_again(Lane& lane, std::size_t answered, Deadline begin) {
    const auto now = std::chrono::steady_clock::now();
    const auto share = std::chrono::duration_cast<Deadline::duration>((now - begin) * options_.wait_share);
    lane.expected = std::min(lane.queue.size() + answered / lanes_.size(), options_.max_batch);
    lane.patience = now + std::min<Deadline::duration>(share, options_.longest_wait);
  }

  awaitable<> wait_for_more(Lane& lane) {
    if (lane.queue.size() >= lane.expected || lane.queue.closed()) co_return;
    if (std::chrono::steady_clock::now() >= lane.patience) co_return;
    lane.enough = std::make_shared<Completion<bool>>(lane.home);
    co_await lane.enough->wait(lane.patience);
    lane.enough.reset();
  }

  awaitable<> serve(Lane& lane) {
    while (co_await lane.queue.wait()) {
      co_await wait_for_more(lane);
      auto pending = lane.queue.take(options_.max_batch);
      std::vector<Item> items;
      items.reserve(pending.size());
      for (auto& p : pending) items.push_back(std::move(p->item));
      std::vector<Answer> answers;
      std::exception_ptr failure;
      const auto begin = std::chrono::steady_clock::now();
      try {
        answers = co_await handler_(std::move(items));
        if (answers.size() != pending.size()) throw Exception(internal("batch_mismatch", "answers do not match items"));
      } catch (const std::exception&) {
        failure = std::current_exception();
      }
      expect_again(lane, pending.size(), begin);
      batches_total_.Increment();
      items_total_.Increment(static_cast<double>(pending.size()));
      deliver(std::move(pending), std::move(answers), failure);
    }
  }

  // Posts once per loop, not once per item.
  void deliver(std::vector<PendingPtr> pending, std::vector<Answer> answers, const std::exception_ptr& failure) {
    using Delivery = std::vector<std::pair<std::shared_ptr<Waiting>, Outcome>>;
    std::map<asio::execution_context*, std::pair<Executor, std::shared_ptr<Delivery>>> by_loop;
    for (std::size_t i = 0; i < pending.size(); ++i) {
      auto& slot = by_loop.try_emplace(&pending[i]->home.context(), pending[i]->home, std::make_shared<Delivery>())
                       .first->second.second;
      slot->emplace_back(std::move(pending[i]->waiting),
                         failure ? Outcome(std::unexpected(failure)) : Outcome(std::move(answers[i])));
    }
    for (auto& [context, target] : by_loop) {
      asio::post(target.first, [delivery = std::move(target.second)] {
        for (auto& [waiting, outcome] : *delivery) waiting->complete(std::move(outcome));
      });
    }
  }

  awaitable<> stop_on(Executor executor, std::chrono::milliseconds grace) {
    for (auto& lane : lanes_) {
      if (lane->home != executor) continue;
      lane->queue.close();
      if (lane->enough) lane->enough->complete(true);
      co_await lane->group.stop(grace);
    }
  }

  BatcherOptions options_;
  Handler handler_;
  std::atomic<bool> stopping_{false};
  std::vector<std::unique_ptr<Lane>> lanes_;
  Metrics::Counter& batches_total_;
  Metrics::Counter& items_total_;
  Metrics::Counter& refused_total_;
};

}  // namespace fencepost

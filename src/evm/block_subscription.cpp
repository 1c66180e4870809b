#include "evm/block_subscription.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/log.hpp"

namespace fencepost::evm {

ChainUpdate merge_missed(const ChainUpdate& earlier, const ChainUpdate& later) {
  ChainUpdate merged = later;
  merged.missed = true;
  if (earlier.reorged_to) merged.reorged_to = std::min(*earlier.reorged_to, later.reorged_to.value_or(INT64_MAX));
  return merged;
}

BlockSubscription::BlockSubscription(Executor executor, Options options, Subscriber subscriber, Metrics& metrics)
    : options_(std::move(options)),
      subscriber_(std::move(subscriber)),
      missed_total_(metrics.counter("chain_updates_missed_total",
                                    "How often a subscriber was too slow for the chain and its backlog was dropped",
                                    {{"chain", options_.chain}, {"subscriber", options_.subscriber}})),
      worker_(
          executor,
          {.name = fmt::format("{}_blocks", options_.subscriber),
           .chain = options_.chain,
           .interval = std::chrono::minutes(1),
           .backoff = options_.backoff,
           .stop_grace = options_.stop_grace},
          [this] { return deliver(); }, metrics) {}

void BlockSubscription::add(std::shared_ptr<const ChainUpdate> update) {
  waiting_.push_back(std::move(update));
  if (waiting_.size() > options_.limit) drop_backlog();
  worker_.wake();
}

// Drops the update in delivery too: it may fail for ever when its blocks were reorged away.
void BlockSubscription::drop_backlog() {
  log::warn("a subscriber is too slow for the chain: its backlog is dropped",
            {{"chain", options_.chain}, {"subscriber", options_.subscriber}, {"updates", waiting_.size()}});
  missed_total_.Increment();
  ChainUpdate merged = current_ ? *current_ : *waiting_.front();
  for (const auto& one : waiting_) merged = merge_missed(merged, *one);
  current_.reset();
  waiting_.clear();
  waiting_.push_back(std::make_shared<const ChainUpdate>(std::move(merged)));
}

awaitable<Worker::Next> BlockSubscription::deliver() {
  if (!current_) {
    if (waiting_.empty()) co_return Worker::Next::kRest;
    current_ = std::move(waiting_.front());
    waiting_.pop_front();
  }
  const auto update = current_;  // outlives drop_backlog
  co_await subscriber_(*update);
  if (current_ == update) current_.reset();
  co_return waiting_.empty() ? Worker::Next::kRest : Worker::Next::kAgain;
}

}  // namespace fencepost::evm

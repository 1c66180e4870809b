// Follows one chain: polls its head, fetches new blocks, detects reorgs by parent hash, and notifies subscribers.
//
// Each node has one follower for each chain, with its own view (window()). One poll uses one endpoint. An endpoint's
// head is followed by these rules:
//   higher than ours      always: the follower fetches the blocks between; if they do not link up with our window, it
//                         is a reorg
//   as high, another hash a reorg at once
//   lower, on our branch  ignored: the endpoint lags
//   lower, on another     either the endpoint lags on a fork, or a development chain was rolled back. Followed after
//                         `believe_lower_after` polls in a row with such a head from the same endpoint, unless another
//                         endpoint is as far as we are. A head below our window must also be no older than our oldest
//                         header: this excludes an endpoint that lags or syncs from genesis, but not a chain that was
//                         started anew
// A reorg deeper than the window, or a gap of more than `max_catch_up` blocks, restarts the window and logs an error.
//
// When the head does not move for `ask_others_after` polls, the follower asks other endpoints too: the preferred one
// may be stuck.
//
// After a poll that failed, the next one prefers the head of another endpoint: one that names a head without having its
// blocks must not stop the follower.
//
// At the start the follower fetches the last `window` blocks, and older ones back to the newest header that any node
// has stored. Subscribers thus get the blocks that were mined while all nodes were down, and some blocks twice.
//
// Headers are stored before subscribers are notified. Pinned to one loop.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "evm/block_subscription.hpp"
#include "evm/chain_connector.hpp"
#include "evm/header_store.hpp"
#include "evm/header_window.hpp"
#include "evm/listed_transactions.hpp"
#include "runtime/async.hpp"
#include "runtime/metrics.hpp"
#include "runtime/worker.hpp"

namespace fencepost::evm {

class BlockFollower {
 public:
  struct Options {
    std::string chain;  // the label of its metrics; empty: the chain's id
    std::chrono::milliseconds poll_interval{1000};
    std::size_t window = 256;                     // headers in memory; a deeper reorg restarts the window
    std::size_t batch = 50;                       // blocks in one request and in one update
    std::size_t max_undelivered = 16;             // backlog of one subscriber, in updates (block_subscription.hpp)
    std::int64_t max_catch_up = 50'000;           // blocks; a follower further behind skips to the head
    int believe_lower_after = 5;                  // polls
    int ask_others_after = 20;                    // polls without a new block
    std::chrono::milliseconds max_backoff{5000};  // of polls and subscribers that fail
    std::chrono::milliseconds stop_grace{5000};   // for the poll or update in flight when stop is called
    std::int64_t keep_headers = 100'000;          // stored headers this far below the head are deleted; 0: never
  };
  using Subscriber = BlockSubscription::Subscriber;

  // Keeps references: all of them must outlive the follower.
  BlockFollower(Executor executor, ChainConnector& chain, HeaderStore& store, const Clock& clock, Options options,
                Metrics& metrics);

  // Requires: not started. `name` is for logs and metrics. Each subscriber gets every update in order, at its own pace,
  // and again after it throws. A subscriber must accept a block twice; window() may be ahead of its current update.
  void subscribe(std::string name, Subscriber subscriber);

  void start();
  awaitable<> stop();
  void wake();  // polls now; any thread may call

  // Only on this loop. Empty until the first poll has succeeded. Does not change between two awaits of the caller.
  const HeaderWindow& window() const { return window_; }
  // The block on this node's branch that lists the transaction; nothing when no block in the window does. Only on this
  // loop.
  std::optional<Listing> listing(std::string_view tx_hash) const { return listed_.find(tx_hash); }
  // Whether a block on this node's branch lists the transaction; nothing when its transactions are not known. Only on
  // this loop.
  std::optional<bool> lists(std::int64_t block_number, std::string_view block_hash, std::string_view tx_hash) const {
    return listed_.lists(block_number, block_hash, tx_hash);
  }
  // Whether the last poll that succeeded is recent, and left nothing to fetch.
  bool synced() const;
  // When that poll ended. Nothing: none has succeeded yet. Only on this loop.
  std::optional<TimePoint> polled_at() const { return polled_at_; }

 private:
  struct LowerHead {
    std::size_t endpoint = 0;
    int polls = 0;
  };

  awaitable<Worker::Next> count_failures();
  awaitable<Worker::Next> poll();
  awaitable<Block> latest();
  // The head of the first other healthy endpoint that has reached `at_least`; nothing when there is none.
  awaitable<std::optional<Block>> elsewhere(std::size_t except, std::int64_t at_least);
  awaitable<> begin(Block head);
  awaitable<> follow(Block head);
  awaitable<bool> believed(Block& head);
  awaitable<std::vector<Block>> fetch(std::int64_t first, std::int64_t last, std::size_t endpoint);
  // Prepends earlier blocks to `branch` until it links up with the window. False when it does not link up.
  awaitable<bool> root(std::vector<Block>& branch);
  awaitable<> restart(Block head, std::int64_t first, bool reorged);
  awaitable<> take(std::vector<Block> blocks);
  awaitable<> forget_old_headers();
  void publish(std::vector<Block> blocks, std::optional<std::int64_t> reorged_to, bool missed);

  ChainConnector& chain_;
  HeaderStore& store_;
  const Clock& clock_;
  Options options_;
  HeaderWindow window_;
  ListedTransactions listed_;
  LowerHead lower_;
  int still_polls_ = 0;                // since the last new block
  std::optional<std::size_t> polled_;  // the endpoint that the poll uses, once it has answered
  std::optional<std::size_t> avoid_;   // the endpoint of the last poll, which failed
  bool caught_up_ = false;
  std::int64_t pruned_at_ = 0;
  std::optional<TimePoint> polled_at_;
  Metrics::Gauge& head_gauge_;
  Metrics::Counter& reorgs_total_;
  Metrics::Counter& errors_total_;
  Executor executor_;
  Metrics& metrics_;
  std::vector<std::unique_ptr<BlockSubscription>> subscriptions_;
  Worker worker_;
};

}  // namespace fencepost::evm

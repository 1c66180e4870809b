// Follows one chain: polls its head, fetches what is new, notices reorgs by parent hash, and tells subscribers.
//
// Each node has one for each chain, with a view of its own (window()). What one poll needs comes from one endpoint. The
// rules by which an endpoint's head is believed:
//   higher than ours      always: what lies between is fetched and must link up with our window, else it is a reorg
//   as high, another hash a reorg at once
//   lower, on our branch  the endpoint is behind: ignored
//   lower, on another     a node that lags on a fork looks like that, and so does a development chain that was wound
//                         back. Believed after `believe_lower_after` polls in a row that got such a head from the
//                         same endpoint, unless another endpoint is as far as we are. Below our window it must also
//                         be no older than our oldest header: the head of a node that is behind or still syncing
//                         (genesis!) always is, that of a chain started anew is not
// A reorg deeper than the window makes the window begin anew, loudly. So does a gap of more than `max_catch_up` blocks.
//
// When the head stands still for a while, other endpoints are asked too: the preferred one may be stuck.
//
// At the start the window is filled with the last `window` blocks, and further back to the newest header that any node
// has stored: subscribers are told of what was mined while all were down, and of some blocks for a second time.
//
// Headers are stored before subscribers are told. Pinned to one loop.
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
    std::size_t window = 256;                     // headers kept in memory: no reorg deeper than that is understood
    std::size_t batch = 50;                       // blocks in one request and in one update
    std::size_t max_undelivered = 16;             // updates that may wait for one subscriber (block_subscription.hpp)
    std::int64_t max_catch_up = 50'000;           // blocks; from further behind we skip to the head
    int believe_lower_after = 5;                  // polls
    int ask_others_after = 20;                    // polls without a new block
    std::chrono::milliseconds max_backoff{5000};  // of polls and subscribers that fail
    std::chrono::milliseconds stop_grace{5000};   // for the step that runs when stop is called
    std::int64_t keep_headers = 100'000;          // stored headers this far below the head are forgotten; 0: never
  };
  using Subscriber = BlockSubscription::Subscriber;

  // Keeps references: all of them outlive this.
  BlockFollower(Executor executor, ChainConnector& chain, HeaderStore& store, const Clock& clock, Options options,
                Metrics& metrics);

  // Before start. `name` stands in logs and metrics. Each subscriber gets every update in order, at its own pace, and
  // again after it throws: it must be able to meet a block twice, and window() may be ahead of the update it handles.
  void subscribe(std::string name, Subscriber subscriber);

  void start();
  awaitable<> stop();
  void wake();  // any thread: polls now

  // On this loop only; empty until the first poll has succeeded. Changes only between awaits.
  const HeaderWindow& window() const { return window_; }
  // The block on this node's branch that lists the transaction; nothing when none in the window does. On this loop
  // only.
  std::optional<Listing> listing(std::string_view tx_hash) const { return listed_.find(tx_hash); }
  // Whether the last poll went well, was not long ago, and found nothing more to fetch.
  bool synced() const;

 private:
  struct LowerHead {
    std::size_t endpoint = 0;
    int polls = 0;
  };

  awaitable<Worker::Next> count_failures();
  awaitable<Worker::Next> poll();
  awaitable<Block> latest();
  // The head of the first other endpoint that is well and this far; nothing when none is.
  awaitable<std::optional<Block>> elsewhere(std::size_t except, std::int64_t at_least);
  awaitable<> begin(Block head);
  awaitable<> follow(Block head);
  awaitable<bool> believed(Block& head);
  awaitable<std::vector<Block>> fetch(std::int64_t first, std::int64_t last, std::size_t endpoint);
  // Puts the blocks before `branch` in front of it until it links up with the window. False: it does not.
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
  int still_polls_ = 0;  // since the last new block
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

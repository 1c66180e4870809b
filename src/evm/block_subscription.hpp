// One subscriber of a BlockFollower: gets every update of the chain in order, one at a time, at its own pace.
//
// A subscriber that throws gets the same update again, with exponential backoff. A slow or failing subscriber delays
// neither the other subscribers nor the follower: its backlog holds at most `limit` updates. A larger backlog is merged
// into one update with `missed` set, and the subscriber must find out by other means what happened in between.
//
// Pinned to one loop.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/backoff.hpp"
#include "evm/chain_connector.hpp"
#include "runtime/async.hpp"
#include "runtime/metrics.hpp"
#include "runtime/worker.hpp"

namespace fencepost::evm {

// The changes of a chain since the previous update.
struct ChainUpdate {
  // The highest block that the old and the new branch share. Blocks above it are orphaned unless `blocks` lists them
  // again. -1 when the branches share no block; none when there was no reorg.
  std::optional<std::int64_t> reorged_to;
  // Some blocks between the previous update and this one were not delivered: the follower was too far behind, or the
  // subscriber was too slow.
  bool missed = false;
  // New blocks, in order, each the parent of the next, with their transactions and the endpoint that has them.
  std::vector<Block> blocks;
};

// Merges two updates into one: the deeper reorg of both, with the blocks of the later one.
ChainUpdate merge_missed(const ChainUpdate& earlier, const ChainUpdate& later);

class BlockSubscription {
 public:
  using Subscriber = std::function<awaitable<>(const ChainUpdate&)>;
  struct Options {
    std::string chain;       // for logs and metrics
    std::string subscriber;  // the same
    std::size_t limit = 16;  // updates that may wait
    BackoffOptions backoff;
    std::chrono::milliseconds stop_grace{500};  // for the update in delivery when stop is called
  };

  BlockSubscription(Executor executor, Options options, Subscriber subscriber, Metrics& metrics);

  void start() { worker_.start(); }
  awaitable<> stop() { return worker_.stop(); }

  void add(std::shared_ptr<const ChainUpdate> update);

 private:
  awaitable<Worker::Next> deliver();
  void drop_backlog();

  Options options_;
  Subscriber subscriber_;
  std::shared_ptr<const ChainUpdate> current_;  // being delivered, perhaps not for the first time
  std::deque<std::shared_ptr<const ChainUpdate>> waiting_;
  Metrics::Counter& missed_total_;
  Worker worker_;
};

}  // namespace fencepost::evm

// One subscriber of a BlockFollower: gets every update of the chain in order, one at a time, at its own pace.
//
// A subscriber that throws gets the same update again, with exponential backoff. One that is slow or fails for long
// delays no other subscriber and not the follower: at most `limit` updates wait for it. Then they are merged into one
// that says `missed`, and the subscriber has to find out by other means what happened in between.
//
// Belongs to one loop.
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

// What changed on a chain since the update before.
struct ChainUpdate {
  // The highest block that both the old and the new branch have: reported blocks above it are gone, or reported again
  // below. May be -1: everything is gone.
  std::optional<std::int64_t> reorged_to;
  // Blocks between the last update's and these were not delivered: the node was away for too long, or the subscriber
  // was too slow.
  bool missed = false;
  // New blocks, in order, each the parent of the next, with their transactions and the endpoint that has them.
  std::vector<Block> blocks;
};

// One update in place of two: reorged as deep as the deeper one, with the later one's blocks.
ChainUpdate merge_missed(const ChainUpdate& earlier, const ChainUpdate& later);

class BlockSubscription {
 public:
  using Subscriber = std::function<awaitable<>(const ChainUpdate&)>;
  struct Options {
    std::string chain;       // for logs and metrics
    std::string subscriber;  // the same
    std::size_t limit = 16;  // updates that may wait
    BackoffOptions backoff;
    std::chrono::milliseconds stop_grace{500};  // for the update that is being delivered when stop is called
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

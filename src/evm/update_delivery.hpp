// Hands updates of a chain to those who want them: to each all of them, in order, one at a time, again and again until
// it takes them.
//
// A subscriber that throws is told of the same update later, with exponential backoff; the others go on meanwhile.
// What nobody has taken yet is bounded by the caller, who asks full() before it makes more. Belongs to one loop.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/backoff.hpp"
#include "base/clock.hpp"
#include "base/random.hpp"
#include "evm/chain_connector.hpp"
#include "runtime/async.hpp"
#include "runtime/metrics.hpp"

namespace fencepost::evm {

// What became of a chain since the update before.
struct ChainUpdate {
  // The last block that is still there: those above it that were told of are gone, or told of again below. May be -1:
  // everything is gone.
  std::optional<std::int64_t> reorged_to;
  // There are blocks between the last update's and these that nobody fetched: the node was away for too long.
  bool skipped = false;
  // New ones, in order, each the parent of the next, with their transactions and the endpoint that has them.
  std::vector<Block> blocks;
};

class UpdateDelivery {
 public:
  using Subscriber = std::function<awaitable<>(const ChainUpdate&)>;

  // `limit`: as many updates may wait for the slowest subscriber.
  UpdateDelivery(std::string name, std::size_t limit, BackoffOptions backoff, const Clock& clock,
                 Metrics::Counter& errors);

  void subscribe(Subscriber subscriber);

  // For everybody, from now on due.
  void add(ChainUpdate update);
  // Tells everybody what is due, except those who have failed a moment ago. Throws only when cancelled.
  awaitable<> deliver();

  bool idle() const;  // nothing is due to anybody
  bool full() const;

 private:
  struct Seat {
    Seat(Subscriber subscriber, const BackoffOptions& options, Random& random)
        : tell(std::move(subscriber)), backoff(options, random) {}
    Subscriber tell;
    std::deque<std::shared_ptr<const ChainUpdate>> due;
    Backoff backoff;
    TimePoint not_before{};
  };

  awaitable<> serve(Seat& seat);

  std::string name_;
  std::size_t limit_;
  BackoffOptions backoff_;
  const Clock& clock_;
  Metrics::Counter& errors_;
  SeededRandom random_;
  std::vector<std::unique_ptr<Seat>> seats_;
};

}  // namespace fencepost::evm

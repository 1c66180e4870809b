// Where a durable consumer's events go: a webhook, a broker. One more kind of receiver is one more Sink.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "outbox/delivery/consumer_store.hpp"
#include "outbox/feed/log_event.hpp"
#include "runtime/async.hpp"
#include "runtime/completion.hpp"

namespace fencepost::outbox {

struct Handed {
  std::size_t handled = 0;  // events at the front that need not be offered again
  // Set when fewer than all were handled: when to offer the rest again, and why.
  std::optional<std::chrono::milliseconds> retry_after;
  std::string error;
};

// What a sink did on its own between deliveries.
struct Tended {
  std::optional<std::chrono::milliseconds> again_after;  // nullopt: there is nothing to wait for
  std::string error;                                     // why the receiver gets nothing now; empty: it does
};

// Events behind the consumer's position that the receiver does not have yet, because the sink tries them again later.
struct Waiting {
  std::size_t events = 0;
  std::optional<Deadline> since;  // when the first of them was stored; nullopt: there are none
};

// Made for one consumer, on the loop that runs the consumer, and used by one coroutine at a time. A method that throws
// is called again after a backoff.
class Sink {
 public:
  virtual ~Sink() = default;
  // Which events the receiver gets; the others are skipped.
  virtual bool wants(const LogEvent& event) const = 0;
  // Hands over events, oldest first, at most `max_batch` of them. An event is handled when the receiver has
  // acknowledged it, or when the sink has stored in the database that it will deliver it later. The same event may be
  // offered again after a crash. The events stay valid until the coroutine ends. A cancelled call leaves no work behind
  // that uses this object.
  virtual awaitable<Handed> deliver(std::vector<const LogEvent*> events) = 0;
  virtual std::size_t max_batch() const = 0;
  // Work of the sink's own that is due, for example retries. Called between deliveries, and again after `again_after`
  // at the latest. Keep it short: no event is delivered meanwhile.
  virtual awaitable<Tended> tend() { co_return Tended{}; }
  virtual Waiting waiting() const { return {}; }
};

// Makes the sink of a claimed consumer, on the loop that will run it. Returns nullptr when the consumer has no settings
// any more; it is then left alone until its row changes. Throws when it cannot be made now: it is tried again.
using SinkFactory = std::function<awaitable<std::unique_ptr<Sink>>(Claim claim)>;

}  // namespace fencepost::outbox

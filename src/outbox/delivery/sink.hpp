// Where a durable consumer's events go: a webhook, a broker. One more kind of receiver is one more Sink.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "outbox/feed/log_event.hpp"
#include "runtime/async.hpp"

namespace fencepost::outbox {

struct Handed {
  std::size_t handled = 0;  // events at the front that need not be offered again
  // Set when fewer than all were handled: when to offer the rest again, and why.
  std::optional<std::chrono::milliseconds> retry_after;
  std::string error;
};

// Made for one consumer, on the loop that runs the consumer, and used by one coroutine at a time.
class Sink {
 public:
  virtual ~Sink() = default;
  // Which events the receiver gets; the others are skipped.
  virtual bool wants(const LogEvent& event) const = 0;
  // Hands over events, oldest first, at most `max_batch` of them. An event is handled when the receiver has
  // acknowledged it, or when the sink has stored in the database that it will deliver it later. The same event may be
  // offered again after a crash. The events stay valid until the coroutine ends.
  virtual awaitable<Handed> deliver(std::vector<const LogEvent*> events) = 0;
  virtual std::size_t max_batch() const = 0;
};

}  // namespace fencepost::outbox

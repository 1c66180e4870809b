// Reads the log once for all consumers of a node.
//
// The feed follows the end of the log and holds the newest events in memory, bounded in number and bytes. A consumer at
// the end reads from memory. A consumer that is behind reads pages from the database, which consumers share too
// (outbox/feed/event_pages.hpp). Events are offered only when they are settled (outbox::Settled), in the order of seq,
// so a position (the seq of the last event that a consumer has handled) never skips an event that commits late.
//
//   for (;;) {
//     const auto slice = co_await feed.read(position);
//     for (const auto& event : slice) …
//     if (slice.empty()) co_await feed.wait_beyond(position, deadline);
//     position = slice.through;
//   }
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "outbox/feed/event_pages.hpp"
#include "outbox/feed/horizon.hpp"
#include "outbox/feed/log_event.hpp"
#include "outbox/outbox_store.hpp"
#include "pg/database.hpp"
#include "pg/listener.hpp"
#include "runtime/completion.hpp"
#include "runtime/metrics.hpp"
#include "runtime/worker.hpp"

namespace fencepost::outbox {

struct FeedOptions {
  std::size_t max_events = 20'000;                // held in memory
  std::size_t max_bytes = 32 * 1024 * 1024;       // of their envelopes
  std::chrono::milliseconds poll_interval{1000};  // without a notification
};

// The events that follow a position.
struct FeedSlice {
  std::shared_ptr<const LogEvents> chunk;  // shared by all readers; nullptr when there is nothing
  std::size_t first = 0;                   // in the chunk
  std::int64_t through = 0;                // the position to read on from
  bool live = false;                       // from memory: this reader is at the end of the log, or near it

  std::span<const LogEvent> events() const {
    return chunk ? std::span(*chunk).subspan(first) : std::span<const LogEvent>();
  }
  bool empty() const { return events().empty(); }
};

class EventFeed {
 public:
  EventFeed(Runtime& runtime, pg::Database& database, pg::Listener& listener, const EventCatalog& catalog,
            FeedOptions options, Metrics& metrics);

  // Call both on the home loop (loop 0). prepare() finds the end of the log and may be repeated.
  awaitable<> prepare();
  void start() { worker_.start(); }
  awaitable<> stop();

  // The seq of the newest event. A consumer that wants events from now on starts here. Any thread.
  std::int64_t newest() const { return newest_.load(); }
  const EventCatalog& catalog() const { return catalog_; }

  // The events after that position, at least one if there is any settled event after it; empty otherwise. 0: from the
  // oldest event that the log still has. A position whose following events were removed gets an event of type
  // EventsGap first. An empty slice may still move the position (`through`). Any loop.
  awaitable<FeedSlice> read(std::int64_t after);

  // Returns true when there may be events after that position, false at the deadline. Any loop. Throws system_error
  // operation_aborted when the caller is cancelled, or when the feed stops.
  awaitable<bool> wait_beyond(std::int64_t after, Deadline deadline);

  // Looks for new events now. Any thread.
  void wake() { worker_.wake(); }

 private:
  struct Chunk {
    std::shared_ptr<const LogEvents> events;
    std::size_t bytes = 0;
  };
  // The waiting readers of one loop. `waiting` is read by the home loop, the rest only by its own loop.
  struct Bell {
    std::atomic<bool> waiting{false};
    std::list<std::shared_ptr<Completion<bool>>> readers;
  };

  awaitable<Worker::Next> follow();
  awaitable<bool> take_settled();
  void append(LogEvents events);
  std::optional<FeedSlice> from_memory(std::int64_t after);
  awaitable<FeedSlice> from_pages(std::int64_t after);
  void on_hint();
  void ring();

  Runtime& runtime_;
  pg::Database& database_;
  const EventCatalog& catalog_;
  FeedOptions options_;
  Executor home_;
  Settled settled_;
  std::chrono::milliseconds look_again_{1};
  std::int64_t read_through_ = 0;  // the last event that was read
  HorizonWatch horizon_;
  EventPages pages_;

  std::mutex mutex_;  // of the members below; held only to copy pointers
  std::deque<Chunk> chunks_;
  std::size_t held_events_ = 0;
  std::size_t held_bytes_ = 0;
  std::int64_t held_after_ = 0;  // memory has every event after this seq

  std::atomic<std::int64_t> newest_{0};
  std::atomic<bool> ready_{
      false};  // everything up to newest_ is settled; false after a start, and after a crash of PostgreSQL
  std::atomic<bool> stopped_{false};
  std::atomic<bool> hint_ignored_{false};     // a commit was announced while no reader waited
  std::vector<std::shared_ptr<Bell>> bells_;  // one for each loop; shared with posted rings
  Metrics::Counter& events_total_;
  Metrics::Gauge& held_gauge_;
  Worker worker_;
};

}  // namespace fencepost::outbox

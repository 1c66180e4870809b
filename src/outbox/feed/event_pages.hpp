// Pages of the log for readers that are behind its end. Readers of the same page share one query and one copy; the last
// pages are remembered, so that readers that follow each other do not read the log each for itself.
//
// Pinned to one loop.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "outbox/feed/log_event.hpp"
#include "pg/pool.hpp"
#include "runtime/completion.hpp"
#include "runtime/metrics.hpp"

namespace fencepost::outbox {

// The events with after < seq <= through, oldest first.
struct EventsRead {
  std::shared_ptr<const LogEvents> events;  // never null
  std::size_t first = 0;                    // the first event after the position that was asked for
  std::int64_t through = 0;                 // where to read on
};

// Reads the events with after < seq <= through. Throws as pg::Pool does.
awaitable<LogEvents> read_log(pg::Pool& pool, const EventCatalog& catalog, std::int64_t after, std::int64_t through,
                              std::size_t limit);

class EventPages {
 public:
  static constexpr std::int64_t kPageSeqs = 1000;  // a page covers this many numbers, used or not
  static constexpr std::size_t kPagesHeld = 32;

  EventPages(Executor home, const EventCatalog& catalog, Metrics& metrics);

  // The events after that position, none beyond `settled`. Without events `through` is `after`: a settled number may be
  // handed out again after a crash of PostgreSQL, so it is no position. After a removal of events that the reader has
  // not seen, the first event has the type EventsGap; a reader at 0 wants what there is and gets no such event.
  awaitable<EventsRead> read(pg::Pool& pool, std::int64_t after, std::int64_t settled);

 private:
  struct Page {
    std::shared_ptr<const LogEvents> events;
    std::int64_t oldest = 0;  // seq of the first row of the log when the page was read; 0: the log was empty
    TimePoint read_at;
  };
  struct Slot {
    std::int64_t index = 0;
    std::shared_ptr<const Page> page;  // null while it is read
    std::vector<std::shared_ptr<Completion<bool>>> waiting;
  };

  awaitable<std::shared_ptr<const Page>> page(pg::Pool& pool, std::int64_t index, std::int64_t settled);
  awaitable<std::shared_ptr<const Page>> fetch(pg::Pool& pool, std::int64_t after, std::int64_t through);
  awaitable<std::shared_ptr<const Page>> fetch_shared(pg::Pool& pool, std::int64_t index);
  Slot* find(std::int64_t index);

  Executor home_;
  const EventCatalog& catalog_;
  std::list<Slot> slots_;  // the most recently used first
  Metrics::Counter& reads_total_;
};

}  // namespace fencepost::outbox

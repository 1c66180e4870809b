#include "outbox/feed/event_pages.hpp"

#include <algorithm>
#include <iterator>

namespace fencepost::outbox {
namespace {

using pg::Statement;

constexpr Statement kReadLog{"outbox_read_log", R"(
  SELECT seq, type, subject, at, data
    FROM event
   WHERE seq > $1
     AND seq <= $2
     AND type IS NOT NULL
   ORDER BY seq
   LIMIT $3)"};

constexpr Statement kOldest{"outbox_oldest", R"(
  SELECT coalesce(min(seq), 0) AS seq, clock_timestamp() AS now
    FROM event)"};

constexpr Statement kNextEvent{"outbox_next_event", R"(
  SELECT seq
    FROM event
   WHERE seq > $1
     AND seq <= $2
     AND type IS NOT NULL
   ORDER BY seq
   LIMIT 1)"};

LogEvents read_rows(const EventCatalog& catalog, const pg::ResultSet& rows) {
  LogEvents events;
  events.reserve(static_cast<std::size_t>(rows.size()));
  for (const auto row : rows) {
    events.push_back(make_log_event(catalog, row.get<std::int64_t>(0), row.get<std::string_view>(1),
                                    row.get<std::string_view>(2), row.get<TimePoint>(3), row.get<std::string_view>(4)));
  }
  return events;
}

EventsRead gap_before(std::int64_t after, std::int64_t oldest, TimePoint now) {
  auto events = std::make_shared<LogEvents>();
  events->push_back(make_gap_event(after + 1, oldest - 1, now));
  return {.events = std::move(events), .first = 0, .through = oldest - 1};
}

}  // namespace

EventPages::EventPages(Executor home, const EventCatalog& catalog, Metrics& metrics)
    : home_(home),
      catalog_(catalog),
      reads_total_(metrics.counter("outbox_page_reads_total", "Pages of the log read for consumers that are behind")) {}

awaitable<LogEvents> read_log(pg::Pool& pool, const EventCatalog& catalog, std::int64_t after, std::int64_t through,
                              std::size_t limit) {
  const auto rows = co_await pool.query(kReadLog, after, through, limit);
  co_return read_rows(catalog, rows);
}

awaitable<EventsRead> EventPages::read(pg::Pool& pool, const std::int64_t asked, std::int64_t settled) {
  for (auto after = asked;;) {
    if (after >= settled) {
      co_return EventsRead{.events = std::make_shared<LogEvents>(), .first = 0, .through = asked};
    }
    const auto index = after / kPageSeqs;
    const auto found = co_await page(pool, index, settled);
    if (after > 0 && after < found->oldest - 1) co_return gap_before(after, found->oldest, found->read_at);
    const auto& events = *found->events;
    const auto first = std::ranges::upper_bound(events, after, {}, &LogEvent::seq);
    if (first != events.end()) {
      co_return EventsRead{.events = found->events,
                           .first = static_cast<std::size_t>(std::distance(events.begin(), first)),
                           .through = events.back().seq};
    }
    // The rest of the page is empty. Skip to the next event instead of reading one empty page after the other.
    const auto next = co_await pool.query(kNextEvent, after, settled);
    after = next.empty() ? settled : next.one().get<std::int64_t>("seq") - 1;
  }
}

// A page that is not settled as a whole may still get events: it is read anew each time.
awaitable<std::shared_ptr<const EventPages::Page>> EventPages::page(pg::Pool& pool, std::int64_t index,
                                                                    std::int64_t settled) {
  const auto begin = index * kPageSeqs, end = begin + kPageSeqs;
  if (end > settled) return fetch(pool, begin, settled);
  return fetch_shared(pool, index);
}

awaitable<std::shared_ptr<const EventPages::Page>> EventPages::fetch(pg::Pool& pool, std::int64_t after,
                                                                     std::int64_t through) {
  reads_total_.Increment();
  pg::Batch batch;
  batch.add(kOldest).add(kReadLog, after, through, kPageSeqs);
  const auto results = co_await pool.run(std::move(batch), {.access = pg::Access::kRead});
  const auto oldest = results[0].one();
  Page page{.events = std::make_shared<const LogEvents>(read_rows(catalog_, results[1])),
            .oldest = oldest.get<std::int64_t>("seq"),
            .read_at = oldest.get<TimePoint>("now")};
  co_return std::make_shared<const Page>(std::move(page));
}

// The first caller reads the page, the others wait for it. If the read fails, one of them reads it instead.
awaitable<std::shared_ptr<const EventPages::Page>> EventPages::fetch_shared(pg::Pool& pool, std::int64_t index) {
  for (;;) {
    auto* slot = find(index);
    if (slot != nullptr && slot->page) co_return slot->page;
    if (slot == nullptr) break;
    const auto ready = std::make_shared<Completion<bool>>(home_);
    slot->waiting.push_back(ready);
    co_await ready->wait();
  }
  slots_.push_front({.index = index, .page = nullptr, .waiting = {}});
  const auto announce = [this, index](std::shared_ptr<const Page> page) {
    const auto slot = std::ranges::find(slots_, index, &Slot::index);
    for (const auto& ready : slot->waiting) ready->complete(true);
    slot->waiting.clear();
    if (page) {
      slot->page = std::move(page);
    } else {
      slots_.erase(slot);
    }
  };
  std::shared_ptr<const Page> page;
  try {
    page = co_await fetch(pool, index * kPageSeqs, (index + 1) * kPageSeqs);
  } catch (const std::exception&) {
    announce(nullptr);
    throw;
  }
  announce(page);
  // Pages that are being read stay, also when there are more of them than kPagesHeld.
  while (slots_.size() > kPagesHeld) {
    const auto oldest =
        std::ranges::find_if(slots_.rbegin(), slots_.rend(), [](const Slot& s) { return s.page != nullptr; });
    if (oldest == slots_.rend()) break;
    slots_.erase(std::next(oldest).base());
  }
  co_return page;
}

EventPages::Slot* EventPages::find(std::int64_t index) {
  const auto found = std::ranges::find(slots_, index, &Slot::index);
  if (found == slots_.end()) return nullptr;
  slots_.splice(slots_.begin(), slots_, found);
  return &slots_.front();
}

}  // namespace fencepost::outbox

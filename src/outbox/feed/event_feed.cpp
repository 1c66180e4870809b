#include "outbox/feed/event_feed.hpp"

#include <algorithm>

#include <boost/asio/post.hpp>

#include "runtime/on_loop.hpp"

namespace fencepost::outbox {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kChannel = "event_log";
constexpr std::size_t kReadAtOnce = 1000;
// While events wait for a running transaction: how soon to look again. Most end within a millisecond or two.
constexpr std::chrono::milliseconds kFirstLook = 1ms, kLastLook = 50ms;

// Visible is enough here: who wants events "from now on" does not ask for those of transactions that run already.
constexpr pg::Statement kNewest{"outbox_newest", R"(
  SELECT seq
    FROM event
   WHERE type IS NOT NULL
   ORDER BY seq DESC
   LIMIT 1)"};

std::size_t bytes_of(const LogEvents& events) {
  std::size_t bytes = 0;
  for (const auto& event : events) bytes += sizeof(LogEvent) + event.envelope.size() + event.subject.size();
  return bytes;
}

}  // namespace

EventFeed::EventFeed(Runtime& runtime, pg::Database& database, pg::Listener& listener, const EventCatalog& catalog,
                     FeedOptions options, Metrics& metrics)
    : runtime_(runtime),
      database_(database),
      catalog_(catalog),
      options_(options),
      home_(runtime.executor(0)),
      horizon_(metrics),
      pages_(home_, catalog, metrics),
      events_total_(metrics.counter("outbox_events_read_total", "Events read from the log for delivery")),
      held_gauge_(metrics.gauge("outbox_events_held", "Newest events of the log in the node's memory")),
      worker_(home_, {.name = "event_feed", .interval = options.poll_interval}, [this] { return follow(); }, metrics) {
  for (std::size_t i = 0; i < runtime.size(); ++i) bells_.push_back(std::make_shared<Bell>());
  listener.subscribe(std::string(kChannel), [this](std::string_view) { on_hint(); }, [this] { wake(); });
}

awaitable<> EventFeed::prepare() {
  const auto rows = co_await database_.pool().query(kNewest);
  const auto seq = rows.empty() ? 0 : rows.one().get<std::int64_t>("seq");
  read_through_ = seq;
  const std::lock_guard lock(mutex_);
  held_after_ = seq;
  newest_ = seq;
}

awaitable<> EventFeed::stop() {
  stopped_ = true;
  ring();
  co_await worker_.stop();
}

awaitable<Worker::Next> EventFeed::follow() {
  auto& pool = database_.pool();
  const auto before = settled_.seq();
  const bool waited = settled_.waiting();
  co_await settled_.advance(pool);
  if (settled_.seq() != before) look_again_ = kFirstLook;
  const bool ready = settled_.seq() >= newest_;
  if (ready_.exchange(ready) != ready && ready && newest_ > 0) ring();
  while (co_await take_settled()) {
  }
  co_await horizon_.observe(settled_.waiting(), pool);
  // While the feed waits for a transaction, a wake makes it look at that transaction only. Look at newer events now.
  if (!settled_.waiting()) co_return waited ? Worker::Next::kAgain : Worker::Next::kRest;
  asio::steady_timer timer(home_, look_again_);
  co_await timer.async_wait(asio::use_awaitable);
  look_again_ = std::min(look_again_ * 2, kLastLook);
  co_return Worker::Next::kAgain;
}

// Takes the next events into memory. False when there are no more.
awaitable<bool> EventFeed::take_settled() {
  const auto settled = settled_.seq();
  if (settled <= read_through_) co_return false;
  auto events = co_await read_log(database_.pool(), catalog_, read_through_, settled, kReadAtOnce);
  const bool full = events.size() == kReadAtOnce;
  if (!events.empty()) {
    read_through_ = events.back().seq;
    append(std::move(events));
    ring();
  }
  co_return full;
}

void EventFeed::append(LogEvents events) {
  events_total_.Increment(static_cast<double>(events.size()));
  const auto last = events.back().seq;
  const std::lock_guard lock(mutex_);
  const auto bytes = bytes_of(events);
  held_events_ += events.size();
  held_bytes_ += bytes;
  chunks_.push_back({.events = std::make_shared<const LogEvents>(std::move(events)), .bytes = bytes});
  while (chunks_.size() > 1 && (held_events_ > options_.max_events || held_bytes_ > options_.max_bytes)) {
    held_after_ = chunks_.front().events->back().seq;
    held_events_ -= chunks_.front().events->size();
    held_bytes_ -= chunks_.front().bytes;
    chunks_.pop_front();
  }
  held_gauge_.Set(static_cast<double>(held_events_));
  newest_ = last;
}

awaitable<FeedSlice> EventFeed::read(std::int64_t after) {
  if (!ready_) co_return FeedSlice{.through = after};
  if (auto slice = from_memory(after)) co_return std::move(*slice);
  co_return co_await on_loop(home_, [this, after] { return from_pages(after); });
}

std::optional<FeedSlice> EventFeed::from_memory(std::int64_t after) {
  const std::lock_guard lock(mutex_);
  if (after < held_after_) return std::nullopt;
  FeedSlice slice{.chunk = nullptr, .first = 0, .through = after, .live = true};
  const auto chunk = std::ranges::upper_bound(chunks_, after, {}, [](const Chunk& c) { return c.events->back().seq; });
  if (chunk == chunks_.end()) return slice;
  const auto& events = *chunk->events;
  slice.chunk = chunk->events;
  slice.first = static_cast<std::size_t>(
      std::distance(events.begin(), std::ranges::upper_bound(events, after, {}, &LogEvent::seq)));
  slice.through = events.back().seq;
  return slice;
}

awaitable<FeedSlice> EventFeed::from_pages(std::int64_t after) {
  const std::int64_t newest = newest_;
  if (settled_.seq() < newest) co_return FeedSlice{.through = after};
  auto read = co_await pages_.read(database_.pool(), after, settled_.seq());
  // The log had an event at `newest`. If it has none up to there now, all of them were removed.
  if (read.events->empty() && after < newest) {
    auto gap = std::make_shared<LogEvents>();
    if (after > 0) gap->push_back(make_gap_event(after + 1, newest, SystemClock().now()));
    co_return FeedSlice{.chunk = std::move(gap), .first = 0, .through = newest, .live = false};
  }
  co_return FeedSlice{.chunk = std::move(read.events), .first = read.first, .through = read.through, .live = false};
}

awaitable<bool> EventFeed::wait_beyond(std::int64_t after, Deadline deadline) {
  auto& bell = *bells_[Runtime::current()];
  const auto heard = std::make_shared<Completion<bool>>(co_await this_executor());
  bell.readers.push_back(heard);
  bell.waiting = true;
  if (hint_ignored_.exchange(false)) wake();
  // Only now: an event that came before the bell was set is seen here, and a later one rings it.
  if (stopped_) throw boost::system::system_error(asio::error::operation_aborted);
  if (ready_ && newest_ > after) {
    std::erase(bell.readers, heard);
    co_return true;
  }
  bool rung = false;
  try {
    rung = co_await heard->wait(deadline);
  } catch (const boost::system::system_error&) {
    std::erase(bell.readers, heard);
    throw;
  }
  if (!rung) std::erase(bell.readers, heard);
  if (stopped_) throw boost::system::system_error(asio::error::operation_aborted);
  co_return rung;
}

// While no reader waits, a commit costs nothing here: the next reader that waits makes the feed look. The flag is set
// first, so that either this call sees the reader or the reader sees the flag.
void EventFeed::on_hint() {
  hint_ignored_ = true;
  if (std::ranges::none_of(bells_, [](const auto& bell) { return bell->waiting.load(); })) return;
  hint_ignored_ = false;
  wake();
}

void EventFeed::ring() {
  for (std::size_t i = 0; i < bells_.size(); ++i) {
    if (!bells_[i]->waiting.exchange(false)) continue;
    asio::post(runtime_.executor(i), [bell = bells_[i]] {
      for (const auto& reader : bell->readers) reader->complete(true);
      bell->readers.clear();
    });
  }
}

}  // namespace fencepost::outbox

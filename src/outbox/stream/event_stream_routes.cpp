#include "outbox/stream/event_stream_routes.hpp"

#include <limits>

#include <fmt/format.h>

#include "base/id_text.hpp"
#include "http/request_reader.hpp"
#include "http/route_table.hpp"
#include "http/sse.hpp"
#include "outbox/feed/event_filter.hpp"

namespace fencepost::outbox {
namespace {

using http::Request;
using http::Response;
using std::chrono::steady_clock;

constexpr std::size_t kWriteAtOnce = 64 * 1024;
// A client that gets none of the events still learns its position after so many, and resumes there.
constexpr std::int64_t kPositionEvery = 1000;
constexpr std::chrono::seconds kReconnectAfter{1};
constexpr auto kEndless = std::numeric_limits<std::int64_t>::max();

constexpr pg::Statement kLastNumber{"outbox_last_number", R"(
  SELECT CASE WHEN is_called THEN last_value ELSE 0 END AS seq
    FROM event_seq)"};

void append_message(std::string& out, const LogEvent& event) {
  fmt::format_to(std::back_inserter(out), "id: {}\ndata: ", event.seq);
  out += event.envelope;
  out += "\n\n";
}

struct StreamMetrics {
  explicit StreamMetrics(Metrics& metrics)
      : open(metrics.gauge("event_streams", "Open streams of events")),
        sent_total(metrics.counter("event_stream_messages_total", "Events sent on streams")),
        slow_total(metrics.counter("event_streams_too_slow_total", "Streams ended because their reader was too slow")) {
  }

  Metrics::Gauge& open;
  Metrics::Counter& sent_total;
  Metrics::Counter& slow_total;
};

// One open stream.
class Listening {
 public:
  Listening(StreamParts parts, EventFilter filter, const http::Principal& principal, std::int64_t position, bool follow)
      : parts_(parts),
        filter_(std::move(filter)),
        visible_(parts.feed.catalog(), principal),
        position_(position),
        announced_(position),
        end_(follow ? kEndless : parts.feed.newest()),
        metrics_(parts.metrics) {
    metrics_.open.Increment();
  }
  ~Listening() { metrics_.open.Decrement(); }
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;

  awaitable<> run(http::EventStream& stream) {
    if (!co_await stream.retry(kReconnectAfter)) co_return;
    auto checked = steady_clock::now();
    while (co_await step(stream)) {
      if (steady_clock::now() - checked < parts_.options.recheck) continue;
      const auto caller = co_await parts_.authenticator.authenticate(stream.request());
      if (!caller && caller.error().kind == ErrorKind::kUnauthenticated) {
        co_await stream.comment("this stream ends: its API key or session is no longer valid");
        co_return;
      }
      checked = steady_clock::now();
    }
  }

 private:
  // Sends what there is, or waits for more. False when the stream has ended.
  awaitable<bool> step(http::EventStream& stream) {
    if (position_ >= end_) co_return false;
    const auto slice = co_await parts_.feed.read(position_);
    if (was_live_ && !slice.live) {
      metrics_.slow_total.Increment();
      co_await stream.comment(
          fmt::format("this stream ends: its reader is too slow, {} events behind; resume with Last-Event-ID",
                      parts_.feed.newest() - position_));
      co_return false;
    }
    was_live_ = slice.live;
    if (slice.empty()) {
      position_ = std::max(position_, slice.through);
      co_await parts_.feed.wait_beyond(position_, steady_clock::now() + parts_.options.recheck);
      co_return true;
    }
    co_return co_await send(stream, slice);
  }

  awaitable<bool> send(http::EventStream& stream, const FeedSlice& slice) {
    std::string text;
    std::size_t count = 0;
    for (const auto& event : slice.events()) {
      if (!filter_.matches(event) || !visible_.allows(event)) continue;
      append_message(text, event);
      announced_ = event.seq;
      ++count;
      if (text.size() < kWriteAtOnce) continue;
      if (!co_await stream.send_formatted(std::exchange(text, {}))) co_return false;
    }
    position_ = slice.through;
    if (position_ - announced_ >= kPositionEvery) {
      text += fmt::format("id: {}\n\n", position_);
      announced_ = position_;
    }
    metrics_.sent_total.Increment(static_cast<double>(count));
    if (text.empty()) co_return true;
    co_return co_await stream.send_formatted(std::move(text));
  }

  StreamParts parts_;
  EventFilter filter_;
  EventVisibility visible_;
  std::int64_t position_;   // every event up to here was sent, or is not for this stream
  std::int64_t announced_;  // the last id that the client has
  std::int64_t end_;        // the stream ends when it has reached this position
  bool was_live_ = false;
  StreamMetrics metrics_;
};

// The position from which the client wants to go on: the one that it names, or the end of the log.
awaitable<Result<std::int64_t>> start_position(const Request& request, StreamParts parts) {
  std::optional<std::int64_t> position;
  // The header wins: a client that reconnects sends it beside the query of its first request.
  for (const auto& [name, given] : {std::pair("lastEventId", request.query("lastEventId")),
                                    std::pair("Last-Event-ID", request.header("Last-Event-ID"))}) {
    if (!given || given->empty()) continue;
    position = parse_id(*given);
    if (!position) co_return fail(http::bad_parameter(name, "the id of an event, or 0", *given));
  }
  if (!position) co_return parts.feed.newest();
  if (*position <= parts.feed.newest()) co_return *position;
  const auto rows = co_await parts.database.pool().query(kLastNumber);
  if (*position <= rows.one().get<std::int64_t>("seq")) co_return *position;
  co_return fail(invalid("unknown_event_id",
                         fmt::format("the log has not reached event {} yet: the database was restored to an earlier "
                                     "state, or the id is of another installation; start again without the id",
                                     *position))
                     .with("newest", std::to_string(parts.feed.newest())));
}

awaitable<Response> stream_events(Request& request, StreamParts parts) {
  auto filter = read_event_query(parts.feed.catalog(), request, {"follow", "lastEventId"});
  const auto follow = http::need(request.query_or("follow", true));
  const auto& principal = *request.principal();
  if (const auto allowed = EventVisibility(parts.feed.catalog(), principal).check(parts.feed.catalog(), filter);
      !allowed) {
    co_return Response::problem(allowed.error(), request);
  }
  const auto position = co_await start_position(request, parts);
  if (!position) co_return Response::problem(position.error(), request);
  WalletStreams::Place place;
  if (principal.user && !(place = parts.wallets->take(principal.id))) {
    Error full{
        ErrorKind::kRateLimited, "rate_limited", "Too many streams of wallets are open: close another one.", {}, {}};
    co_return Response::problem(std::move(full).after(std::chrono::seconds(5)), request);
  }
  const auto listening = std::make_shared<Listening>(parts, std::move(filter), principal, *position, follow);
  co_return Response::events([listening, place](http::EventStream& stream) { return listening->run(stream); });
}

constexpr http::RouteRow<StreamParts> kStreamRoutes[] = {
    {http::Verb::kGet, "/api/v1/events", "key_or_wallet", stream_events},
};

}  // namespace

void add_stream_routes(http::Router& router, const StreamParts& parts) {
  const StreamMetrics known(parts.metrics);  // there before the first stream
  http::add_table<StreamParts>(router, kStreamRoutes, parts);
}

}  // namespace fencepost::outbox

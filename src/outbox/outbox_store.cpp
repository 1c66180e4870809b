#include "outbox/outbox_store.hpp"

namespace fencepost::outbox {
namespace {

using pg::Statement;

// The greatest seq that was taken, also by a transaction that is running or was rolled back.
constexpr Statement kLastTaken{"outbox_last_taken", R"(
  SELECT CASE WHEN is_called THEN last_value ELSE 0 END AS seq
    FROM event_seq)"};

constexpr Statement kFreshXid{"outbox_fresh_xid", "SELECT pg_current_xact_id()::text AS xid"};

// Of the transaction itself: no older one is running when the oldest running one is itself.
constexpr Statement kAllOlderEnded{"outbox_all_older_ended",
                                   "SELECT pg_snapshot_xmin(pg_current_snapshot()) = pg_current_xact_id() AS ended"};

constexpr Statement kAllBeforeEnded{"outbox_all_before_ended",
                                    "SELECT pg_snapshot_xmin(pg_current_snapshot()) > $1::xid8 AS ended"};

constexpr Statement kEventsOf{"outbox_events_of", R"(
  SELECT seq, type, subject, data, at
    FROM event
   WHERE subject = $1
     AND seq > $3
     AND type IS NOT NULL
   ORDER BY seq
   LIMIT $2)"};

constexpr Statement kHistoryOf{"outbox_history_of", R"(
  SELECT seq, at, from_state, to_state, sub_state, node, fencing_token, why
    FROM event
   WHERE subject = $1
     AND seq > $3
     AND to_state IS NOT NULL
   ORDER BY seq
   LIMIT $2)"};

std::vector<Event> read_events(const pg::ResultSet& rows) {
  std::vector<Event> events;
  for (const auto row : rows) {
    events.push_back({.seq = row.get<std::int64_t>("seq"),
                      .type = row.get<std::string>("type"),
                      .subject = row.get<std::string>("subject"),
                      .data = row.get<boost::json::value>("data"),
                      .at = row.get<TimePoint>("at")});
  }
  return events;
}

}  // namespace

// One round trip where nothing older is running. Each statement of a batch has its own snapshot, in order: the
// candidate is read first, then the batch gets its transaction id. A transaction has its id before it takes a seq, so
// the batch's id is greater than the id of every transaction that has taken a seq up to the candidate.
awaitable<std::int64_t> Settled::advance(pg::Pool& pool) {
  if (candidate_xid_.empty()) {
    pg::Batch batch;
    batch.add(kLastTaken).add(kFreshXid).add(kAllOlderEnded);
    const auto results = co_await pool.run(std::move(batch), {.access = pg::Access::kRead});  // may be repeated
    candidate_ = results[0].one().get<std::int64_t>("seq");
    if (candidate_ < seq_) seq_ = 0;  // after a crash PostgreSQL hands out again what no row has: nothing is known now
    if (candidate_ > seq_ && !results[2].one().get<bool>("ended")) {
      candidate_xid_ = results[1].one().get<std::string>("xid");
      co_return seq_;
    }
    seq_ = candidate_;
    co_return seq_;
  }
  const auto ended = co_await pool.query(kAllBeforeEnded, candidate_xid_);
  if (ended.one().get<bool>("ended")) {
    seq_ = candidate_;
    candidate_xid_.clear();
  }
  co_return seq_;
}

awaitable<std::vector<Event>> events_of(pg::Pool& pool, std::string subject, std::size_t limit, std::int64_t after) {
  const auto rows = co_await pool.query(kEventsOf, subject, limit, after);
  co_return read_events(rows);
}

awaitable<std::vector<HistoryStep>> history_of(pg::Pool& pool, std::string subject, std::size_t limit,
                                               std::int64_t after) {
  const auto rows = co_await pool.query(kHistoryOf, subject, limit, after);
  std::vector<HistoryStep> steps;
  for (const auto row : rows) {
    steps.push_back({.seq = row.get<std::int64_t>("seq"),
                     .at = row.get<TimePoint>("at"),
                     .from_state = row.get<std::optional<std::string>>("from_state"),
                     .to_state = row.get<std::string>("to_state"),
                     .sub_state = row.get<std::optional<std::string>>("sub_state"),
                     .node = row.get<std::string>("node"),
                     .fencing_token = row.get<std::optional<std::int64_t>>("fencing_token"),
                     .why = row.get<std::string>("why")});
  }
  co_return steps;
}

}  // namespace fencepost::outbox

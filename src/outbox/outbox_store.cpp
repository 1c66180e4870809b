#include "outbox/outbox_store.hpp"

namespace fencepost::outbox {
namespace {

using pg::Statement;

constexpr Statement kEventsAfter{"outbox_events_after", R"(
  SELECT seq, type, subject, data, created_at
    FROM outbox_event
   WHERE seq > $1
     AND xid < pg_snapshot_xmin(pg_current_snapshot())
   ORDER BY seq
   LIMIT $2)"};

constexpr Statement kEventsOf{"outbox_events_of", R"(
  SELECT seq, type, subject, data, created_at
    FROM outbox_event
   WHERE subject = $1
   ORDER BY seq
   LIMIT $2)"};

constexpr Statement kHistoryOf{"outbox_history_of", R"(
  SELECT at, from_state, to_state, sub_state, node, fencing_token, why
    FROM step_history
   WHERE subject_id = $1
   ORDER BY seq
   LIMIT $2)"};

std::vector<Event> read_events(const pg::ResultSet& rows) {
  std::vector<Event> events;
  for (const auto row : rows) {
    events.push_back({.seq = row.get<std::int64_t>("seq"),
                      .type = row.get<std::string>("type"),
                      .subject = row.get<std::string>("subject"),
                      .data = row.get<boost::json::value>("data"),
                      .created_at = row.get<TimePoint>("created_at")});
  }
  return events;
}

}  // namespace

awaitable<std::vector<Event>> events_after(pg::Pool& pool, std::int64_t seq, std::size_t limit) {
  const auto rows = co_await pool.query(kEventsAfter, seq, limit);
  co_return read_events(rows);
}

awaitable<std::vector<Event>> events_of(pg::Pool& pool, std::string subject, std::size_t limit) {
  const auto rows = co_await pool.query(kEventsOf, subject, limit);
  co_return read_events(rows);
}

awaitable<std::vector<HistoryStep>> history_of(pg::Pool& pool, Uuid subject_id, std::size_t limit) {
  const auto rows = co_await pool.query(kHistoryOf, subject_id, limit);
  std::vector<HistoryStep> steps;
  for (const auto row : rows) {
    steps.push_back({.at = row.get<TimePoint>("at"),
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

#include "outbox/event_partitions.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "pg/error.hpp"
#include "runtime/log.hpp"

namespace fencepost::outbox {
namespace {

using namespace std::chrono_literals;
using pg::Statement;
using State = EventPartition::State;

// A partition is known by its name. A detached table counts only if it has the log's constraint: another program may
// have a table of the same name.
constexpr Statement kList{"event_partitions_list", R"(
  WITH month AS (
    SELECT c.relname AS name,
           i.inhrelid IS NOT NULL AS attached,
           coalesce(i.inhdetachpending, false) AS detaching,
           substr(c.relname, 7, 4)::int AS year,
           substr(c.relname, 12, 2)::int AS month
      FROM pg_class AS log
      JOIN pg_class AS c ON c.relnamespace = log.relnamespace
      LEFT JOIN pg_inherits AS i ON i.inhrelid = c.oid AND i.inhparent = log.oid
     WHERE log.oid = 'event'::regclass
       AND c.relkind = 'r'
       AND c.relname ~ '^event_[1-9][0-9]{3}_(0[1-9]|1[0-2])$'
       AND (i.inhrelid IS NOT NULL
            OR EXISTS (SELECT FROM pg_constraint
                        WHERE conrelid = c.oid
                          AND conname = 'event_is_a_step_or_announced'))
  )
  SELECT name, attached, detaching,
         make_timestamptz(year, month, 1, 0, 0, 0, 'UTC') AS begins,
         year * 12 + month
           - (extract(year FROM now() AT TIME ZONE 'UTC') * 12 + extract(month FROM now() AT TIME ZONE 'UTC'))::int
           AS months_from_now,
         (make_timestamp(year, month, 1, 0, 0, 0) + interval '1 month') AT TIME ZONE 'UTC'
           <= now() - $1::bigint * interval '1 millisecond' AS expired
    FROM month
   ORDER BY name)"};

constexpr Statement kSince{"event_log_since", R"(
  SELECT make_timestamptz(substr(name, 7, 4)::int, substr(name, 12, 2)::int, 1, 0, 0, 0, 'UTC') AS since
    FROM (SELECT min(c.relname::text) AS name
            FROM pg_inherits AS i
            JOIN pg_class AS c ON c.oid = i.inhrelid
           WHERE i.inhparent = 'event'::regclass
             AND NOT i.inhdetachpending
             AND c.relname ~ '^event_[1-9][0-9]{3}_(0[1-9]|1[0-2])$') AS oldest
   WHERE name IS NOT NULL)"};

constexpr Statement kIsOwner{"event_log_is_owner", R"(
  SELECT pg_has_role(relowner, 'USAGE') AS owner
    FROM pg_class
   WHERE oid = 'event'::regclass)"};

constexpr Statement kAddMonths{"event_log_add_months", R"(
  SELECT event_add_month((date_trunc('month', now() AT TIME ZONE 'UTC') + make_interval(months => n)) AT TIME ZONE 'UTC')
    FROM generate_series(0, $1::int) AS n)"};

std::vector<EventPartition> read_partitions(const pg::ResultSet& rows) {
  std::vector<EventPartition> out;
  for (const auto row : rows) {
    out.push_back({.name = row.get<std::string>("name"),
                   .state = !row.get<bool>("attached")   ? State::kDetached
                            : row.get<bool>("detaching") ? State::kDetaching
                                                         : State::kAttached,
                   .begins = row.get<TimePoint>("begins"),
                   .months_from_now = row.get<int>("months_from_now"),
                   .expired = row.get<bool>("expired")});
  }
  return out;
}

awaitable<pg::ResultSet> query(pg::Connection& connection, pg::Batch batch) {
  auto results = co_await connection.run(batch, {.access = pg::Access::kRead});
  co_return std::move(results.front());
}

awaitable<std::vector<EventPartition>> list_on(pg::Connection& connection, std::chrono::milliseconds retention) {
  const auto rows = co_await query(connection, pg::Batch().add(kList, std::int64_t{retention.count()}));
  co_return read_partitions(rows);
}

awaitable<bool> is_owner(pg::Connection& connection) {
  const auto rows = co_await query(connection, pg::Batch().add(kIsOwner));
  co_return rows.one().get<bool>("owner");
}

// The session is closed afterwards, so its settings concern no other statement.
awaitable<> limit_waiting(pg::Connection& connection, std::chrono::milliseconds patience) {
  co_await connection.exec_script(fmt::format("SET statement_timeout = {0}; SET lock_timeout = {0}", patience.count()),
                                  patience + 5s);
}

// Whether the error says that a step has to wait for another transaction, or that another node has just taken it.
bool is_for_later(const pg::QueryError& error) {
  constexpr std::string_view kUndefinedTable = "42P01";   // no longer a partition, or dropped
  constexpr std::string_view kOtherDetachRuns = "55000";  // only one partition at a time can be detached
  return error.is_timeout() || error.is_retryable() || error.sqlstate() == kUndefinedTable ||
         error.sqlstate() == kOtherDetachRuns;
}

// A single statement outside a transaction block, which DETACH … CONCURRENTLY requires.
awaitable<bool> try_to(pg::Connection& connection, std::string sql, std::chrono::milliseconds patience) {
  try {
    co_await connection.exec_script(sql, patience + 5s);
  } catch (const pg::QueryError& error) {
    if (!is_for_later(error)) throw;
    log::info("the removal of old events is delayed until the next round", {{"step", sql}, {"cause", error.what()}});
    co_return false;
  }
  co_return true;
}

awaitable<bool> detach(pg::Connection& connection, EventPartition partition, std::chrono::milliseconds patience) {
  switch (partition.state) {
    case State::kAttached:
      co_return co_await try_to(
          connection, fmt::format("ALTER TABLE event DETACH PARTITION {} CONCURRENTLY", partition.name), patience);
    case State::kDetaching:
      co_return co_await try_to(
          connection, fmt::format("ALTER TABLE event DETACH PARTITION {} FINALIZE", partition.name), patience);
    case State::kDetached:
      co_return true;
  }
  std::unreachable();
}

}  // namespace

EventPartitionReport report_on(const std::vector<EventPartition>& partitions) {
  EventPartitionReport report;
  for (const auto& partition : partitions) {
    if (partition.expired) ++report.expired;
    if (partition.state != State::kAttached) continue;
    if (!report.since) report.since = partition.begins;
    if (partition.months_from_now == 0) report.has_current_month = true;
    if (partition.months_from_now == report.months_ahead + 1) ++report.months_ahead;
  }
  return report;
}

awaitable<std::vector<EventPartition>> list_event_partitions(pg::Pool& pool, std::chrono::milliseconds retention) {
  const auto rows = co_await pool.query(kList, std::int64_t{retention.count()});
  co_return read_partitions(rows);
}

awaitable<std::optional<TimePoint>> event_log_since(pg::Pool& pool) {
  const auto rows = co_await pool.query(kSince);
  co_return rows.empty() ? std::nullopt : std::optional(rows.one().get<TimePoint>("since"));
}

awaitable<EventPartitionReport> add_event_months(pg::Connector& connector, EventUpkeepOptions options) {
  const auto executor = co_await this_executor();
  auto session = co_await connector.connect(executor);
  const pg::OwnedConnection connection(std::move(session), {});
  co_await limit_waiting(*connection, options.patience);
  if (co_await is_owner(*connection)) {
    pg::Batch add;
    add.add(kAddMonths, kMonthsAhead);
    co_await connection->run(add, {.access = pg::Access::kRead});  // kRead: it can be repeated
  }
  const auto partitions = co_await list_on(*connection, options.retention);
  co_return report_on(partitions);
}

awaitable<EventPartitionReport> remove_expired_events(pg::Connector& connector, EventUpkeepOptions options) {
  const auto executor = co_await this_executor();
  auto session = co_await connector.connect(executor);
  const pg::OwnedConnection connection(std::move(session), {});
  co_await limit_waiting(*connection, options.patience);
  if (co_await is_owner(*connection)) {
    // An interrupted detach first: until it is complete, PostgreSQL refuses to detach another partition.
    auto partitions = co_await list_on(*connection, options.retention);
    std::ranges::sort(partitions, {},
                      [](const auto& one) { return std::pair(one.state != State::kDetaching, one.name); });
    for (const auto& partition : partitions) {
      if (!partition.expired && partition.state != State::kDetaching) continue;
      if (!co_await detach(*connection, partition, options.patience)) break;
      if (!partition.expired) continue;  // an operator began to detach it, and may want to keep it
      const auto drop = fmt::format("DROP TABLE {}", partition.name);
      if (!co_await try_to(*connection, drop, options.patience)) break;
      log::info("removed a month of events that was older than events.retention", {{"partition", partition.name}});
    }
  }
  const auto left = co_await list_on(*connection, options.retention);
  co_return report_on(left);
}

}  // namespace fencepost::outbox

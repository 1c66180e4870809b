#include "timelock/store/contract_query_store.hpp"

#include <limits>

#include <boost/json/parse.hpp>

namespace fencepost::timelock {

using pg::Statement;

const Statement sql::kNextDue{"timelock_stats_next", R"(
  SELECT flow_id, generation, extract(epoch FROM due_at)::bigint AS due
    FROM timelock_transaction_flows
   WHERE chain_id = $1
     AND contract_address = $2
     AND status = 'waiting'
     AND NOT removed
     AND due_at IS NOT NULL
   ORDER BY eta, flow_id
   LIMIT 1)"};

#define FENCEPOST_LAST_OF(table)                                                                                      \
  "(SELECT event_type, tx_hash, block_number, log_index, block_timestamp FROM " table                                 \
  " WHERE chain_id = $1 AND contract_address = $2 AND NOT orphaned ORDER BY block_number DESC, log_index DESC LIMIT " \
  "1)"
const Statement sql::kLastEvent{
    "timelock_stats_last",
    "SELECT *, extract(epoch FROM block_timestamp)::bigint AS seconds FROM (" FENCEPOST_LAST_OF(
        "compound_timelock_transactions") " UNION ALL " FENCEPOST_LAST_OF("openzeppelin_timelock_transactions") " UNION "
    "ALL " FENCEPOST_LAST_OF("timelock_guard_event") ") AS e ORDER BY block_number DESC, log_index DESC LIMIT 1"};

namespace {

// An index has them by status and age, so the newest of each status are read however many there are. To count a million
// takes most of a second, even by an index alone.
constexpr Statement kCountFlows{"timelock_stats_flows", R"(
  SELECT s.status, c.flows, c.lately, c.median
    FROM unnest($3::text[]) AS s(status)
   CROSS JOIN LATERAL (
     SELECT count(*) AS flows,
            count(*) FILTER (WHERE f.queued_at > (SELECT block_timestamp - interval '30 days'
                                                    FROM timelock_scan
                                                   WHERE chain_id = $1)) AS lately,
            percentile_disc(0.5)
              WITHIN GROUP (ORDER BY extract(epoch FROM f.executed_at - f.queued_at)::bigint) AS median
       FROM (SELECT queued_at, executed_at
               FROM timelock_transaction_flows
              WHERE chain_id = $1
                AND contract_address = $2
                AND status = s.status
                AND NOT removed
              ORDER BY queued_at DESC
              LIMIT $4) AS f) AS c
   WHERE c.flows > 0)"};

constexpr Statement kListGuard{"timelock_list_guard", R"(
  SELECT *, arguments::text AS arguments_text, extract(epoch FROM block_timestamp)::bigint AS seconds
    FROM timelock_guard_event
   WHERE chain_id = $1
     AND contract_address = $2
     AND (block_number, log_index, block_hash) < ($3::bigint, $4::bigint, $5::text)
   ORDER BY block_number DESC, log_index DESC, block_hash DESC
   LIMIT $6)"};

GuardEvent guard_of(const pg::Row& row) {
  return {.type = row.get<std::string>("event_type"),
          .arguments = boost::json::parse(row.get<std::string_view>("arguments_text")),
          .tx_hash = row.get<std::string>("tx_hash"),
          .from = row.get<std::string>("from_address"),
          .to = row.get<std::optional<std::string>>("to_address"),
          .block_number = row.get<std::int64_t>("block_number"),
          .block_hash = row.get<std::string>("block_hash"),
          .at = row.get<std::int64_t>("seconds"),
          .log_index = row.get<std::int64_t>("log_index"),
          .orphaned = row.get<bool>("orphaned")};
}

}  // namespace

awaitable<ContractStats> contract_stats(pg::Pool& pool, ContractKey key) {
  std::vector<std::string> statuses;
  for (const auto name : kFlow.names()) statuses.emplace_back(name);
  pg::Batch batch;
  batch.add(kCountFlows, key.chain_id, key.address, statuses, kMostCounted);
  for (const auto* statement : {&sql::kNextDue, &sql::kLastEvent}) batch.add(*statement, key.chain_id, key.address);
  const auto results = co_await pool.run(std::move(batch), {.access = pg::Access::kRead});
  ContractStats stats;
  for (const auto row : results[0]) {
    const auto status = kFlow.find(row.get<std::string_view>("status")).value();
    stats.flows[status] = row.get<std::int64_t>("flows");
    stats.at_least = stats.at_least || stats.flows[status] >= kMostCounted;
    stats.queued_lately += row.get<std::int64_t>("lately");
    if (status == FlowStatus::kExecuted) stats.median_delay = row.get<std::optional<std::int64_t>>("median");
  }
  for (const auto row : results[1]) {
    stats.next =
        NextFlow{row.get<std::string>("flow_id"), row.get<std::int64_t>("generation"), row.get<std::int64_t>("due")};
  }
  for (const auto row : results[2]) {
    stats.last = LastEvent{row.get<std::string>("event_type"), row.get<std::string>("tx_hash"),
                           row.get<std::int64_t>("block_number"), row.get<std::int64_t>("seconds")};
  }
  co_return stats;
}

awaitable<std::vector<GuardEvent>> list_guard_events(pg::Pool& pool, ContractKey key, std::optional<GuardPlace> after,
                                                     std::size_t limit) {
  const auto from = after.value_or(GuardPlace{.block_number = std::numeric_limits<std::int64_t>::max()});
  const auto rows = co_await pool.query(kListGuard, key.chain_id, key.address, from.block_number, from.log_index,
                                        from.block_hash, std::uint64_t{limit});
  std::vector<GuardEvent> out;
  out.reserve(rows.size());
  for (const auto row : rows) out.push_back(guard_of(row));
  co_return out;
}

}  // namespace fencepost::timelock

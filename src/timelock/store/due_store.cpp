#include "timelock/store/due_store.hpp"

#include "timelock/store/event_columns.hpp"

namespace fencepost::timelock {

using pg::Statement;

#define FENCEPOST_FLOW_REF \
  "f.timelock_standard, f.chain_id, f.contract_address, f.flow_id, f.generation, f.status, f.ctid::text AS version"

// What a contract did in blocks that are not scanned is not known.
#define FENCEPOST_SCANNED_WHOLE                                                                                  \
  "EXISTS (SELECT FROM timelock AS t WHERE t.chain_id = f.chain_id AND t.contract_address = f.contract_address " \
  "AND t.halted_block IS NULL AND t.history_done_at IS NOT NULL)"

const Statement sql::kWaitingDue{"timelock_flows_due", "SELECT " FENCEPOST_FLOW_REF R"(
    FROM timelock_transaction_flows AS f
   WHERE chain_id = $1
     AND status = 'waiting'
     AND confirmed
     AND NOT removed
     AND due_at <= to_timestamp($2::bigint)
     AND (expired_at IS NULL OR expired_at >= to_timestamp($2::bigint))  -- what has expired does not become ready first
     AND )" FENCEPOST_SCANNED_WHOLE R"(
   ORDER BY due_at
   LIMIT $3
     FOR UPDATE SKIP LOCKED)"};

const Statement sql::kExpired{"timelock_flows_expired", "SELECT " FENCEPOST_FLOW_REF R"(
    FROM timelock_transaction_flows AS f
   WHERE chain_id = $1
     AND status IN ('waiting', 'ready')
     AND confirmed
     AND NOT removed
     AND expired_at < to_timestamp($2::bigint)
     AND )" FENCEPOST_SCANNED_WHOLE R"(
   ORDER BY expired_at
   LIMIT $3
     FOR UPDATE SKIP LOCKED)"};

// `ctid` finds a row that the caller has locked, so it does not move, without a look-up by its key; another row in its
// place does not have its key. The time of a change by the clock is the one at which it became true, whenever it was
// noticed.
const Statement sql::kUpdateStatus{"timelock_flow_status", R"(
  WITH moved AS (
    UPDATE timelock_transaction_flows AS f
       SET status = $8,
           told = f.told || $8::text,
           updated_at = clock_timestamp()
      FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::bigint[], $6::text[], $7::text[])
           AS m(standard, chain_id, contract_address, flow_id, generation, status, version)
     WHERE f.ctid = m.version::tid
       AND (f.timelock_standard, f.chain_id, f.contract_address, f.flow_id, f.generation, f.status)
           IS NOT DISTINCT FROM  -- not `=`: the planner must join by ctid
           (m.standard, m.chain_id, m.contract_address, m.flow_id, m.generation, m.status)
       AND f.confirmed
       AND NOT f.removed
    RETURNING f.timelock_standard, f.chain_id, f.contract_address, f.flow_id, f.generation, f.initiator_address,
              f.via_address, f.retractions, m.status AS before,
              CASE WHEN $8 = 'ready' THEN f.due_at ELSE f.expired_at END AS changed_at
  ),
  logged AS (
    INSERT INTO event (subject, type, from_state, to_state, node, why, data)
    SELECT concat_ws('/', 'timelock', timelock_standard, chain_id, contract_address, flow_id), 'FlowStatusChanged',
           before, $8, $9, 'the chain''s clock',
           jsonb_build_object(
             'standard', timelock_standard, 'chainId', chain_id, 'contractAddress', contract_address, 'flowId', flow_id,
             'generation', generation, 'statusFrom', before, 'statusTo', $8::text, 'txHash', NULL,
             'blockNumber', NULL,
             'initiatorAddress', initiator_address, 'viaAddress', via_address,
             'changedAt', to_char(changed_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
             'retracted', false, 'retraction', retractions)
      FROM moved
     ORDER BY changed_at, contract_address, flow_id
  )
  SELECT count(*) AS moved FROM moved)"};

// $1 the chain, $2 its clock, $3 seconds, $4 how many at most. Each condition is the one of an index.
#define FENCEPOST_REMIND(kind, condition, order)                                                                   \
  "WITH due AS MATERIALIZED (SELECT f.ctid AS version FROM timelock_transaction_flows AS f WHERE f.chain_id = $1 " \
  "AND f.confirmed AND NOT f.removed AND NOT '" kind "' = ANY (f.reminded) AND " condition                         \
  " AND " FENCEPOST_SCANNED_WHOLE " ORDER BY " order                                                               \
  " LIMIT $4 FOR UPDATE SKIP LOCKED)"                                                                              \
  R"(,
  marked AS (
    UPDATE timelock_transaction_flows AS f
       SET reminded = f.reminded || ')" kind R"('::text
      FROM due
     WHERE f.ctid = due.version  -- locked here, so the row does not move
    RETURNING f.*
  ),
  logged AS (
    INSERT INTO event (subject, type, data)
    SELECT concat_ws('/', 'timelock', timelock_standard, chain_id, contract_address, flow_id), 'FlowReminder',
           jsonb_build_object(
             'kind', ')" kind R"(', 'standard', timelock_standard, 'chainId', chain_id, 'contractAddress',
             contract_address, 'flowId', flow_id, 'generation', generation, 'status', status, 'initiatorAddress',
             initiator_address, 'viaAddress', via_address,
             'readySince', to_char(due_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
             'expiresAt', to_char(expired_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'))
      FROM marked
     ORDER BY contract_address, flow_id
  )
  SELECT count(*) AS reminded FROM marked)"

const Statement sql::kRemindExpiring{
    "timelock_remind_expiring",
    FENCEPOST_REMIND("expires_in",
                     "f.status IN ('waiting', 'ready') "
                     "AND f.expired_at BETWEEN to_timestamp($2::bigint) AND to_timestamp($2::bigint + $3::bigint)",
                     "f.expired_at")};
const Statement sql::kRemindReady{
    "timelock_remind_ready",
    FENCEPOST_REMIND("ready_unexecuted", "f.status = 'ready' AND f.due_at <= to_timestamp($2::bigint - $3::bigint)",
                     "f.due_at")};

namespace {

std::vector<FlowRef> refs_of(const pg::ResultSet& rows) {
  std::vector<FlowRef> out;
  out.reserve(rows.size());
  for (const auto row : rows) {
    out.push_back({.key = {kStandards.find(row.get<std::string_view>("timelock_standard")).value(),
                           row.get<std::int64_t>("chain_id"), row.get<std::string>("contract_address"),
                           row.get<std::string>("flow_id")},
                   .generation = row.get<std::int64_t>("generation"),
                   .status = kFlow.find(row.get<std::string_view>("status")).value(),
                   .version = row.get<std::string>("version")});
  }
  return out;
}

}  // namespace

awaitable<std::vector<FlowRef>> get_waiting_flows_due(pg::Transaction& tx, std::int64_t chain_id, std::int64_t now,
                                                      std::size_t limit) {
  co_return refs_of(co_await tx.query(sql::kWaitingDue, chain_id, now, std::uint64_t{limit}));
}

awaitable<std::vector<FlowRef>> get_compound_flows_expired(pg::Transaction& tx, std::int64_t chain_id, std::int64_t now,
                                                           std::size_t limit) {
  co_return refs_of(co_await tx.query(sql::kExpired, chain_id, now, std::uint64_t{limit}));
}

awaitable<std::size_t> update_flow_status(pg::Transaction& tx, std::vector<FlowRef> flows, FlowStatus to,
                                          std::string node) {
  if (flows.empty()) co_return 0;
  Texts standards, statuses, versions;
  std::vector<std::int64_t> generations;
  KeyColumns keys;
  for (const auto& flow : flows) {
    standards.emplace_back(kStandards.name(flow.key.standard));
    keys.add(flow.key);
    generations.push_back(flow.generation);
    statuses.emplace_back(kFlow.name(flow.status));
    versions.push_back(flow.version);
  }
  const auto rows = co_await tx.query(sql::kUpdateStatus, standards, keys.chains, keys.contracts, keys.flows,
                                      generations, statuses, versions, kFlow.name(to), node);
  co_return static_cast<std::size_t>(rows.one().get<std::int64_t>("moved"));
}

awaitable<std::size_t> remind(pg::Transaction& tx, std::int64_t chain_id, std::int64_t now, std::int64_t before_expiry,
                              std::int64_t ready_after, std::size_t limit) {
  pg::Batch batch;
  if (before_expiry > 0) batch.add(sql::kRemindExpiring, chain_id, now, before_expiry, std::uint64_t{limit});
  if (ready_after > 0) batch.add(sql::kRemindReady, chain_id, now, ready_after, std::uint64_t{limit});
  if (batch.empty()) co_return 0;
  std::size_t reminded = 0;
  for (const auto& rows : co_await tx.run(std::move(batch))) {
    reminded += static_cast<std::size_t>(rows.one().get<std::int64_t>("reminded"));
  }
  co_return reminded;
}

}  // namespace fencepost::timelock

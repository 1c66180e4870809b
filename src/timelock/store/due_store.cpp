#include "timelock/store/due_store.hpp"

#include "timelock/store/event_columns.hpp"

namespace fencepost::timelock {

using pg::Statement;

namespace {

#define FENCEPOST_FLOW_REF "timelock_standard, chain_id, contract_address, flow_id, generation, status"

// What a contract did in blocks that are not scanned is not known.
#define FENCEPOST_SCANNED_WHOLE                                                                                  \
  "EXISTS (SELECT FROM timelock AS t WHERE t.chain_id = f.chain_id AND t.contract_address = f.contract_address " \
  "AND t.halted_block IS NULL AND t.history_done_at IS NOT NULL)"

constexpr Statement kWaitingDue{"timelock_flows_due", "SELECT " FENCEPOST_FLOW_REF R"(
    FROM timelock_transaction_flows AS f
   WHERE chain_id = $1
     AND status = 'waiting'
     AND confirmed
     AND NOT removed
     AND due_at <= to_timestamp($2::bigint)
     AND )" FENCEPOST_SCANNED_WHOLE R"(
   ORDER BY due_at
   LIMIT $3
     FOR UPDATE SKIP LOCKED)"};

constexpr Statement kExpired{"timelock_flows_expired", "SELECT " FENCEPOST_FLOW_REF R"(
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

// The time of a change by the clock is the one at which it became true, whenever it was noticed.
constexpr Statement kUpdateStatus{"timelock_flow_status", R"(
  WITH moved AS (
    UPDATE timelock_transaction_flows AS f
       SET status = $7,
           told = f.told || $7::text,
           updated_at = clock_timestamp()
      FROM (SELECT f.row_id, m.status
              FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::bigint[], $6::text[])
                   AS m(standard, chain_id, contract_address, flow_id, generation, status)
             CROSS JOIN LATERAL (SELECT f.ctid AS row_id
                                   FROM timelock_transaction_flows AS f
                                  WHERE f.timelock_standard = m.standard
                                    AND f.chain_id = m.chain_id
                                    AND f.contract_address = m.contract_address
                                    AND f.flow_id = m.flow_id
                                    AND f.generation = m.generation
                                  LIMIT 1) AS f) AS m
     WHERE f.ctid = m.row_id  -- the caller has locked the rows, so they do not move
       AND f.status = m.status
       AND f.confirmed
       AND NOT f.removed
    RETURNING f.*, m.status AS before,
              CASE WHEN $7 = 'ready' THEN f.due_at ELSE f.expired_at END AS changed_at
  ),
  logged AS (
    INSERT INTO event (subject, type, from_state, to_state, node, why, data)
    SELECT concat_ws('/', 'timelock', timelock_standard, chain_id, contract_address, flow_id), 'FlowStatusChanged',
           before, $7, $8, 'the chain''s clock',
           jsonb_build_object(
             'standard', timelock_standard, 'chainId', chain_id, 'contractAddress', contract_address, 'flowId', flow_id,
             'generation', generation, 'statusFrom', before, 'statusTo', $7::text, 'txHash', NULL,
             'initiatorAddress', initiator_address, 'viaAddress', via_address,
             'changedAt', to_char(changed_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
             'retracted', false, 'retraction', retractions)
      FROM moved
     ORDER BY changed_at, contract_address, flow_id
  )
  SELECT count(*) AS moved FROM moved)"};

constexpr Statement kRemind{"timelock_flows_remind", R"(
  WITH due AS MATERIALIZED (
    SELECT f.timelock_standard, f.chain_id, f.contract_address, f.flow_id, f.generation,
           CASE WHEN $3::bigint > 0 AND NOT 'expires_in' = ANY (f.reminded)
                 AND f.expired_at <= to_timestamp($2::bigint + $3::bigint)
                THEN 'expires_in' ELSE 'ready_unexecuted' END AS kind
      FROM timelock_transaction_flows AS f
     WHERE f.chain_id = $1
       AND f.status IN ('waiting', 'ready')
       AND f.confirmed
       AND NOT f.removed
       AND ($3::bigint > 0 AND NOT 'expires_in' = ANY (f.reminded)
            AND f.expired_at BETWEEN to_timestamp($2::bigint) AND to_timestamp($2::bigint + $3::bigint)
            OR $4::bigint > 0 AND NOT 'ready_unexecuted' = ANY (f.reminded)
            AND f.status = 'ready' AND f.due_at <= to_timestamp($2::bigint - $4::bigint))
       AND )" FENCEPOST_SCANNED_WHOLE R"(
     ORDER BY f.contract_address, f.flow_id
     LIMIT $5
       FOR UPDATE SKIP LOCKED
  ),
  marked AS (
    UPDATE timelock_transaction_flows AS f
       SET reminded = f.reminded || d.kind
      FROM due AS d
     WHERE (f.timelock_standard, f.chain_id, f.contract_address, f.flow_id, f.generation)
           = (d.timelock_standard, d.chain_id, d.contract_address, d.flow_id, d.generation)
    RETURNING f.*, d.kind
  ),
  logged AS (
    INSERT INTO event (subject, type, data)
    SELECT concat_ws('/', 'timelock', timelock_standard, chain_id, contract_address, flow_id), 'FlowReminder',
           jsonb_build_object(
             'kind', kind, 'standard', timelock_standard, 'chainId', chain_id, 'contractAddress', contract_address,
             'flowId', flow_id, 'generation', generation, 'status', status, 'initiatorAddress', initiator_address,
             'viaAddress', via_address,
             'readySince', to_char(due_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
             'expiresAt', to_char(expired_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'))
      FROM marked
  )
  SELECT count(*) AS reminded FROM marked)"};

std::vector<FlowRef> refs_of(const pg::ResultSet& rows) {
  std::vector<FlowRef> out;
  out.reserve(rows.size());
  for (const auto row : rows) {
    out.push_back({.key = {kStandards.find(row.get<std::string_view>("timelock_standard")).value(),
                           row.get<std::int64_t>("chain_id"), row.get<std::string>("contract_address"),
                           row.get<std::string>("flow_id")},
                   .generation = row.get<std::int64_t>("generation"),
                   .status = kFlow.find(row.get<std::string_view>("status")).value()});
  }
  return out;
}

}  // namespace

awaitable<std::vector<FlowRef>> get_waiting_flows_due(pg::Transaction& tx, std::int64_t chain_id, std::int64_t now,
                                                      std::size_t limit) {
  co_return refs_of(co_await tx.query(kWaitingDue, chain_id, now, std::uint64_t{limit}));
}

awaitable<std::vector<FlowRef>> get_compound_flows_expired(pg::Transaction& tx, std::int64_t chain_id, std::int64_t now,
                                                           std::size_t limit) {
  co_return refs_of(co_await tx.query(kExpired, chain_id, now, std::uint64_t{limit}));
}

awaitable<std::size_t> update_flow_status(pg::Transaction& tx, std::vector<FlowRef> flows, FlowStatus to,
                                          std::string node) {
  if (flows.empty()) co_return 0;
  Texts standards, statuses;
  std::vector<std::int64_t> generations;
  KeyColumns keys;
  for (const auto& flow : flows) {
    standards.emplace_back(kStandards.name(flow.key.standard));
    keys.add(flow.key);
    generations.push_back(flow.generation);
    statuses.emplace_back(kFlow.name(flow.status));
  }
  const auto rows = co_await tx.query(kUpdateStatus, standards, keys.chains, keys.contracts, keys.flows, generations,
                                      statuses, kFlow.name(to), node);
  co_return static_cast<std::size_t>(rows.one().get<std::int64_t>("moved"));
}

awaitable<std::size_t> remind(pg::Transaction& tx, std::int64_t chain_id, std::int64_t now, std::int64_t before_expiry,
                              std::int64_t ready_after, std::size_t limit) {
  const auto rows = co_await tx.query(kRemind, chain_id, now, before_expiry, ready_after, std::uint64_t{limit});
  co_return static_cast<std::size_t>(rows.one().get<std::int64_t>("reminded"));
}

}  // namespace fencepost::timelock

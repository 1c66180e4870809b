#include "timelock/store/flow_store.hpp"

#include <ranges>

#include <fmt/format.h>

#include "timelock/store/event_columns.hpp"

namespace fencepost::timelock {

using pg::Statement;

namespace {

#define FENCEPOST_SECONDS(column) "extract(epoch FROM " column ")::bigint"

// The keys come sorted, and each generation after the one before it, so rows are locked in one order everywhere. A
// lateral, because a plan that was made while the table was small would scan all of it later.
#define FENCEPOST_FLOWS_OF_KEYS(lock) \
  "SELECT f.* FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[]) "                                          \
  "AS k(standard, chain_id, contract_address, flow_id) CROSS JOIN LATERAL ("                                           \
  "SELECT f.timelock_standard, f.chain_id, f.contract_address, f.flow_id, f.generation, f.status, f.confirmed, "       \
  "f.removed, f.initiator_address, f.via_address, f.eta, f.delay, f.predecessor, " FENCEPOST_SECONDS("f.due_at")       \
  " AS due, " FENCEPOST_SECONDS("f.expired_at") " AS expiry, f.queue_tx_hash, f.queue_block, "                         \
  FENCEPOST_SECONDS("f.queued_at") " AS queued, coalesce(f.execute_tx_hash, f.cancel_tx_hash) AS end_tx_hash, "        \
  "f.end_block, " FENCEPOST_SECONDS("coalesce(f.executed_at, f.cancelled_at)") " AS ended, f.calls, "                  \
  "array_to_string(f.told, ',') AS told, f.retractions, f.tell_block "                                                 \
  "FROM timelock_transaction_flows AS f WHERE f.timelock_standard = k.standard AND f.chain_id = k.chain_id "           \
  "AND f.contract_address = k.contract_address AND f.flow_id = k.flow_id ORDER BY f.generation" lock ") AS f"

}  // namespace

const Statement sql::kLockFlows{"timelock_flows_lock", FENCEPOST_FLOWS_OF_KEYS(" FOR UPDATE")};

namespace {

constexpr Statement kReadFlows{"timelock_flows_read", FENCEPOST_FLOWS_OF_KEYS("")};

constexpr Statement kSaveFlows{"timelock_flows_save", R"(
  INSERT INTO timelock_transaction_flows AS f
         (timelock_standard, chain_id, contract_address, flow_id, generation, status, confirmed, removed,
          initiator_address, via_address, eta, delay, predecessor, due_at, expired_at, queue_tx_hash, queue_block,
          queued_at, execute_tx_hash, executed_at, cancel_tx_hash, cancelled_at, end_block, calls, told, retractions,
          tell_block)
  SELECT standard, chain_id, contract_address, flow_id, generation, status, confirmed, removed, initiator, via,
         eta::numeric, delay::numeric, predecessor, to_timestamp(due), to_timestamp(expiry), queue_tx_hash, queue_block,
         to_timestamp(queued), CASE WHEN status = 'executed' THEN end_tx_hash END,
         CASE WHEN status = 'executed' THEN to_timestamp(ended) END,
         CASE WHEN status = 'cancelled' THEN end_tx_hash END,
         CASE WHEN status = 'cancelled' THEN to_timestamp(ended) END,
         end_block, calls, string_to_array(told, ','), retractions, tell_block
    FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::bigint[], $6::text[], $7::bool[], $8::bool[],
                $9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::bigint[], $15::bigint[],
                $16::text[], $17::bigint[], $18::bigint[], $19::text[], $20::bigint[], $21::bigint[], $22::bigint[],
                $23::text[], $24::bigint[], $25::bigint[])
         AS n(standard, chain_id, contract_address, flow_id, generation, status, confirmed, removed, initiator, via, eta,
              delay, predecessor, due, expiry, queue_tx_hash, queue_block, queued, end_tx_hash, end_block, ended, calls,
              told, retractions, tell_block)
  ON CONFLICT (timelock_standard, chain_id, contract_address, flow_id, generation) DO UPDATE
     SET status = excluded.status,
         confirmed = excluded.confirmed,
         removed = excluded.removed,
         initiator_address = excluded.initiator_address,
         via_address = excluded.via_address,
         eta = excluded.eta,
         delay = excluded.delay,
         predecessor = excluded.predecessor,
         due_at = excluded.due_at,
         expired_at = excluded.expired_at,
         queue_tx_hash = excluded.queue_tx_hash,
         queue_block = excluded.queue_block,
         queued_at = excluded.queued_at,
         execute_tx_hash = excluded.execute_tx_hash,
         executed_at = excluded.executed_at,
         cancel_tx_hash = excluded.cancel_tx_hash,
         cancelled_at = excluded.cancelled_at,
         end_block = excluded.end_block,
         calls = excluded.calls,
         told = excluded.told,
         retractions = excluded.retractions,
         tell_block = excluded.tell_block,
         updated_at = clock_timestamp())"};

constexpr Statement kAppendEvents{"timelock_flow_events", R"(
  INSERT INTO event (subject, type, from_state, to_state, node, why, data)
  SELECT subject, 'FlowStatusChanged', from_state, to_state, $1, why, data::jsonb
    FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[])
         WITH ORDINALITY AS e(subject, from_state, to_state, why, data, place)
   ORDER BY place)"};

}  // namespace

const Statement sql::kUntold{"timelock_flows_untold", R"(
  SELECT f.*
    FROM timelock AS t
   CROSS JOIN LATERAL (SELECT f.timelock_standard, f.chain_id, f.contract_address, f.flow_id
                         FROM timelock_transaction_flows AS f
                        WHERE f.chain_id = t.chain_id
                          AND f.contract_address = t.contract_address
                          AND f.tell_block <= $2
                        ORDER BY f.tell_block
                        LIMIT $3) AS f
   WHERE t.chain_id = $1
     AND t.history_done_at IS NOT NULL
     AND t.halted_block IS NULL
   LIMIT $3)"};

namespace {

constexpr Statement kFacts{"timelock_facts", R"(
  SELECT t.contract_address, coalesce(c.grace_period, 0) AS grace, t.history_done_at IS NOT NULL AS done,
         t.halted_block
    FROM timelock AS t
    LEFT JOIN compound_timelocks AS c USING (chain_id, contract_address)
   WHERE t.chain_id = $1
     AND t.contract_address = ANY ($2::text[]))"};

// A change that stands and was not announced, or was announced and does not stand.
constexpr Statement kTellGuard{"timelock_guard_tell", R"(
  WITH due AS MATERIALIZED (
    SELECT g.chain_id, g.block_hash, g.log_index, t.standard
      FROM timelock_guard_event AS g
      JOIN timelock AS t USING (chain_id, contract_address)
     WHERE g.chain_id = $1
       AND g.told = g.orphaned
       AND (g.orphaned OR g.block_number <= $2)
       AND t.history_done_at IS NOT NULL
       AND t.halted_block IS NULL
     ORDER BY g.block_number, g.log_index
     LIMIT 500
       FOR UPDATE OF g SKIP LOCKED
  ),
  told AS (
    UPDATE timelock_guard_event AS g
       SET told = NOT g.told
      FROM due AS d
     WHERE (g.chain_id, g.block_hash, g.log_index) = (d.chain_id, d.block_hash, d.log_index)
    RETURNING g.*, d.standard
  )
  INSERT INTO event (subject, type, data)
  SELECT 'timelock/' || standard || '/' || chain_id || '/' || contract_address, 'TimelockRulesChanged',
         jsonb_build_object('standard', standard, 'chainId', chain_id, 'contractAddress', contract_address,
                            'event', event_type, 'arguments', arguments, 'txHash', tx_hash, 'blockNumber', block_number,
                            'changedAt', to_char(block_timestamp AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
                            'retracted', orphaned)
    FROM told
   ORDER BY block_number, log_index)"};

std::string told_text(const std::vector<FlowStatus>& told) {
  std::string out;
  for (const auto status : told) out.append(out.empty() ? "" : ",").append(kFlow.name(status));
  return out;
}

std::vector<FlowStatus> told_of(std::string_view text) {
  std::vector<FlowStatus> out;
  if (text.empty()) return out;
  for (const auto part : std::views::split(text, ',')) out.push_back(kFlow.find(std::string_view(part)).value());
  return out;
}

std::optional<Uint256> optional_number(const pg::Row& row, std::string_view column) {
  if (row.is_null(column)) return std::nullopt;
  return parse_decimal(row.get<std::string_view>(column)).value();
}

FlowKey key_of(const pg::Row& row) {
  return {kStandards.find(row.get<std::string_view>("timelock_standard")).value(), row.get<std::int64_t>("chain_id"),
          row.get<std::string>("contract_address"), row.get<std::string>("flow_id")};
}

FlowRow flow_of(const pg::Row& row) {
  return {.key = key_of(row),
          .generation = row.get<std::int64_t>("generation"),
          .status = kFlow.find(row.get<std::string_view>("status")).value(),
          .confirmed = row.get<bool>("confirmed"),
          .removed = row.get<bool>("removed"),
          .initiator = row.get<std::string>("initiator_address"),
          .via = row.get<std::optional<std::string>>("via_address"),
          .eta = parse_decimal(row.get<std::string_view>("eta")).value(),
          .delay = optional_number(row, "delay"),
          .predecessor = row.get<std::optional<std::string>>("predecessor"),
          .due_at = row.get<std::optional<std::int64_t>>("due"),
          .expired_at = row.get<std::optional<std::int64_t>>("expiry"),
          .queue_tx_hash = row.get<std::string>("queue_tx_hash"),
          .queue_block = row.get<std::int64_t>("queue_block"),
          .queued_at = row.get<std::int64_t>("queued"),
          .end_tx_hash = row.get<std::optional<std::string>>("end_tx_hash"),
          .end_block = row.get<std::optional<std::int64_t>>("end_block"),
          .ended_at = row.get<std::optional<std::int64_t>>("ended"),
          .calls = row.get<std::int64_t>("calls"),
          .told = told_of(row.get<std::string_view>("told")),
          .retractions = row.get<std::int64_t>("retractions"),
          .tell_block = row.get<std::optional<std::int64_t>>("tell_block")};
}

FlowKeys keys_of(const pg::ResultSet& rows) {
  FlowKeys keys;
  for (const auto row : rows) keys.insert(key_of(row));
  return keys;
}

// Rows as columns for unnest.
struct FlowColumns {
  using Numbers = std::vector<std::int64_t>;
  using OptionalNumbers = std::vector<std::optional<std::int64_t>>;
  Texts standards, contracts, flows, statuses, initiators, etas, queue_hashes, told;
  OptionalTexts vias, delays, predecessors, end_hashes;
  Numbers chains, generations, queue_blocks, queued, calls, retractions;
  OptionalNumbers due, expiry, end_blocks, ended, tell_blocks;
  std::vector<bool> confirmed, removed;

  explicit FlowColumns(const std::vector<FlowRow>& rows) {
    for (const auto& row : rows) add(row);
  }
  pg::Params params() const {
    return pg::Params::of(standards, chains, contracts, flows, generations, statuses, confirmed, removed, initiators,
                          vias, etas, delays, predecessors, due, expiry, queue_hashes, queue_blocks, queued, end_hashes,
                          end_blocks, ended, calls, told, retractions, tell_blocks);
  }

 private:
  void add(const FlowRow& row) {
    standards.emplace_back(kStandards.name(row.key.standard));
    chains.push_back(row.key.chain_id);
    contracts.push_back(row.key.contract);
    flows.push_back(row.key.flow_id);
    generations.push_back(row.generation);
    statuses.emplace_back(kFlow.name(row.status));
    confirmed.push_back(row.confirmed);
    removed.push_back(row.removed);
    initiators.push_back(row.initiator);
    vias.push_back(row.via);
    etas.push_back(to_decimal(row.eta));
    delays.push_back(row.delay ? std::optional(to_decimal(*row.delay)) : std::nullopt);
    predecessors.push_back(row.predecessor);
    due.push_back(row.due_at);
    expiry.push_back(row.expired_at);
    queue_hashes.push_back(row.queue_tx_hash);
    queue_blocks.push_back(row.queue_block);
    queued.push_back(row.queued_at);
    end_hashes.push_back(row.end_tx_hash);
    end_blocks.push_back(row.end_block);
    ended.push_back(row.ended_at);
    calls.push_back(row.calls);
    told.push_back(told_text(row.told));
    retractions.push_back(row.retractions);
    tell_blocks.push_back(row.tell_block);
  }
};

awaitable<std::vector<FlowRow>> flows_of_keys(pg::Transaction& tx, const Statement& statement, const FlowKeys& keys) {
  KeyColumns columns;
  Texts standards;
  for (const auto& key : keys) {
    standards.emplace_back(kStandards.name(key.standard));
    columns.add(key);
  }
  const auto rows = co_await tx.query(statement, standards, columns.chains, columns.contracts, columns.flows);
  std::vector<FlowRow> out;
  out.reserve(rows.size());
  for (const auto row : rows) out.push_back(flow_of(row));
  co_return out;
}

}  // namespace

std::string flow_subject(const FlowKey& key) {
  return fmt::format("timelock/{}/{}/{}/{}", kStandards.name(key.standard), key.chain_id, key.contract, key.flow_id);
}

awaitable<std::vector<FlowRow>> lock_flows(pg::Transaction& tx, const FlowKeys& keys) {
  return flows_of_keys(tx, sql::kLockFlows, keys);
}

awaitable<std::vector<FlowRow>> read_flows(pg::Transaction& tx, const FlowKeys& keys) {
  return flows_of_keys(tx, kReadFlows, keys);
}

awaitable<> save_flows(pg::Transaction& tx, std::vector<FlowRow> rows, std::vector<FlowEvent> events,
                       std::string node) {
  pg::Batch batch;
  if (!rows.empty()) batch.add_params(kSaveFlows, FlowColumns(rows).params());
  if (!events.empty()) {
    Texts subjects, to, why, data;
    OptionalTexts from;
    for (auto& event : events) {
      subjects.push_back(std::move(event.subject));
      from.push_back(std::move(event.from_state));
      to.push_back(std::move(event.to_state));
      why.push_back(std::move(event.why));
      data.push_back(std::move(event.data));
    }
    batch.add(kAppendEvents, node, subjects, from, to, why, data);
  }
  if (!batch.empty()) co_await tx.run(std::move(batch));
}

awaitable<FlowKeys> untold_flows(pg::Transaction& tx, std::int64_t chain_id, std::int64_t block, std::size_t limit) {
  co_return keys_of(co_await tx.query(sql::kUntold, chain_id, block, std::uint64_t{limit}));
}

// Ready flows by the index of lists in the order of eta, which is due_at in seconds; expired ones by their own index.
// The orders are for the planner alone, which would otherwise take any index while the table is empty.
const Statement sql::kAhead{"timelock_flows_ahead", R"(
  SELECT f.timelock_standard, f.chain_id, f.contract_address, f.flow_id
    FROM (VALUES ('compound'), ('openzeppelin')) AS k(standard)
   CROSS JOIN LATERAL (SELECT f.timelock_standard, f.chain_id, f.contract_address, f.flow_id
                         FROM timelock_transaction_flows AS f
                        WHERE f.chain_id = $1
                          AND f.timelock_standard = k.standard
                          AND f.status = 'ready'
                          AND f.eta > $2::bigint
                        ORDER BY f.eta) AS f
   UNION ALL
  (SELECT f.timelock_standard, f.chain_id, f.contract_address, f.flow_id
     FROM timelock_transaction_flows AS f
    WHERE f.chain_id = $1
      AND f.status = 'expired'
      AND f.expired_at >= to_timestamp($2::bigint)
    ORDER BY f.expired_at))"};

awaitable<FlowKeys> flows_ahead_of(pg::Transaction& tx, std::int64_t chain_id, std::int64_t clock) {
  co_return keys_of(co_await tx.query(sql::kAhead, chain_id, clock));
}

awaitable<std::vector<ContractFacts>> contract_facts(pg::Transaction& tx, std::int64_t chain_id, const FlowKeys& keys) {
  std::set<std::string> addresses;
  for (const auto& key : keys) addresses.insert(key.contract);
  const auto rows = co_await tx.query(kFacts, chain_id, Texts(addresses.begin(), addresses.end()));
  std::vector<ContractFacts> facts;
  facts.reserve(rows.size());
  for (const auto row : rows) {
    facts.push_back({.address = row.get<std::string>("contract_address"),
                     .grace = parse_decimal(row.get<std::string_view>("grace")).value(),
                     .history_done = row.get<bool>("done"),
                     .halted_block = row.get<std::optional<std::int64_t>>("halted_block")});
  }
  co_return facts;
}

awaitable<> tell_guard_events(pg::Transaction& tx, std::int64_t chain_id, std::int64_t confirmed_block) {
  co_await tx.query(kTellGuard, chain_id, confirmed_block);
}

}  // namespace fencepost::timelock

#include "timelock/store/raw_event_store.hpp"

#include <map>
#include <utility>

#include <fmt/format.h>

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "timelock/store/event_columns.hpp"

namespace fencepost::timelock {

using pg::Statement;

namespace {

// $1 … $10 of each insert: where the event stands. See EventPlaces.
#define FENCEPOST_EVENT_PLACE \
  "$2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::text[], $9::bigint[], $10::bigint[]"
#define FENCEPOST_EVENT_PLACE_NAMES \
  "contract_address, event_type, tx_hash, from_address, to_address, block_number, block_hash, seconds, log_index"
#define FENCEPOST_EVENT_PLACE_COLUMNS                                                                            \
  "contract_address, event_type, tx_hash, from_address, to_address, block_number, block_hash, block_timestamp, " \
  "log_index"
#define FENCEPOST_EVENT_PLACE_VALUES                                                                                   \
  "contract_address, event_type, tx_hash, from_address, to_address, block_number, block_hash, to_timestamp(seconds), " \
  "log_index"
// A block that a reorg removed and another reorg brings back has the same events.
#define FENCEPOST_REVIVE \
  " ON CONFLICT (chain_id, block_hash, log_index) DO UPDATE SET orphaned = false WHERE t.orphaned "

constexpr Statement kInsertCompound{
    "timelock_compound_events",
    "INSERT INTO compound_timelock_transactions AS t (chain_id, " FENCEPOST_EVENT_PLACE_COLUMNS
    ", event_tx_hash, event_target, event_value, event_signature, event_signature_bytes, event_data, event_eta) "
    "SELECT $1, " FENCEPOST_EVENT_PLACE_VALUES
    ", flow_id, target, value::numeric, signature, signature_bytes, data, eta::numeric "
    "FROM unnest(" FENCEPOST_EVENT_PLACE
    ", $11::text[], $12::text[], $13::text[], $14::text[], $15::text[], $16::text[], "
    "$17::text[]) AS e(" FENCEPOST_EVENT_PLACE_NAMES
    ", flow_id, target, value, signature, signature_bytes, data, eta)" FENCEPOST_REVIVE
    "RETURNING t.contract_address, t.event_tx_hash AS flow_id"};

constexpr Statement kInsertOpenZeppelin{
    "timelock_openzeppelin_events",
    "INSERT INTO openzeppelin_timelock_transactions AS t (chain_id, " FENCEPOST_EVENT_PLACE_COLUMNS
    ", event_id, event_index, event_target, event_value, event_data, event_predecessor, event_delay, event_salt) "
    "SELECT $1, " FENCEPOST_EVENT_PLACE_VALUES
    ", flow_id, index, target, value::numeric, data, predecessor, delay::numeric, salt "
    "FROM unnest(" FENCEPOST_EVENT_PLACE
    ", $11::text[], $12::bigint[], $13::text[], $14::text[], $15::text[], "
    "$16::text[], $17::text[], $18::text[]) AS e(" FENCEPOST_EVENT_PLACE_NAMES
    ", flow_id, index, target, value, data, predecessor, delay, salt)" FENCEPOST_REVIVE
    "RETURNING t.contract_address, t.event_id AS flow_id"};

// A change of rules makes the contract's row stale.
#define FENCEPOST_RULES_CHANGED                                                                             \
  " RETURNING t.contract_address) UPDATE timelock AS t SET rules_wanted = t.rules_wanted + 1 FROM (SELECT " \
  "DISTINCT contract_address FROM changed) AS c WHERE t.chain_id = $1 AND t.contract_address = c.contract_address"

constexpr Statement kInsertGuard{
    "timelock_guard_events",
    "WITH changed AS (INSERT INTO timelock_guard_event AS t (chain_id, " FENCEPOST_EVENT_PLACE_COLUMNS
    ", arguments) "
    "SELECT $1, " FENCEPOST_EVENT_PLACE_VALUES
    ", arguments::jsonb "
    "FROM unnest(" FENCEPOST_EVENT_PLACE ", $11::text[]) AS e(" FENCEPOST_EVENT_PLACE_NAMES
    ", arguments)" FENCEPOST_REVIVE FENCEPOST_RULES_CHANGED};

#define FENCEPOST_ORPHAN(table)                                                                             \
  "UPDATE " table                                                                                           \
  " AS t SET orphaned = true WHERE chain_id = $1 AND block_number > $2 AND NOT orphaned AND block_hash <> " \
  "ALL ($3::text[])"

constexpr Statement kOrphanCompound{
    "timelock_compound_orphans",
    FENCEPOST_ORPHAN("compound_timelock_transactions") " RETURNING contract_address, event_tx_hash AS flow_id"};
constexpr Statement kOrphanOpenZeppelin{
    "timelock_openzeppelin_orphans",
    FENCEPOST_ORPHAN("openzeppelin_timelock_transactions") " RETURNING contract_address, event_id AS flow_id"};
constexpr Statement kOrphanGuard{"timelock_guard_orphans",
                                 "WITH changed AS (" FENCEPOST_ORPHAN("timelock_guard_event") FENCEPOST_RULES_CHANGED};

// A halted contract is not read again after a reorg: its scan must begin at the fork.
constexpr Statement kHaltEarlier{"timelock_halt_earlier", R"(
  UPDATE timelock
     SET halted_block = least(halted_block, $2::bigint)
   WHERE chain_id = $1
     AND halted_block IS NOT NULL)"};

// Laterals, because a plan that was made while the table was small would scan all of it later. The data of calls stays
// in the table: no fold needs it.
#define FENCEPOST_LOAD(table, flow_id, columns)                                                                        \
  "SELECT t.* FROM unnest($1::bigint[], $2::text[], $3::text[]) AS k(chain_id, contract_address, flow_id) "            \
  "CROSS JOIN LATERAL (SELECT t.chain_id, t.contract_address, t.event_type, t.tx_hash, t.from_address, t.to_address, " \
  "t.block_number, t.block_hash, extract(epoch FROM t.block_timestamp)::bigint AS seconds, t.log_index, '' AS "        \
  "event_data, " columns " FROM " table                                                                                \
  " AS t WHERE t.chain_id = k.chain_id AND t.contract_address = k.contract_address AND NOT t.orphaned AND "            \
  "t." FENCEPOST_OF_FLOW(flow_id, "k.flow_id") "LIMIT $4) AS t"

}  // namespace

const Statement sql::kLoadCompound{
    "timelock_compound_load",
    FENCEPOST_LOAD("compound_timelock_transactions", "event_tx_hash",
                   "t.event_tx_hash, t.event_target, t.event_value, t.event_signature, t.event_signature_bytes, "
                   "t.event_eta")};

const Statement sql::kLoadOpenZeppelin{
    "timelock_openzeppelin_load",
    FENCEPOST_LOAD("openzeppelin_timelock_transactions", "event_id",
                   "t.event_id, t.event_index, t.event_target, t.event_value, t.event_predecessor, t.event_delay, "
                   "t.event_salt")};

namespace {

// Handled as an event that cannot be decoded: the contract is halted, and the others go on.
void check_count(const std::vector<RawEvent>& events) {
  std::map<std::pair<std::string_view, std::string_view>, std::size_t> counts;
  for (const auto& event : events) {
    if (++counts[{event.contract, event.flow_id}] <= kMaxEventsOfFlow) continue;
    throw Exception(unavailable("bad_log", fmt::format("The contract has emitted more than {} events for one id.",
                                                       kMaxEventsOfFlow))
                        .with("contract", event.contract)
                        .with("flow", event.flow_id));
  }
}

void add_keys(FlowKeys& keys, Standard standard, std::int64_t chain_id, const pg::ResultSet& rows) {
  for (const auto row : rows) {
    keys.insert({standard, chain_id, row.get<std::string>("contract_address"), row.get<std::string>("flow_id")});
  }
}

}  // namespace

awaitable<FlowKeys> store_events(pg::Transaction& tx, std::int64_t chain_id, std::vector<RawEvent> events) {
  CompoundColumns compound;
  OpenZeppelinColumns openzeppelin;
  GuardColumns guard;
  for (const auto& event : events) {
    if (is_guard_event(event.type)) {
      guard.add(event);
    } else if (event.standard == Standard::kCompound) {
      compound.add(event);
    } else {
      openzeppelin.add(event);
    }
  }
  pg::Batch batch;
  batch.add_params(kInsertCompound, compound.params(chain_id));
  batch.add_params(kInsertOpenZeppelin, openzeppelin.params(chain_id));
  batch.add_params(kInsertGuard, guard.params(chain_id));
  const auto results = co_await tx.run(std::move(batch));
  FlowKeys changed;
  add_keys(changed, Standard::kCompound, chain_id, results[0]);
  add_keys(changed, Standard::kOpenZeppelin, chain_id, results[1]);
  co_return changed;
}

awaitable<FlowKeys> orphan_events(pg::Transaction& tx, std::int64_t chain_id, std::int64_t fork,
                                  std::vector<std::string> branch) {
  pg::Batch batch;
  batch.add(kHaltEarlier, chain_id, fork + 1);
  for (const auto* orphan : {&kOrphanCompound, &kOrphanOpenZeppelin, &kOrphanGuard}) {
    batch.add(*orphan, chain_id, fork, branch);
  }
  const auto results = co_await tx.run(std::move(batch));
  FlowKeys changed;
  add_keys(changed, Standard::kCompound, chain_id, results[1]);
  add_keys(changed, Standard::kOpenZeppelin, chain_id, results[2]);
  co_return changed;
}

awaitable<std::vector<RawEvent>> load_events(pg::Transaction& tx, const FlowKeys& keys) {
  KeyColumns compound;
  KeyColumns openzeppelin;
  for (const auto& key : keys) (key.standard == Standard::kCompound ? compound : openzeppelin).add(key);
  pg::Batch batch;
  const auto limit = std::uint64_t{kMaxEventsOfFlow} + 1;
  batch.add(sql::kLoadCompound, compound.chains, compound.contracts, compound.flows, limit);
  batch.add(sql::kLoadOpenZeppelin, openzeppelin.chains, openzeppelin.contracts, openzeppelin.flows, limit);
  const auto results = co_await tx.run(std::move(batch));
  std::vector<RawEvent> events;
  events.reserve(results[0].size() + results[1].size());
  for (const auto row : results[0]) events.push_back(compound_event(row));
  for (const auto row : results[1]) events.push_back(openzeppelin_event(row));
  check_count(events);
  co_return events;
}

}  // namespace fencepost::timelock

#include "timelock/store/flow_query_store.hpp"

#include "timelock/store/event_columns.hpp"

namespace fencepost::timelock {

using pg::Statement;

namespace {

#define FENCEPOST_EPOCH(column) "extract(epoch FROM " column ")::bigint"

// A flow waits for its predecessor until that was executed once: an id that was executed cannot be scheduled again.
#define FENCEPOST_FLOW_VIEW \
  "SELECT f.timelock_standard, f.chain_id, f.contract_address, f.flow_id, f.generation, f.status, f.confirmed, "       \
  "f.removed, f.initiator_address, f.via_address, f.eta, f.delay, f.predecessor, " FENCEPOST_EPOCH("f.due_at")         \
  " AS due, " FENCEPOST_EPOCH("f.expired_at") " AS expiry, f.queue_tx_hash, " FENCEPOST_EPOCH("f.queued_at")           \
  " AS queued, f.execute_tx_hash, " FENCEPOST_EPOCH("f.executed_at") " AS executed, f.cancel_tx_hash, "                \
  FENCEPOST_EPOCH("f.cancelled_at") " AS cancelled, f.calls, f.updated_at, "                                           \
  "CASE WHEN f.status IN ('waiting', 'ready') AND NOT EXISTS ("                                                        \
  "SELECT FROM timelock_transaction_flows AS p WHERE p.timelock_standard = f.timelock_standard "                       \
  "AND p.chain_id = f.chain_id AND p.contract_address = f.contract_address AND p.flow_id = f.predecessor "             \
  "AND p.status = 'executed' AND NOT p.removed) THEN f.predecessor END AS blocked_by "

// The parameters of every list:
//   $1 statuses, $2 chain, $3 contracts, $4 initiator, $5 standard, $6 with removed ones
//   $7 … $11 the place after which the page begins, $12 its size, $13 the text of a search
// A page always begins after a place, the first one after the end of the order: `$7 IS NULL OR …` would keep a cached
// plan from seeking.
#define FENCEPOST_FLOW_MATCHES                                         \
  " AND ($2::bigint IS NULL OR f.chain_id = $2) "                      \
  "AND ($3::text[] IS NULL OR f.contract_address = ANY ($3::text[])) " \
  "AND ($4::text IS NULL OR f.initiator_address = $4) "                \
  "AND ($5::text IS NULL OR f.timelock_standard = $5) AND ($6::bool OR NOT f.removed) "
#define FENCEPOST_FLOW_REST "f.flow_id, f.chain_id, f.contract_address, f.generation"
#define FENCEPOST_AFTER_REST ", $8::text, $9::bigint, $10::text, $11::integer) "

#define FENCEPOST_NEWEST_PLACE \
  "AND (f.queued_at, " FENCEPOST_FLOW_REST ") < (to_timestamp($7::double precision)" FENCEPOST_AFTER_REST
#define FENCEPOST_NEWEST_ORDER                                                                               \
  " ORDER BY f.queued_at DESC, f.flow_id DESC, f.chain_id DESC, f.contract_address DESC, f.generation DESC " \
  "LIMIT $12::bigint "
#define FENCEPOST_ETA_PLACE "AND (f.eta, " FENCEPOST_FLOW_REST ") > ($7::numeric" FENCEPOST_AFTER_REST
#define FENCEPOST_ETA_ORDER " ORDER BY f.eta, " FENCEPOST_FLOW_REST " LIMIT $12::bigint "

// A page for each row of `anchors`, and the page of all of them: each is one short walk along an index.
#define FENCEPOST_FLOW_PAGES(anchors, condition, place, order)                                                   \
  "(SELECT f.* FROM " anchors                                                                                    \
  " CROSS JOIN LATERAL (SELECT f.* FROM timelock_transaction_flows AS f WHERE " condition FENCEPOST_FLOW_MATCHES \
      place order ") AS f" order ")"

#define FENCEPOST_STATUSES "unnest($1::text[]) AS s(status)"
// Chains and standards that the filter excludes are no anchors: a walk that matches nothing would read all of them.
#define FENCEPOST_BY_CHAIN(place, order)                                   \
  FENCEPOST_FLOW_PAGES(                                                    \
      "(SELECT c.chain_id, k.standard, s.status FROM timelock_scan AS c "  \
      "CROSS JOIN (VALUES ('compound'), ('openzeppelin')) AS k(standard) " \
      "CROSS JOIN " FENCEPOST_STATUSES                                     \
      " WHERE ($2::bigint IS NULL OR c.chain_id = $2) "                    \
      "AND ($5::text IS NULL OR k.standard = $5)) AS a",                   \
      "f.chain_id = a.chain_id AND f.timelock_standard = a.standard AND f.status = a.status", place, order)
#define FENCEPOST_BY_CONTRACT(place, order)                                               \
  FENCEPOST_FLOW_PAGES("unnest($3::text[]) AS c(address) CROSS JOIN " FENCEPOST_STATUSES, \
                       "f.contract_address = c.address AND f.status = s.status", place, order)
#define FENCEPOST_BY_INITIATOR(place, order) \
  FENCEPOST_FLOW_PAGES(FENCEPOST_STATUSES, "f.initiator_address = $4 AND f.status = s.status", place, order)

#define FENCEPOST_BY_HASH(place, order)                                                                       \
  "(SELECT f.* FROM timelock_transaction_flows AS f WHERE (f.flow_id = $13 OR f.queue_tx_hash = $13 OR "      \
  "f.execute_tx_hash = $13 OR f.cancel_tx_hash = $13) AND f.status = ANY ($1::text[])" FENCEPOST_FLOW_MATCHES \
      place order ")"

// The flows of ids that raw events name.
#define FENCEPOST_BY_IDS(ids, place, order)                                                            \
  "(SELECT f.* FROM (" ids                                                                             \
  ") AS i JOIN timelock_transaction_flows AS f ON f.timelock_standard = i.standard "                   \
  "AND f.chain_id = i.chain_id AND f.contract_address = i.contract_address AND f.flow_id = i.flow_id " \
  "WHERE f.status = ANY ($1::text[])" FENCEPOST_FLOW_MATCHES place order ")"
#define FENCEPOST_BY_ADDRESS(place, order)                                                                   \
  FENCEPOST_FLOW_PAGES(FENCEPOST_STATUSES, "f.contract_address = $13 AND f.status = s.status", place, order) \
  " UNION "                                                                                                           \
  FENCEPOST_FLOW_PAGES(FENCEPOST_STATUSES, "f.initiator_address = $13 AND f.status = s.status", place, order)         \
  " UNION (SELECT f.* FROM timelock_transaction_flows AS f WHERE f.via_address = $13 AND f.status = ANY ($1::text[])" \
  FENCEPOST_FLOW_MATCHES place order ") UNION "                                                                       \
  FENCEPOST_BY_IDS("SELECT 'compound' AS standard, chain_id, contract_address, event_tx_hash AS flow_id "             \
                   "FROM compound_timelock_transactions WHERE event_target = $13 UNION "                              \
                   "SELECT 'openzeppelin', chain_id, contract_address, event_id "                                     \
                   "FROM openzeppelin_timelock_transactions WHERE event_target = $13", place, order)
// The last character of Unicode ends the range of texts that begin with $13.
#define FENCEPOST_BY_TEXT(place, order)                                                                            \
  FENCEPOST_FLOW_PAGES(                                                                                            \
      "(SELECT chain_id, contract_address FROM timelock WHERE strpos(lower(remark), lower($13)) > 0 "              \
      "AND ($2::bigint IS NULL OR chain_id = $2) AND ($3::text[] IS NULL OR contract_address = ANY ($3::text[])) " \
      "AND ($5::text IS NULL OR standard = $5)) AS c CROSS JOIN " FENCEPOST_STATUSES,                              \
      "f.contract_address = c.contract_address AND f.chain_id = c.chain_id AND f.status = s.status", place, order) \
  " UNION " FENCEPOST_BY_IDS(                                                                                      \
      "SELECT DISTINCT 'compound' AS standard, chain_id, contract_address, event_tx_hash AS flow_id "              \
      "FROM compound_timelock_transactions WHERE event_signature <> '' "                                           \
      "AND left(event_signature, 100) COLLATE \"C\" >= $13 "                                                       \
      "AND left(event_signature, 100) COLLATE \"C\" < $13 || U&'\\+10FFFF'",                                       \
      place, order)

#define FENCEPOST_NEWEST(by) \
  FENCEPOST_FLOW_VIEW "FROM (" by(FENCEPOST_NEWEST_PLACE, FENCEPOST_NEWEST_ORDER) ") AS f" FENCEPOST_NEWEST_ORDER
#define FENCEPOST_ETA(by) \
  FENCEPOST_FLOW_VIEW "FROM (" by(FENCEPOST_ETA_PLACE, FENCEPOST_ETA_ORDER) ") AS f" FENCEPOST_ETA_ORDER

struct BothSorts {
  Statement newest;
  Statement eta;
};
constexpr BothSorts kByChain{{"timelock_list_flows", FENCEPOST_NEWEST(FENCEPOST_BY_CHAIN)},
                             {"timelock_list_flows_eta", FENCEPOST_ETA(FENCEPOST_BY_CHAIN)}};
constexpr BothSorts kByContract{{"timelock_list_contract", FENCEPOST_NEWEST(FENCEPOST_BY_CONTRACT)},
                                {"timelock_list_contract_eta", FENCEPOST_ETA(FENCEPOST_BY_CONTRACT)}};
constexpr BothSorts kByInitiator{{"timelock_list_initiator", FENCEPOST_NEWEST(FENCEPOST_BY_INITIATOR)},
                                 {"timelock_list_initiator_eta", FENCEPOST_ETA(FENCEPOST_BY_INITIATOR)}};
constexpr BothSorts kByHash{{"timelock_search_hash", FENCEPOST_NEWEST(FENCEPOST_BY_HASH)},
                            {"timelock_search_hash_eta", FENCEPOST_ETA(FENCEPOST_BY_HASH)}};
constexpr BothSorts kByAddress{{"timelock_search_address", FENCEPOST_NEWEST(FENCEPOST_BY_ADDRESS)},
                               {"timelock_search_address_eta", FENCEPOST_ETA(FENCEPOST_BY_ADDRESS)}};
constexpr BothSorts kByText{{"timelock_search_text", FENCEPOST_NEWEST(FENCEPOST_BY_TEXT)},
                            {"timelock_search_text_eta", FENCEPOST_ETA(FENCEPOST_BY_TEXT)}};

const BothSorts& statements_for(const FlowFilter& filter) {
  if (filter.search == FlowSearch::kHash) return kByHash;
  if (filter.search == FlowSearch::kAddress) return kByAddress;
  if (filter.search == FlowSearch::kText) return kByText;
  if (filter.contracts) return kByContract;
  return filter.initiator ? kByInitiator : kByChain;
}

FlowKey flow_key_of(const pg::Row& row) {
  return {kStandards.find(row.get<std::string_view>("timelock_standard")).value(), row.get<std::int64_t>("chain_id"),
          row.get<std::string>("contract_address"), row.get<std::string>("flow_id")};
}

FlowView view_of(const pg::Row& row) {
  return {.key = flow_key_of(row),
          .generation = row.get<std::int64_t>("generation"),
          .status = kFlow.find(row.get<std::string_view>("status")).value(),
          .confirmed = row.get<bool>("confirmed"),
          .removed = row.get<bool>("removed"),
          .initiator = row.get<std::string>("initiator_address"),
          .via = row.get<std::optional<std::string>>("via_address"),
          .eta = row.get<std::string>("eta"),
          .due_at = row.get<std::optional<std::int64_t>>("due"),
          .expired_at = row.get<std::optional<std::int64_t>>("expiry"),
          .delay = row.get<std::optional<std::string>>("delay"),
          .predecessor = row.get<std::optional<std::string>>("predecessor"),
          .blocked_by = row.get<std::optional<std::string>>("blocked_by"),
          .queue_tx_hash = row.get<std::string>("queue_tx_hash"),
          .queued_at = row.get<std::int64_t>("queued"),
          .execute_tx_hash = row.get<std::optional<std::string>>("execute_tx_hash"),
          .executed_at = row.get<std::optional<std::int64_t>>("executed"),
          .cancel_tx_hash = row.get<std::optional<std::string>>("cancel_tx_hash"),
          .cancelled_at = row.get<std::optional<std::int64_t>>("cancelled"),
          .calls = row.get<std::int64_t>("calls"),
          .updated_at = row.get<TimePoint>("updated_at")};
}

Texts names_of(const std::vector<FlowStatus>& statuses) {
  Texts names;
  for (const auto status : statuses) names.emplace_back(kFlow.name(status));
  if (names.empty()) {
    for (const auto name : kFlow.names()) names.emplace_back(name);
  }
  return names;
}

}  // namespace

awaitable<std::vector<FlowView>> list_flows(pg::Pool& pool, FlowFilter filter) {
  const auto& statements = statements_for(filter);
  const bool newest = filter.sort == FlowSort::kNewest;
  const auto after = filter.after.value_or(FlowPlace{.value = newest ? "Infinity" : "-1"});
  auto params = pg::Params::of(names_of(filter.statuses), filter.chain_id, filter.contracts, filter.initiator);
  if (filter.standard) {
    params.add(kStandards.name(*filter.standard));
  } else {
    params.add(nullptr);
  }
  params.add(filter.removed).add(after.value).add(after.flow_id).add(after.chain_id).add(after.contract);
  params.add(after.generation).add(std::uint64_t{filter.limit});
  if (filter.search != FlowSearch::kNone) params.add(filter.text);
  pg::Batch batch;
  batch.add_params(newest ? statements.newest : statements.eta, std::move(params));
  const auto results = co_await pool.run(std::move(batch), {.access = pg::Access::kRead});
  std::vector<FlowView> out;
  out.reserve(results[0].size());
  for (const auto row : results[0]) out.push_back(view_of(row));
  co_return out;
}

FlowPlace place_of(const FlowView& flow, FlowSort sort) {
  return {.value = sort == FlowSort::kNewest ? std::to_string(flow.queued_at) : flow.eta,
          .flow_id = flow.key.flow_id,
          .chain_id = flow.key.chain_id,
          .contract = flow.key.contract,
          .generation = flow.generation};
}

namespace {

constexpr Statement kFindFlow{"timelock_find_flow", FENCEPOST_FLOW_VIEW R"(
    FROM timelock_transaction_flows AS f
   WHERE f.timelock_standard = $1
     AND f.chain_id = $2
     AND f.contract_address = $3
     AND f.flow_id = $4
     AND ($5::integer IS NULL OR f.generation = $5)
   ORDER BY f.removed, f.generation DESC
   LIMIT 1)"};

constexpr Statement kListGenerations{"timelock_list_generations", R"(
  SELECT generation, status, removed
    FROM timelock_transaction_flows
   WHERE timelock_standard = $1
     AND chain_id = $2
     AND contract_address = $3
     AND flow_id = $4
   ORDER BY generation DESC
   LIMIT $5)"};

constexpr Statement kCompoundFlowEvents{"timelock_compound_flow_events", R"(
  SELECT t.*, extract(epoch FROM t.block_timestamp)::bigint AS seconds
    FROM compound_timelock_transactions AS t
   WHERE t.chain_id = $1
     AND t.contract_address = $2
     AND t.event_tx_hash = $3
   ORDER BY t.block_number, t.log_index, t.block_hash
   LIMIT $4)"};

constexpr Statement kOpenZeppelinFlowEvents{"timelock_openzeppelin_flow_events", R"(
  SELECT t.*, extract(epoch FROM t.block_timestamp)::bigint AS seconds
    FROM openzeppelin_timelock_transactions AS t
   WHERE t.chain_id = $1
     AND t.contract_address = $2
     AND t.event_id = $3
   ORDER BY t.block_number, t.log_index, t.block_hash
   LIMIT $4)"};

}  // namespace

awaitable<std::optional<FlowView>> find_flow(pg::Pool& pool, FlowKey key, std::optional<std::int64_t> generation) {
  const auto rows = co_await pool.query(kFindFlow, kStandards.name(key.standard), key.chain_id, key.contract,
                                        key.flow_id, generation);
  if (rows.empty()) co_return std::nullopt;
  co_return view_of(rows.one());
}

awaitable<std::vector<GenerationView>> list_generations(pg::Pool& pool, FlowKey key, std::size_t limit) {
  const auto rows = co_await pool.query(kListGenerations, kStandards.name(key.standard), key.chain_id, key.contract,
                                        key.flow_id, std::uint64_t{limit});
  std::vector<GenerationView> out;
  for (const auto row : rows) {
    out.push_back({.number = row.get<std::int64_t>("generation"),
                   .status = kFlow.find(row.get<std::string_view>("status")).value(),
                   .removed = row.get<bool>("removed")});
  }
  co_return out;
}

awaitable<std::vector<StoredEvent>> list_flow_events(pg::Pool& pool, FlowKey key, std::size_t limit) {
  const bool compound = key.standard == Standard::kCompound;
  const auto rows = co_await pool.query(compound ? kCompoundFlowEvents : kOpenZeppelinFlowEvents, key.chain_id,
                                        key.contract, key.flow_id, std::uint64_t{limit});
  std::vector<StoredEvent> out;
  out.reserve(rows.size());
  for (const auto row : rows) {
    out.push_back({compound ? compound_event(row) : openzeppelin_event(row), row.get<bool>("orphaned")});
  }
  co_return out;
}

}  // namespace fencepost::timelock

#include "timelock/store/flow_list_statements.hpp"

#include "timelock/store/event_columns.hpp"

namespace fencepost::timelock::sql {

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
//
// The filters are one CASE: the planner takes five conditions for so rare that it would read all flows of an address
// and sort them. A comparison with a parameter that is NULL is not true, so it excludes nothing.
#define FENCEPOST_FLOW_MATCHES                                                         \
  " AND CASE WHEN f.chain_id <> $2::bigint OR f.contract_address <> ALL ($3::text[]) " \
  "OR f.initiator_address <> $4::text OR f.timelock_standard <> $5::text "             \
  "THEN false ELSE $6::bool OR NOT f.removed END "
#define FENCEPOST_FLOW_REST "f.flow_id, f.chain_id, f.contract_address, f.generation"
#define FENCEPOST_AFTER_REST ", $8::text, $9::bigint, $10::text, $11::integer) "

#define FENCEPOST_NEWEST_PLACE \
  "AND (f.queued_at, " FENCEPOST_FLOW_REST ") < (to_timestamp($7::double precision)" FENCEPOST_AFTER_REST
#define FENCEPOST_NEWEST_ORDER                                                                               \
  " ORDER BY f.queued_at DESC, f.flow_id DESC, f.chain_id DESC, f.contract_address DESC, f.generation DESC " \
  "LIMIT $12::bigint "
#define FENCEPOST_SOONEST_PLACE "AND (f.eta, " FENCEPOST_FLOW_REST ") > ($7::numeric" FENCEPOST_AFTER_REST
#define FENCEPOST_SOONEST_ORDER " ORDER BY f.eta, " FENCEPOST_FLOW_REST " LIMIT $12::bigint "

#define FENCEPOST_LATEST_PLACE "AND (f.eta, " FENCEPOST_FLOW_REST ") < ($7::numeric" FENCEPOST_AFTER_REST
#define FENCEPOST_LATEST_ORDER                                                                               \
  " ORDER BY f.eta DESC, f.flow_id DESC, f.chain_id DESC, f.contract_address DESC, f.generation DESC LIMIT " \
  "$12::bigint "

// The order of an index alone, so that the planner has nothing to gain from reading all rows and sorting them; with all
// rows of the last time, among which the complete order decides.
#define FENCEPOST_TIES " FETCH FIRST ($12::bigint) ROWS WITH TIES"
#define FENCEPOST_NEWEST_WALK " ORDER BY f.queued_at DESC" FENCEPOST_TIES
#define FENCEPOST_SOONEST_WALK " ORDER BY f.eta" FENCEPOST_TIES
#define FENCEPOST_LATEST_WALK " ORDER BY f.eta DESC" FENCEPOST_TIES

// A page for each row of `anchors`, and the page of all of them: each is one short walk along an index.
#define FENCEPOST_FLOW_PAGES(anchors, condition, place, order, walk)                                             \
  "(SELECT f.* FROM " anchors                                                                                    \
  " CROSS JOIN LATERAL (SELECT f.* FROM timelock_transaction_flows AS f WHERE " condition FENCEPOST_FLOW_MATCHES \
      place walk ") AS f" order ")"

#define FENCEPOST_STATUSES "unnest($1::text[]) AS s(status)"
// Chains and standards that the filter excludes are no anchors: a walk that matches nothing would read all of them.
#define FENCEPOST_BY_CHAIN(place, order, walk, until)                      \
  FENCEPOST_FLOW_PAGES(                                                    \
      "(SELECT c.chain_id, k.standard, s.status FROM timelock_scan AS c "  \
      "CROSS JOIN (VALUES ('compound'), ('openzeppelin')) AS k(standard) " \
      "CROSS JOIN " FENCEPOST_STATUSES                                     \
      " WHERE ($2::bigint IS NULL OR c.chain_id = $2) "                    \
      "AND ($5::text IS NULL OR k.standard = $5)) AS a",                   \
      "f.chain_id = a.chain_id AND f.timelock_standard = a.standard AND f.status = a.status", place, order, walk)
#define FENCEPOST_BY_CONTRACT(place, order, walk, until)                                  \
  FENCEPOST_FLOW_PAGES("unnest($3::text[]) AS c(address) CROSS JOIN " FENCEPOST_STATUSES, \
                       "f.contract_address = c.address AND f.status = s.status", place, order, walk)
#define FENCEPOST_BY_INITIATOR(place, order, walk, until) \
  FENCEPOST_FLOW_PAGES(FENCEPOST_STATUSES, "f.initiator_address = $4 AND f.status = s.status", place, order, walk)

// The flows of ids. A lateral that the planner cannot flatten: each id is one look-up by the primary key.
#define FENCEPOST_BY_IDS(ids, condition, place, order)                                                              \
  "(SELECT f.* FROM (" ids                                                                                          \
  ") AS i CROSS JOIN LATERAL (SELECT f.* FROM timelock_transaction_flows AS f "                                     \
  "WHERE f.timelock_standard = i.standard AND f.chain_id = i.chain_id AND f.contract_address = i.contract_address " \
  "AND f.flow_id = i.flow_id AND f.status = ANY ($1::text[])" condition FENCEPOST_FLOW_MATCHES place                \
  "OFFSET 0) AS f" order ")"
#define FENCEPOST_COMPOUND_IDS                                                                      \
  "SELECT 'compound' AS standard, e.chain_id, e.contract_address, e.event_tx_hash AS flow_id FROM " \
  "compound_timelock_transactions AS e WHERE "
#define FENCEPOST_OPENZEPPELIN_IDS                                                                 \
  "SELECT 'openzeppelin' AS standard, e.chain_id, e.contract_address, e.event_id AS flow_id FROM " \
  "openzeppelin_timelock_transactions AS e WHERE "
// A search for what a flow calls looks at the events that queued it, and not at those of its end.
#define FENCEPOST_QUEUED "e.event_type = 'QueueTransaction' AND "
#define FENCEPOST_SCHEDULED "e.event_type = 'CallScheduled' AND "
// However many events match a search, it looks at so many.
#define FENCEPOST_MOST_EVENTS " LIMIT 1000"

// A flow's id is looked up in each watched contract. Its transactions are those of its events.
#define FENCEPOST_BY_HASH(place, order, walk, until)                                                                   \
  FENCEPOST_BY_IDS(                                                                                                    \
      "SELECT standard, chain_id, contract_address, $13::text AS flow_id FROM timelock UNION (" FENCEPOST_COMPOUND_IDS \
      "e.tx_hash = $13" FENCEPOST_MOST_EVENTS ") UNION (" FENCEPOST_OPENZEPPELIN_IDS                                   \
      "e.tx_hash = $13" FENCEPOST_MOST_EVENTS ")",                                                                     \
      " AND $13 IN (f.flow_id, f.queue_tx_hash, f.execute_tx_hash, f.cancel_tx_hash)", place, order)

#define FENCEPOST_OF_TARGET(until) "e.event_target = $13" until " ORDER BY e.block_timestamp DESC" FENCEPOST_MOST_EVENTS
#define FENCEPOST_BY_ADDRESS(place, order, walk, until)                                                            \
  FENCEPOST_FLOW_PAGES(FENCEPOST_STATUSES, "f.contract_address = $13 AND f.status = s.status", place, order, walk) \
  " UNION "                                                                                                            \
  FENCEPOST_FLOW_PAGES(FENCEPOST_STATUSES, "f.initiator_address = $13 AND f.status = s.status", place, order, walk)          \
  " UNION "                                                                                                            \
  FENCEPOST_FLOW_PAGES(FENCEPOST_STATUSES, "f.via_address = $13 AND f.status = s.status", place, order, walk)                \
  " UNION "                                                                                                            \
  FENCEPOST_BY_IDS("(" FENCEPOST_COMPOUND_IDS FENCEPOST_QUEUED FENCEPOST_OF_TARGET(until) ") UNION ("                                   \
                   FENCEPOST_OPENZEPPELIN_IDS FENCEPOST_SCHEDULED FENCEPOST_OF_TARGET(until) ")", "", place, order)

// The last character of Unicode ends the range of texts that begin with $13.
#define FENCEPOST_BY_TEXT(place, order, walk, until)                                                               \
  FENCEPOST_FLOW_PAGES(                                                                                            \
      "(SELECT chain_id, contract_address FROM timelock WHERE strpos(lower(remark), lower($13)) > 0 "              \
      "AND ($2::bigint IS NULL OR chain_id = $2) AND ($3::text[] IS NULL OR contract_address = ANY ($3::text[])) " \
      "AND ($5::text IS NULL OR standard = $5)) AS c CROSS JOIN " FENCEPOST_STATUSES,                              \
      "f.contract_address = c.contract_address AND f.chain_id = c.chain_id AND f.status = s.status", place, order, \
      walk)                                                                                                        \
  " UNION " FENCEPOST_BY_IDS(                                                                                      \
      "SELECT DISTINCT e.* FROM (" FENCEPOST_COMPOUND_IDS FENCEPOST_QUEUED                                         \
      "e.event_signature <> '' "                                                                                   \
      "AND left(e.event_signature, 100) COLLATE \"C\" >= $13 "                                                     \
      "AND left(e.event_signature, 100) COLLATE \"C\" < $13 || U&'\\+10FFFF'" until                                \
      " ORDER BY left(e.event_signature, 100) COLLATE \"C\" DESC, e.block_timestamp DESC" FENCEPOST_MOST_EVENTS    \
      ") AS e",                                                                                                    \
      "", place, order)

// A flow is queued in the block of its first event: events after the place of a page are of flows before it.
#define FENCEPOST_UNTIL_PLACE " AND e.block_timestamp <= to_timestamp($7::double precision)"
#define FENCEPOST_NEWEST(by)                                                                             \
  FENCEPOST_FLOW_VIEW "FROM (" by(FENCEPOST_NEWEST_PLACE, FENCEPOST_NEWEST_ORDER, FENCEPOST_NEWEST_WALK, \
                                  FENCEPOST_UNTIL_PLACE) ") AS f" FENCEPOST_NEWEST_ORDER
#define FENCEPOST_SOONEST(by)                                                                               \
  FENCEPOST_FLOW_VIEW "FROM (" by(FENCEPOST_SOONEST_PLACE, FENCEPOST_SOONEST_ORDER, FENCEPOST_SOONEST_WALK, \
                                  "") ") AS f" FENCEPOST_SOONEST_ORDER
#define FENCEPOST_LATEST(by)                                                                             \
  FENCEPOST_FLOW_VIEW "FROM (" by(FENCEPOST_LATEST_PLACE, FENCEPOST_LATEST_ORDER, FENCEPOST_LATEST_WALK, \
                                  "") ") AS f" FENCEPOST_LATEST_ORDER

}  // namespace

#define FENCEPOST_FLOW_LIST(name, by)                                     \
  {                                                                       \
    {name, FENCEPOST_NEWEST(by)}, {name "_eta", FENCEPOST_SOONEST(by)}, { \
      name "_latest", FENCEPOST_LATEST(by)                                \
    }                                                                     \
  }

const FlowList kByChain FENCEPOST_FLOW_LIST("timelock_list_flows", FENCEPOST_BY_CHAIN);
const FlowList kByContract FENCEPOST_FLOW_LIST("timelock_list_contract", FENCEPOST_BY_CONTRACT);
const FlowList kByInitiator FENCEPOST_FLOW_LIST("timelock_list_initiator", FENCEPOST_BY_INITIATOR);
const FlowList kByHash FENCEPOST_FLOW_LIST("timelock_search_hash", FENCEPOST_BY_HASH);
const FlowList kByAddress FENCEPOST_FLOW_LIST("timelock_search_address", FENCEPOST_BY_ADDRESS);
const FlowList kByText FENCEPOST_FLOW_LIST("timelock_search_text", FENCEPOST_BY_TEXT);

const Statement kFindFlow{"timelock_find_flow", FENCEPOST_FLOW_VIEW R"(
    FROM timelock_transaction_flows AS f
   WHERE f.timelock_standard = $1
     AND f.chain_id = $2
     AND f.contract_address = $3
     AND f.flow_id = $4
     AND ($5::integer IS NULL OR f.generation = $5)
   ORDER BY f.removed, f.generation DESC
   LIMIT 1)"};

#define FENCEPOST_FLOW_EVENTS(table, flow_id) \
  "SELECT e.*, extract(epoch FROM e.block_timestamp)::bigint AS seconds FROM (SELECT * FROM " table                    \
  " WHERE chain_id = $1 AND contract_address = $2 AND " FENCEPOST_OF_FLOW(flow_id, "$3::text") "LIMIT 100000) AS e "   \
  "ORDER BY e.block_number, e.log_index, e.block_hash LIMIT $4"

const Statement kCompoundFlowEvents{"timelock_compound_flow_events",
                                    FENCEPOST_FLOW_EVENTS("compound_timelock_transactions", "event_tx_hash")};
const Statement kOpenZeppelinFlowEvents{"timelock_openzeppelin_flow_events",
                                        FENCEPOST_FLOW_EVENTS("openzeppelin_timelock_transactions", "event_id")};

}  // namespace fencepost::timelock::sql

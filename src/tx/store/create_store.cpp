#include "tx/store/create_store.hpp"

#include <map>

#include <boost/json/parse.hpp>

#include "base/error.hpp"
#include "pg/bytes.hpp"
#include "pg/error.hpp"
#include "tx/store/fence.hpp"
#include "tx/store/read_row.hpp"
#include "tx/store/sql_parts.hpp"

namespace fencepost::tx {

using pg::Statement;

namespace {

CreateOutcome create_outcome(std::string_view text) {
  if (text == "created") return CreateOutcome::kCreated;
  if (text == "existing") return CreateOutcome::kExisting;
  if (text == "conflict") return CreateOutcome::kConflict;
  if (text == "reconcile") return CreateOutcome::kNeedsReconcile;
  return CreateOutcome::kFenced;
}

struct AllotmentColumns : FencedLeases {
  std::vector<std::int64_t> windows;

  explicit AllotmentColumns(const std::vector<Allotment>& allotments) {
    for (const auto& a : allotments) {
      add(a.lease);
      windows.push_back(a.max_in_flight);
    }
  }
};

// For each item, the position (from 1) of the first item in the batch with the same request.
std::vector<std::int64_t> first_places(const std::vector<NewTx>& items) {
  std::map<std::pair<SignerKey, std::string_view>, std::int64_t> seen;
  std::vector<std::int64_t> places;
  places.reserve(items.size());
  for (const auto& item : items) {
    const auto place = static_cast<std::int64_t>(places.size()) + 1;
    places.push_back(item.request_id ? seen.try_emplace({item.key, *item.request_id}, place).first->second : place);
  }
  return places;
}

pg::Params create_params(const std::string& node, const AllotmentColumns& w, const std::vector<Allotment>& allotments,
                         const std::vector<NewTx>& items) {
  std::map<SignerKey, std::int64_t> slots;
  for (const auto& a : allotments) slots.emplace(a.lease.key, static_cast<std::int64_t>(slots.size()) + 1);
  std::vector<std::int64_t> slot, gas;
  std::vector<std::string_view> payloads;
  std::vector<Uuid> ids;
  std::vector<std::optional<std::string>> requests;
  std::vector<pg::Bytes> hashes;
  for (const auto& item : items) {
    slot.push_back(slots.at(item.key));
    ids.push_back(item.tx_id);
    requests.push_back(item.request_id);
    payloads.emplace_back(item.payload);
    hashes.push_back(pg::to_bytes(item.payload_hash));
    gas.push_back(item.gas_limit);
  }
  return pg::Params::of(node, w.chains, w.signers, w.tokens, w.windows, slot, first_places(items), ids, requests,
                        payloads, hashes, gas);
}

// A transaction that the batch has just created, as the table now has it.
ManagedTx new_managed_tx(const NewTx& item, const pg::Row& row) {
  ManagedTx tx;
  tx.tx_id = item.tx_id;
  tx.key = item.key;
  tx.request_id = item.request_id;
  tx.creation_seq = row.get<std::int64_t>("new_creation_seq");
  tx.nonce = row.get<std::optional<std::int64_t>>("new_nonce");
  tx.payload = boost::json::parse(item.payload);
  tx.gas_limit = item.gas_limit;
  tx.state = tx.nonce ? TxState::kAllocated : TxState::kCreated;
  tx.fencing_token = row.get<std::int64_t>("new_token");
  tx.created_at = tx.updated_at = row.get<TimePoint>("new_at");
  if (tx.nonce) tx.next_resubmit_at = tx.created_at;
  return tx;
}

}  // namespace

// How many of the signer's transactions are in flight: have a nonce and no receipt. Stops counting at the window.
#define FENCEPOST_IN_FLIGHT(w, c)                                                                       \
  "(SELECT count(*) FROM (SELECT FROM tx_open AS t WHERE t.chain_id = " w ".chain_id AND t.signer = " w \
  ".signer AND t.nonce >= " c                                                                           \
  ".first_unmined AND t.receipt_block IS NULL AND t.sub_state IS DISTINCT FROM 'external' "             \
  "LIMIT " w ".max_in_flight) AS in_flight)"

// The new value of first_unmined. What this statement inserts has a higher nonce.
#define FENCEPOST_FIRST_UNMINED(c)                                                                       \
  "coalesce((SELECT t.nonce FROM tx_open AS t WHERE t.chain_id = " c ".chain_id AND t.signer = " c       \
  ".signer AND t.nonce >= " c ".first_unmined AND t.receipt_block IS NULL ORDER BY t.nonce LIMIT 1), " c \
  ".next_nonce)"

// Never ON CONFLICT: a nonce that is assigned and then not inserted would be a gap.
//
// Items refer to their signer by its position among the leases ($2 … $5), and to the first item with the same request
// by its position. New transactions are returned only as the numbers they got, and known ones as their ids.
//
// generate_subscripts makes the planner expect many items and join them to their signers by hash.
const Statement sql::kCreateBatch{"tx_create_batch", R"(
  WITH held AS MATERIALIZED (
    SELECT w.slot, w.chain_id, w.signer, w.token, c.ctid AS cursor_row, c.next_nonce, c.next_creation,
           c.needs_reconcile, coalesce(c.reconcile_reason, 'chain_ahead') AS reconcile_reason,
           CASE WHEN c.next_nonce IS NULL THEN 0
                WHEN c.first_waiting < c.next_creation THEN 0  -- others wait, and come first
                WHEN w.max_in_flight = 0 THEN 2147483647
                ELSE w.max_in_flight - )" FENCEPOST_IN_FLIGHT("w", "c") R"(
           END AS room
      FROM unnest($2::bigint[], $3::text[], $4::bigint[], $5::bigint[])
           WITH ORDINALITY AS w(chain_id, signer, token, max_in_flight, slot)
     CROSS JOIN LATERAL )" FENCEPOST_LEASE_OF("w") R"( AS l
     CROSS JOIN LATERAL (SELECT c.ctid, c.*
                           FROM signer_nonce_cursor AS c
                          WHERE c.chain_id = w.chain_id AND c.signer = w.signer
                          LIMIT 1) AS c
     WHERE )" FENCEPOST_HELD_BY_US("w") R"(
  ),
  item AS MATERIALIZED (
    SELECT i.*, h.chain_id, h.signer, h.token, h.cursor_row, h.next_nonce, h.next_creation, h.needs_reconcile, h.reconcile_reason,
           h.room,
           known.tx_id AS known_id, known.nonce AS known_nonce, known.payload_hash AS known_hash
      FROM ROWS FROM (unnest($6::bigint[], $7::bigint[], $8::uuid[], $9::text[], $10::text[], $11::bytea[],
                             $12::bigint[]),
                      generate_subscripts($6::bigint[], 1))
           AS i(slot, first_ord, tx_id, request_id, payload, payload_hash, gas_limit, ord)
      LEFT JOIN held AS h USING (slot)
      LEFT JOIN LATERAL (SELECT t.tx_id, t.nonce, t.payload_hash
                           FROM managed_tx AS t
                          WHERE t.chain_id = h.chain_id AND t.signer = h.signer AND t.request_id = i.request_id
                          LIMIT 1) AS known ON true
  ),
  fresh AS MATERIALIZED (
    SELECT f.*,
           next_creation + place AS creation_seq,
           CASE WHEN place < room THEN next_nonce + place END AS nonce,
           clock_timestamp() AS at
      FROM (SELECT i.*, row_number() OVER (PARTITION BY i.slot ORDER BY i.ord) - 1 AS place
              FROM item AS i
             WHERE i.token IS NOT NULL
               AND i.known_id IS NULL
               AND i.ord = i.first_ord
               AND NOT i.needs_reconcile) AS f
  ),
  moved AS (
    UPDATE signer_nonce_cursor AS c
       SET next_nonce = c.next_nonce + n.numbered,
           next_creation = c.next_creation + n.made,
           first_waiting = c.first_waiting + n.numbered,  -- numbered only where no others wait
           first_unmined = CASE WHEN n.numbered = 0 THEN c.first_unmined ELSE )" FENCEPOST_FIRST_UNMINED("c") R"( END,
           fencing_token = n.token,
           updated_at = clock_timestamp()
      FROM (SELECT cursor_row, token, count(*) AS made, count(nonce) AS numbered
              FROM fresh
             GROUP BY cursor_row, token) AS n
     WHERE c.ctid = n.cursor_row
  ),
  opened AS (
    INSERT INTO tx_open (chain_id, signer, nonce, tx_id, state, next_resubmit_at, fencing_token, updated_at)
    SELECT chain_id, signer, nonce, tx_id, 'ALLOCATED', at, token, at
      FROM fresh
     WHERE nonce IS NOT NULL
     ORDER BY slot, place
  ),
  recorded AS (
    INSERT INTO managed_tx (tx_id, chain_id, signer, request_id, creation_seq, nonce, payload, payload_hash, gas_limit,
                            created_at)
    SELECT tx_id, chain_id, signer, request_id, creation_seq, nonce, payload::jsonb, payload_hash, gas_limit, at
      FROM fresh
     ORDER BY slot, place
  ),
  logged AS (
    INSERT INTO event (subject, type, to_state, node, fencing_token, why, data)
    SELECT 'tx/' || tx_id, 'TxAccepted', CASE WHEN nonce IS NULL THEN 'CREATED' ELSE 'ALLOCATED' END, $1, token,
           'accepted',
           jsonb_build_object('txId', tx_id, 'chainId', chain_id, 'signer', signer, 'requestId', request_id,
                              'nonce', nonce)
      FROM fresh
     ORDER BY slot, place
  )
  SELECT CASE WHEN i.token IS NULL THEN 'fenced'
              WHEN i.known_id IS NOT NULL AND i.known_hash = i.payload_hash THEN 'existing'
              WHEN i.known_id IS NOT NULL THEN 'conflict'
              WHEN f.ord IS NULL THEN 'reconcile'
              WHEN i.ord = i.first_ord THEN 'created'
              WHEN f.payload_hash = i.payload_hash THEN 'existing'
              ELSE 'conflict'
         END AS outcome,
         i.known_id, i.known_nonce, i.reconcile_reason,
         f.creation_seq AS new_creation_seq, f.nonce AS new_nonce, f.token AS new_token, f.at AS new_at
    FROM item AS i
    LEFT JOIN fresh AS f ON f.ord = i.first_ord
   ORDER BY i.ord)"};

pg::Batch create_statements(const std::string& node, const std::vector<Allotment>& allotments,
                            const std::vector<NewTx>& items) {
  const AllotmentColumns w(allotments);
  auto batch = fence_cursors(node, w);
  batch.add_params(sql::kCreateBatch, create_params(node, w, allotments, items));
  return batch;
}

namespace {

constexpr Statement kFindKnown{"tx_create_known", R"(
  SELECT )" FENCEPOST_TX_COLUMNS("t") R"(
    FROM unnest($1::uuid[]) AS known(tx_id)
   CROSS JOIN LATERAL (SELECT * FROM tx_view AS t WHERE t.tx_id = known.tx_id LIMIT 1) AS t)"};

// The transactions that the batch found instead of creating them. A query of its own, because it is rarely needed. The
// batch is committed by now, so a failure here must not look like a refusal of the batch: throws CommitUnknown.
awaitable<std::map<Uuid, ManagedTx>> find_known(pg::Pool& pool, const pg::ResultSet& created) {
  std::map<Uuid, ManagedTx> out;
  std::vector<Uuid> ids;
  for (const auto row : created) {
    if (!row.is_null("known_id")) ids.push_back(row.get<Uuid>("known_id"));
  }
  if (ids.empty()) co_return out;
  pg::ResultSet rows;
  std::string failure;
  try {
    rows = co_await pool.query(kFindKnown, ids);
  } catch (const std::exception&) {
    failure = error_of(std::current_exception()).to_string();
  }
  if (!failure.empty()) throw pg::CommitUnknown(std::string(kFindKnown.name), failure);
  for (const auto row : rows) {
    auto tx = read_managed_tx(row);
    out.emplace(tx.tx_id, std::move(tx));
  }
  co_return out;
}

}  // namespace

awaitable<std::vector<CreateResult>> create_batch(pg::Pool& pool, std::string node, std::vector<Allotment> allotments,
                                                  std::vector<NewTx> items) {
  const auto rows = co_await run_fenced(pool, create_statements(node, allotments, items));
  const auto first = first_places(items);
  std::vector<CreateResult> out;
  out.reserve(items.size());
  if (static_cast<std::size_t>(rows.size()) != items.size()) {
    throw Exception(internal("create_mismatch", "the create batch returned fewer or more results than it had items"));
  }
  auto known = co_await find_known(pool, rows);
  for (const auto row : rows) {
    CreateResult result{.outcome = create_outcome(row.get<std::string_view>("outcome"))};
    if (result.outcome == CreateOutcome::kNeedsReconcile) result.reason = read_reconcile_reason(row);
    if (!row.is_null("known_id")) {
      result.tx = known.at(row.get<Uuid>("known_id"));
    } else if (!row.is_null("new_at")) {
      result.tx = new_managed_tx(items[static_cast<std::size_t>(first[out.size()]) - 1], row);
    }
    out.push_back(std::move(result));
  }
  co_return out;
}

// Takes the first of the line, as far as there is room. The line is empty when there are fewer than that. Only a
// session that is not a node's changes a record that waits; if one does so at this moment, tx_wrote_all fails, and the
// promoter tries again.
const Statement sql::kPromote{"tx_promote", R"(
  WITH held AS MATERIALIZED (
    SELECT w.chain_id, w.signer, w.token, c.ctid AS cursor_row, c.next_nonce, c.first_waiting,
           CASE WHEN w.max_in_flight = 0 THEN 1000
                ELSE greatest(0, least(1000, w.max_in_flight - )" FENCEPOST_IN_FLIGHT("w", "c") R"())
           END AS room
      FROM unnest($2::bigint[], $3::text[], $4::bigint[], $5::bigint[]) AS w(chain_id, signer, token, max_in_flight)
     CROSS JOIN LATERAL )" FENCEPOST_LEASE_OF("w") R"( AS l
     CROSS JOIN LATERAL (SELECT c.ctid, c.*
                           FROM signer_nonce_cursor AS c
                          WHERE c.chain_id = w.chain_id AND c.signer = w.signer
                          LIMIT 1) AS c
     WHERE )" FENCEPOST_HELD_BY_US("w") R"(
       AND c.next_nonce IS NOT NULL
       AND NOT c.needs_reconcile
  ),
  chosen AS MATERIALIZED (  -- one row without a transaction where no transaction waits
    SELECT h.chain_id, h.signer, h.token, h.cursor_row, h.room, t.row_id, t.tx_id, t.creation_seq,
           t.payload, t.gas_limit, h.next_nonce + t.place - 1 AS nonce,
           clock_timestamp() AS at
      FROM held AS h
      LEFT JOIN LATERAL (SELECT t.ctid AS row_id, t.tx_id, t.creation_seq, t.payload, t.gas_limit,
                                row_number() OVER (ORDER BY t.creation_seq) AS place
                           FROM managed_tx AS t
                          WHERE t.chain_id = h.chain_id
                            AND t.signer = h.signer
                            AND )" FENCEPOST_WAITS("t") R"(
                            AND t.creation_seq >= h.first_waiting
                          ORDER BY t.creation_seq
                          LIMIT h.room) AS t ON true
     WHERE h.room > 0
  ),
  moved AS (
    UPDATE signer_nonce_cursor AS c
       SET next_nonce = c.next_nonce + n.numbered,
           first_waiting = CASE WHEN n.numbered < n.room THEN c.next_creation ELSE n.last + 1 END,
           first_unmined = )" FENCEPOST_FIRST_UNMINED("c") R"(,
           fencing_token = n.token,
           updated_at = clock_timestamp()
      FROM (SELECT cursor_row, token, room, count(tx_id) AS numbered, max(creation_seq) AS last
              FROM chosen
             GROUP BY cursor_row, token, room) AS n
     WHERE c.ctid = n.cursor_row
  ),
  opened AS (
    INSERT INTO tx_open (chain_id, signer, nonce, tx_id, state, next_resubmit_at, fencing_token, updated_at)
    SELECT chain_id, signer, nonce, tx_id, 'ALLOCATED', at, token, at
      FROM chosen
     WHERE tx_id IS NOT NULL
     ORDER BY chain_id, signer, nonce
  ),
  recorded AS (
    UPDATE managed_tx AS t
       SET nonce = chosen.nonce
      FROM chosen
     WHERE t.ctid = chosen.row_id
       AND )" FENCEPOST_WAITS("t") R"(
    RETURNING t.tx_id
  ),
  logged AS (
    INSERT INTO event (subject, type, from_state, to_state, node, fencing_token, why, data)
    SELECT 'tx/' || tx_id, 'TxAllocated', 'CREATED', 'ALLOCATED', $1, token, 'window open',
           jsonb_build_object('txId', tx_id, 'chainId', chain_id, 'signer', signer, 'nonce', nonce)
      FROM chosen
     WHERE tx_id IS NOT NULL
     ORDER BY chain_id, signer, nonce
  )
  SELECT chain_id, signer, tx_id, nonce, payload, gas_limit
    FROM chosen
   WHERE tx_id IS NOT NULL
     AND (SELECT tx_wrote_all((SELECT count(tx_id) FROM chosen), (SELECT count(*) FROM recorded)))
   ORDER BY chain_id, signer, nonce)"};

pg::Batch promote_statements(const std::string& node, const std::vector<Allotment>& allotments) {
  const AllotmentColumns w(allotments);
  auto batch = fence_cursors(node, w);
  batch.add(sql::kPromote, node, w.chains, w.signers, w.tokens, w.windows);
  return batch;
}

awaitable<std::vector<Promotion>> promote(pg::Pool& pool, std::string node, std::vector<Allotment> allotments) {
  const auto rows = co_await run_fenced(pool, promote_statements(node, allotments));
  std::vector<Promotion> out;
  for (const auto row : rows) {
    out.push_back({read_key(row), row.get<Uuid>("tx_id"), row.get<std::int64_t>("nonce"),
                   row.get<std::string>("payload"), row.get<std::int64_t>("gas_limit")});
  }
  co_return out;
}

// Takes no lock, so the answer is only a hint; promotion looks again.
const Statement sql::kWaiting{"tx_signers_waiting", R"(
  SELECT w.chain_id, w.signer
    FROM unnest($1::bigint[], $2::text[], $3::bigint[]) AS w(chain_id, signer, max_in_flight)
   CROSS JOIN LATERAL (SELECT c.first_unmined
                         FROM signer_nonce_cursor AS c
                        WHERE c.chain_id = w.chain_id AND c.signer = w.signer AND c.first_waiting < c.next_creation
                        LIMIT 1) AS c
   WHERE w.max_in_flight = 0
      OR w.max_in_flight > )" FENCEPOST_IN_FLIGHT("w", "c")};

awaitable<std::vector<SignerKey>> signers_waiting(pg::Pool& pool, std::vector<Allotment> allotments) {
  const AllotmentColumns w(allotments);
  const auto rows = co_await pool.query(sql::kWaiting, w.chains, w.signers, w.windows);
  std::vector<SignerKey> out;
  for (const auto row : rows) out.push_back(read_key(row));
  co_return out;
}

}  // namespace fencepost::tx

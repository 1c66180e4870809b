#include "tx/store/create_store.hpp"

#include <map>

#include <boost/json/parse.hpp>

#include "base/error.hpp"
#include "pg/bytes.hpp"
#include "tx/store/fence.hpp"
#include "tx/store/read_row.hpp"
#include "tx/store/store_columns.hpp"

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

// Never ON CONFLICT: a nonce that is assigned and then not inserted would be a gap.
//
// Items refer to their signer by its position among the leases ($2 … $5), and to the first item with the same request
// by its position. New transactions are returned only as the numbers they got; the caller has the rest.
//
// Three constructs keep the cost proportional to the number of items, whatever the planner estimates.
// generate_subscripts makes it expect many items and join by hash. The CASE keeps it from multiplying the selectivities
// of the lease conditions. LATERAL … LIMIT 1 forces the index.
const Statement sql::kCreateBatch{"tx_create_batch", R"(
  WITH held AS MATERIALIZED (
    SELECT w.slot, w.chain_id, w.signer, w.token, c.next_nonce, c.next_creation, c.needs_reconcile,
           CASE WHEN c.next_nonce IS NULL THEN 0
                WHEN (SELECT true FROM managed_tx AS t  -- not EXISTS, which might read all of them into a hash
                       WHERE t.chain_id = w.chain_id AND t.signer = w.signer AND t.state = 'CREATED'
                       LIMIT 1) THEN 0
                WHEN w.max_in_flight = 0 THEN 2147483647
                ELSE w.max_in_flight - (SELECT count(*) FROM managed_tx AS t
                                         WHERE t.chain_id = w.chain_id AND t.signer = w.signer
                                           AND t.state IN ('ALLOCATED', 'TRACKING', 'STUCK')
                                           AND t.receipt_block IS NULL
                                           AND t.sub_state IS DISTINCT FROM 'external')
           END AS room
      FROM unnest($2::bigint[], $3::text[], $4::bigint[], $5::bigint[])
           WITH ORDINALITY AS w(chain_id, signer, token, max_in_flight, slot)
      JOIN signer_lease AS l USING (chain_id, signer)
      JOIN signer_nonce_cursor AS c USING (chain_id, signer)
     WHERE CASE WHEN l.owner_node = $1 AND l.fencing_token = w.token AND l.expires_at > clock_timestamp() THEN true END
  ),
  item AS MATERIALIZED (
    SELECT i.*, h.chain_id, h.signer, h.token, h.next_nonce, h.next_creation, h.needs_reconcile, h.room,
           known.tx_id AS known_id
      FROM ROWS FROM (unnest($6::bigint[], $7::bigint[], $8::uuid[], $9::text[], $10::text[], $11::bytea[],
                             $12::bigint[]),
                      generate_subscripts($6::bigint[], 1))
           AS i(slot, first_ord, tx_id, request_id, payload, payload_hash, gas_limit, ord)
      LEFT JOIN held AS h USING (slot)
      LEFT JOIN LATERAL (SELECT t.tx_id
                           FROM managed_tx AS t
                          WHERE t.chain_id = h.chain_id AND t.signer = h.signer AND t.request_id = i.request_id
                          LIMIT 1) AS known ON true
  ),
  fresh AS MATERIALIZED (
    SELECT f.*,
           next_creation + place AS creation_seq,
           CASE WHEN place < room THEN next_nonce + place END AS nonce,
           CASE WHEN place < room THEN 'ALLOCATED' ELSE 'CREATED' END AS state,
           clock_timestamp() AS at
      FROM (SELECT i.*, row_number() OVER (PARTITION BY i.slot ORDER BY i.ord) - 1 AS place
              FROM item AS i
             WHERE i.token IS NOT NULL
               AND i.known_id IS NULL
               AND i.ord = i.first_ord
               AND NOT i.needs_reconcile) AS f
  ),
  inserted AS (
    INSERT INTO managed_tx (tx_id, chain_id, signer, request_id, creation_seq, nonce, payload, payload_hash, gas_limit,
                            state, next_resubmit_at, fencing_token, created_at, updated_at)
    SELECT tx_id, chain_id, signer, request_id, creation_seq, nonce, payload::jsonb, payload_hash, gas_limit,
           state, CASE WHEN nonce IS NOT NULL THEN at END, token, at, at
      FROM fresh
     ORDER BY slot, place
  ),
  moved AS (
    UPDATE signer_nonce_cursor AS c
       SET next_nonce = c.next_nonce + n.numbered,
           next_creation = c.next_creation + n.made,
           fencing_token = n.token,
           updated_at = clock_timestamp()
      FROM (SELECT chain_id, signer, token, count(*) AS made, count(nonce) AS numbered
              FROM fresh
             GROUP BY chain_id, signer, token) AS n
     WHERE c.chain_id = n.chain_id
       AND c.signer = n.signer
  ),
  written AS (
    INSERT INTO step_history (subject_id, at, to_state, node, fencing_token, why)
    SELECT tx_id, at, state, $1, token, 'accepted'
      FROM fresh
     ORDER BY slot, place
  ),
  told AS (
    INSERT INTO outbox_event (type, subject, data, created_at)
    SELECT 'TxAccepted', 'tx/' || tx_id,
           jsonb_build_object('txId', tx_id, 'chainId', chain_id, 'signer', signer, 'requestId', request_id,
                              'nonce', nonce),
           at
      FROM fresh
     ORDER BY slot, place
  )
  SELECT CASE WHEN i.token IS NULL THEN 'fenced'
              WHEN i.known_id IS NOT NULL AND t.payload_hash = i.payload_hash THEN 'existing'
              WHEN i.known_id IS NOT NULL THEN 'conflict'
              WHEN f.ord IS NULL THEN 'reconcile'
              WHEN i.ord = i.first_ord THEN 'created'
              WHEN f.payload_hash = i.payload_hash THEN 'existing'
              ELSE 'conflict'
         END AS outcome,
         f.creation_seq AS new_creation_seq, f.nonce AS new_nonce, f.token AS new_token, f.at AS new_at,
         )" FENCEPOST_TX_COLUMNS("t") R"(
    FROM item AS i
    LEFT JOIN fresh AS f ON f.ord = i.first_ord
    LEFT JOIN LATERAL (SELECT * FROM managed_tx AS t WHERE t.tx_id = i.known_id LIMIT 1) AS t ON true
   ORDER BY i.ord)"};

pg::Batch create_statements(const std::string& node, const std::vector<Allotment>& allotments,
                            const std::vector<NewTx>& items) {
  const AllotmentColumns w(allotments);
  auto batch = fence_cursors(node, w);
  batch.add_params(sql::kCreateBatch, create_params(node, w, allotments, items));
  return batch;
}

awaitable<std::vector<CreateResult>> create_batch(pg::Pool& pool, std::string node, std::vector<Allotment> allotments,
                                                  std::vector<NewTx> items) {
  const auto rows = co_await run_fenced(pool, create_statements(node, allotments, items));
  const auto first = first_places(items);
  std::vector<CreateResult> out;
  out.reserve(items.size());
  if (static_cast<std::size_t>(rows.size()) != items.size()) {
    throw Exception(internal("create_mismatch", "the create batch returned fewer or more results than it had items"));
  }
  for (const auto row : rows) {
    CreateResult result{.outcome = create_outcome(row.get<std::string_view>("outcome")), .tx = std::nullopt};
    if (!row.is_null("tx_id")) {
      result.tx = read_managed_tx(row);
    } else if (!row.is_null("new_at")) {
      result.tx = new_managed_tx(items[static_cast<std::size_t>(first[out.size()]) - 1], row);
    }
    out.push_back(std::move(result));
  }
  co_return out;
}

const Statement sql::kPromote{"tx_promote", R"(
  WITH held AS MATERIALIZED (
    SELECT w.chain_id, w.signer, w.token, c.next_nonce,
           CASE WHEN w.max_in_flight = 0 THEN 1000
                ELSE least(1000, w.max_in_flight - (SELECT count(*) FROM managed_tx AS t
                                                     WHERE t.chain_id = w.chain_id AND t.signer = w.signer
                                                       AND t.state IN ('ALLOCATED', 'TRACKING', 'STUCK')
                                                       AND t.receipt_block IS NULL
                                                       AND t.sub_state IS DISTINCT FROM 'external'))
           END AS room
      FROM unnest($2::bigint[], $3::text[], $4::bigint[], $5::bigint[]) AS w(chain_id, signer, token, max_in_flight)
      JOIN signer_lease AS l USING (chain_id, signer)
      JOIN signer_nonce_cursor AS c USING (chain_id, signer)
     WHERE l.owner_node = $1
       AND l.fencing_token = w.token
       AND l.expires_at > clock_timestamp()
       AND c.next_nonce IS NOT NULL
       AND NOT c.needs_reconcile
  ),
  chosen AS MATERIALIZED (
    SELECT h.chain_id, h.signer, h.token, t.tx_id, h.next_nonce + t.place AS nonce
      FROM held AS h
     CROSS JOIN LATERAL (
             SELECT first.tx_id, row_number() OVER (ORDER BY first.creation_seq) - 1 AS place
               FROM (SELECT t.tx_id, t.creation_seq
                       FROM managed_tx AS t
                      WHERE t.chain_id = h.chain_id AND t.signer = h.signer AND t.state = 'CREATED'
                      ORDER BY t.creation_seq
                      LIMIT greatest(h.room, 0)) AS first) AS t
  ),
  numbered AS (
    UPDATE managed_tx AS t
       SET nonce = chosen.nonce,
           state = 'ALLOCATED',
           next_resubmit_at = clock_timestamp(),
           fencing_token = chosen.token,
           updated_at = clock_timestamp()
      FROM chosen
     WHERE t.tx_id = chosen.tx_id
       AND t.state = 'CREATED'
    RETURNING t.tx_id, t.chain_id, t.signer, t.nonce, t.fencing_token
  ),
  moved AS (
    UPDATE signer_nonce_cursor AS c
       SET next_nonce = n.last_nonce + 1,
           fencing_token = n.token,
           updated_at = clock_timestamp()
      FROM (SELECT chain_id, signer, token, max(nonce) AS last_nonce FROM chosen GROUP BY chain_id, signer, token) AS n
     WHERE c.chain_id = n.chain_id
       AND c.signer = n.signer
  ),
  written AS (
    INSERT INTO step_history (subject_id, from_state, to_state, node, fencing_token, why)
    SELECT tx_id, 'CREATED', 'ALLOCATED', $1, fencing_token, 'window open'
      FROM numbered
  ),
  told AS (
    INSERT INTO outbox_event (type, subject, data)
    SELECT 'TxAllocated', 'tx/' || tx_id,
           jsonb_build_object('txId', tx_id, 'chainId', chain_id, 'signer', signer, 'nonce', nonce)
      FROM numbered
     ORDER BY chain_id, signer, nonce
  )
  SELECT chain_id, signer, tx_id, nonce
    FROM numbered
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
  for (const auto row : rows) out.push_back({read_key(row), row.get<Uuid>("tx_id"), row.get<std::int64_t>("nonce")});
  co_return out;
}

// Takes no lock, so the answer is only a hint; promotion counts again. Uses LIMIT 1 because the planner may turn EXISTS
// into a join of all signers with all waiting transactions.
const Statement sql::kWaiting{"tx_signers_waiting", R"(
  SELECT w.chain_id, w.signer
    FROM unnest($1::bigint[], $2::text[], $3::bigint[]) AS w(chain_id, signer, max_in_flight)
   WHERE (SELECT true FROM managed_tx AS t
           WHERE t.chain_id = w.chain_id AND t.signer = w.signer AND t.state = 'CREATED'
           LIMIT 1)
     AND (w.max_in_flight = 0
          OR w.max_in_flight > (SELECT count(*)
                                  FROM (SELECT FROM managed_tx AS t
                                         WHERE t.chain_id = w.chain_id AND t.signer = w.signer
                                           AND t.state IN ('ALLOCATED', 'TRACKING', 'STUCK')
                                           AND t.receipt_block IS NULL
                                           AND t.sub_state IS DISTINCT FROM 'external'
                                         LIMIT w.max_in_flight) AS in_flight)))"};

awaitable<std::vector<SignerKey>> signers_waiting(pg::Pool& pool, std::vector<Allotment> allotments) {
  const AllotmentColumns w(allotments);
  const auto rows = co_await pool.query(sql::kWaiting, w.chains, w.signers, w.windows);
  std::vector<SignerKey> out;
  for (const auto row : rows) out.push_back(read_key(row));
  co_return out;
}

}  // namespace fencepost::tx

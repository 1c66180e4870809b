#include "tx/create_store.hpp"

#include <cstring>

#include "base/error.hpp"
#include "tx/lease_store.hpp"
#include "tx/store_columns.hpp"

namespace fencepost::tx {

using pg::Statement;

namespace sql {

// By owner and token only. Both can no longer become ours while the lease is locked, but an expired lease can be
// renewed by its owner at any moment: asking for the expiry here and again below could skip a cursor and then use it.
const Statement kLockCursors{"tx_cursor_lock", R"(
  SELECT c.signer
    FROM signer_nonce_cursor AS c
    JOIN signer_lease AS l USING (chain_id, signer)
    JOIN unnest($2::bigint[], $3::text[], $4::bigint[]) AS w(chain_id, signer, token)
      ON w.chain_id = l.chain_id AND w.signer = l.signer AND w.token = l.fencing_token
   WHERE l.owner_node = $1
   ORDER BY c.chain_id, c.signer
     FOR UPDATE OF c)"};

// Never ON CONFLICT: a nonce that is numbered and then not inserted would be a hole.
const Statement kCreateBatch{"tx_create_batch", R"(
  WITH item AS MATERIALIZED (
    SELECT i.*,
           CASE WHEN i.request_id IS NULL THEN i.ord
                ELSE min(i.ord) OVER (PARTITION BY i.chain_id, i.signer, i.request_id)
           END AS first_ord  -- the one that counts, of several with one request id in this batch
      FROM unnest($6::bigint[], $7::text[], $8::uuid[], $9::text[], $10::text[], $11::bytea[], $12::bigint[])
           WITH ORDINALITY AS i(chain_id, signer, tx_id, request_id, payload, payload_hash, gas_limit, ord)
  ),
  held AS MATERIALIZED (
    SELECT w.chain_id, w.signer, w.token, c.next_nonce, c.next_creation, c.needs_reconcile,
           CASE WHEN c.next_nonce IS NULL THEN 0
                WHEN (SELECT true FROM managed_tx AS t  -- not EXISTS, which might read all of them into a hash
                       WHERE t.chain_id = w.chain_id AND t.signer = w.signer AND t.state = 'CREATED'
                       LIMIT 1) THEN 0
                WHEN w.max_in_flight = 0 THEN 2147483647
                ELSE w.max_in_flight - (SELECT count(*) FROM managed_tx AS t
                                         WHERE t.chain_id = w.chain_id AND t.signer = w.signer
                                           AND t.state IN ('ALLOCATED', 'TRACKING', 'STUCK')
                                           AND t.receipt_block IS NULL)
           END AS room
      FROM unnest($2::bigint[], $3::text[], $4::bigint[], $5::bigint[]) AS w(chain_id, signer, token, max_in_flight)
      JOIN signer_lease AS l USING (chain_id, signer)
      JOIN signer_nonce_cursor AS c USING (chain_id, signer)
     WHERE l.owner_node = $1
       AND l.fencing_token = w.token
       AND l.expires_at > clock_timestamp()
  ),
  existing AS MATERIALIZED (
    SELECT i.ord, t.*
      FROM item AS i
      JOIN held AS h USING (chain_id, signer)
      JOIN managed_tx AS t ON t.chain_id = i.chain_id AND t.signer = i.signer AND t.request_id = i.request_id
     WHERE i.ord = i.first_ord
  ),
  fresh AS MATERIALIZED (
    SELECT i.*, h.token, h.next_nonce, h.next_creation, h.room,
           row_number() OVER (PARTITION BY i.chain_id, i.signer ORDER BY i.ord) - 1 AS place
      FROM item AS i
      JOIN held AS h USING (chain_id, signer)
     WHERE i.ord = i.first_ord
       AND NOT h.needs_reconcile
       AND NOT EXISTS (SELECT FROM existing AS e WHERE e.ord = i.ord)
  ),
  inserted AS (
    INSERT INTO managed_tx AS t
           (tx_id, chain_id, signer, request_id, creation_seq, nonce, payload, payload_hash, gas_limit, state,
            next_resubmit_at, fencing_token)
    SELECT tx_id, chain_id, signer, request_id, next_creation + place,
           CASE WHEN place < room THEN next_nonce + place END,
           payload::jsonb, payload_hash, gas_limit,
           CASE WHEN place < room THEN 'ALLOCATED' ELSE 'CREATED' END,
           CASE WHEN place < room THEN clock_timestamp() END,
           token
      FROM fresh
     ORDER BY chain_id, signer, place
    RETURNING t.*
  ),
  moved AS (
    UPDATE signer_nonce_cursor AS c
       SET next_nonce = c.next_nonce + n.numbered,
           next_creation = c.next_creation + n.made,
           fencing_token = n.token,
           updated_at = clock_timestamp()
      FROM (SELECT chain_id, signer, token, count(*) AS made, count(*) FILTER (WHERE place < room) AS numbered
              FROM fresh
             GROUP BY chain_id, signer, token) AS n
     WHERE c.chain_id = n.chain_id
       AND c.signer = n.signer
  ),
  written AS (
    INSERT INTO step_history (subject_id, to_state, node, fencing_token, why)
    SELECT tx_id, state, $1, fencing_token, 'accepted'
      FROM inserted
  ),
  told AS (
    INSERT INTO outbox_event (type, subject, data)
    SELECT 'TxAccepted', 'tx/' || tx_id,
           jsonb_build_object('txId', tx_id, 'chainId', chain_id, 'signer', signer, 'requestId', request_id,
                              'nonce', nonce)
      FROM inserted
     ORDER BY chain_id, signer, creation_seq
  ),
  answer AS (
    SELECT e.ord, false AS is_new, )" FENCEPOST_TX_COLUMNS("e") R"(, e.payload_hash
      FROM existing AS e
     UNION ALL
    SELECT f.ord, true, )" FENCEPOST_TX_COLUMNS("n") R"(, n.payload_hash
      FROM inserted AS n
      JOIN fresh AS f USING (tx_id)
  )
  SELECT CASE WHEN h.signer IS NULL THEN 'fenced'
              WHEN t.ord IS NULL THEN 'reconcile'
              WHEN t.is_new AND i.ord = i.first_ord THEN 'created'
              WHEN t.payload_hash = i.payload_hash THEN 'existing'
              ELSE 'conflict'
         END AS outcome,
         )" FENCEPOST_TX_COLUMNS("t") R"(
    FROM item AS i
    LEFT JOIN held AS h ON h.chain_id = i.chain_id AND h.signer = i.signer
    LEFT JOIN answer AS t ON t.ord = i.first_ord
   ORDER BY i.ord)"};

const Statement kPromote{"tx_promote", R"(
  WITH held AS MATERIALIZED (
    SELECT w.chain_id, w.signer, w.token, c.next_nonce,
           CASE WHEN w.max_in_flight = 0 THEN 1000
                ELSE least(1000, w.max_in_flight - (SELECT count(*) FROM managed_tx AS t
                                                     WHERE t.chain_id = w.chain_id AND t.signer = w.signer
                                                       AND t.state IN ('ALLOCATED', 'TRACKING', 'STUCK')
                                                       AND t.receipt_block IS NULL))
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
  SELECT chain_id, signer, count(*) AS promoted
    FROM numbered
   GROUP BY chain_id, signer)"};

}  // namespace sql

namespace {

constexpr Statement kWaiting{"tx_signers_waiting", R"(
  SELECT w.chain_id, w.signer
    FROM unnest($1::bigint[], $2::text[]) AS w(chain_id, signer)
   WHERE EXISTS (SELECT FROM managed_tx AS t
                  WHERE t.chain_id = w.chain_id AND t.signer = w.signer AND t.state = 'CREATED'))"};

CreateOutcome outcome_of(std::string_view text) {
  if (text == "created") return CreateOutcome::kCreated;
  if (text == "existing") return CreateOutcome::kExisting;
  if (text == "conflict") return CreateOutcome::kConflict;
  if (text == "reconcile") return CreateOutcome::kNeedsReconcile;
  return CreateOutcome::kFenced;
}

pg::Bytes to_bytes(std::string_view raw) {
  pg::Bytes bytes(raw.size());
  std::memcpy(bytes.data(), raw.data(), raw.size());
  return bytes;
}

struct AllotmentColumns {
  std::vector<std::int64_t> chains;
  std::vector<std::string> signers;
  std::vector<std::int64_t> tokens;
  std::vector<std::int64_t> windows;

  explicit AllotmentColumns(const std::vector<Allotment>& allotments) {
    for (const auto& a : allotments) {
      chains.push_back(a.lease.key.chain_id);
      signers.push_back(a.lease.key.signer);
      tokens.push_back(a.lease.fencing_token);
      windows.push_back(a.max_in_flight);
    }
  }
};

pg::Params create_params(const std::string& node, const AllotmentColumns& w, const std::vector<NewTx>& items) {
  std::vector<std::int64_t> chains, gas;
  std::vector<std::string_view> signers, payloads;
  std::vector<Uuid> ids;
  std::vector<std::optional<std::string>> requests;
  std::vector<pg::Bytes> hashes;
  for (const auto& item : items) {
    chains.push_back(item.key.chain_id);
    signers.emplace_back(item.key.signer);
    ids.push_back(item.tx_id);
    requests.push_back(item.request_id);
    payloads.emplace_back(item.payload);
    hashes.push_back(to_bytes(item.payload_hash));
    gas.push_back(item.gas_limit);
  }
  return pg::Params::of(node, w.chains, w.signers, w.tokens, w.windows, chains, signers, ids, requests, payloads,
                        hashes, gas);
}

}  // namespace

pg::Batch create_statements(const std::string& node, const std::vector<Allotment>& allotments,
                            const std::vector<NewTx>& items) {
  const AllotmentColumns w(allotments);
  pg::Batch batch;
  batch.add(sql::kLockLeases, w.chains, w.signers).add(sql::kLockCursors, node, w.chains, w.signers, w.tokens);
  batch.add_params(sql::kCreateBatch, create_params(node, w, items));
  return batch;
}

awaitable<std::vector<CreateResult>> create_batch(pg::Pool& pool, std::string node, std::vector<Allotment> allotments,
                                                  std::vector<NewTx> items) {
  const auto batch = create_statements(node, allotments, items);
  const auto connection = co_await pool.acquire();
  const auto results = co_await connection->run(batch);
  std::vector<CreateResult> out;
  out.reserve(items.size());
  for (const auto row : results.back()) {
    CreateResult result{.outcome = outcome_of(row.get<std::string_view>("outcome")), .tx = std::nullopt};
    if (!row.is_null("tx_id")) result.tx = read_managed_tx(row);
    out.push_back(std::move(result));
  }
  if (out.size() != items.size()) throw Exception(internal("create_mismatch", "the create batch lost an item"));
  co_return out;
}

pg::Batch promote_statements(const std::string& node, const std::vector<Allotment>& allotments) {
  const AllotmentColumns w(allotments);
  pg::Batch batch;
  batch.add(sql::kLockLeases, w.chains, w.signers)
      .add(sql::kLockCursors, node, w.chains, w.signers, w.tokens)
      .add(sql::kPromote, node, w.chains, w.signers, w.tokens, w.windows);
  return batch;
}

awaitable<std::vector<Promotion>> promote(pg::Pool& pool, std::string node, std::vector<Allotment> allotments) {
  const auto batch = promote_statements(node, allotments);
  const auto connection = co_await pool.acquire();
  const auto results = co_await connection->run(batch);
  std::vector<Promotion> out;
  for (const auto row : results.back()) {
    out.push_back(
        {{row.get<std::int64_t>("chain_id"), row.get<std::string>("signer")}, row.get<std::int64_t>("promoted")});
  }
  co_return out;
}

awaitable<std::vector<SignerKey>> signers_waiting(pg::Pool& pool, std::vector<SignerLease> leases) {
  std::vector<std::int64_t> chains;
  std::vector<std::string> signers;
  for (const auto& lease : leases) {
    chains.push_back(lease.key.chain_id);
    signers.push_back(lease.key.signer);
  }
  const auto rows = co_await pool.query(kWaiting, chains, signers);
  std::vector<SignerKey> out;
  for (const auto row : rows) out.push_back({row.get<std::int64_t>("chain_id"), row.get<std::string>("signer")});
  co_return out;
}

}  // namespace fencepost::tx

#include "tx/store/operator_store.hpp"

#include "pg/bytes.hpp"
#include "tx/store/operator_write.hpp"
#include "tx/store/sql_parts.hpp"

namespace fencepost::tx {

using pg::Statement;

// `unsent` is what a step from STUCK to ALLOCATED requires (Step::expect_unsent).
constexpr Statement kRebroadcast{"tx_operator_rebroadcast", R"(
  WITH )" FENCEPOST_HELD R"(,
  chosen AS MATERIALIZED (
    SELECT t.ctid AS row_id, coalesce(a.tx_hash, t.tx_hash) AS tx_hash,
           )" FENCEPOST_MAY_BE_SIGNED_ANEW("t") R"( AS unsent
      FROM tx_open AS t
     CROSS JOIN held
      LEFT JOIN LATERAL (SELECT a.tx_hash
                           FROM tx_attempt AS a
                          WHERE a.tx_id = t.tx_id AND a.raw IS NOT NULL
                          ORDER BY (a.tx_hash = t.tx_hash) DESC, a.attempt DESC
                          LIMIT 1) AS a ON true
     WHERE t.tx_id = $5::uuid
       AND t.state = $10
       AND t.receipt_block IS NULL
       AND (t.state = 'ALLOCATED' OR a.tx_hash IS NOT NULL)
  ),
  done AS (
    UPDATE tx_open AS t
       SET state = CASE WHEN $10 <> 'STUCK' THEN t.state WHEN c.unsent THEN 'ALLOCATED' ELSE 'TRACKING' END,
           sub_state = CASE WHEN $10 = 'STUCK' OR t.tx_hash <> c.tx_hash THEN NULL ELSE t.sub_state END,
           tx_hash = c.tx_hash,
           next_resubmit_at = clock_timestamp(),
           watched_since = CASE WHEN $10 = 'STUCK' THEN clock_timestamp() ELSE t.watched_since END,
           fencing_token = $4,
           updated_at = clock_timestamp()
      FROM chosen AS c
     WHERE t.ctid = c.row_id
    RETURNING t.tx_id, t.chain_id, t.signer, t.nonce, $10::text AS from_state, t.state, t.sub_state
  ),
  )" FENCEPOST_HISTORY("done") "," FENCEPOST_AUDIT("done") FENCEPOST_OUTCOME("done")};

awaitable<StepOutcome> rebroadcast_now(pg::Pool& pool, std::string node, OperatorAct act, TxState from) {
  auto params = params_of(node, act);
  params.add(kManagedTx.name(from));
  co_return co_await write_row(pool, node, act, kRebroadcast, std::move(params));
}

// A hash that was found at the nonce and taken for another sender's becomes ours, because the operator says so.
constexpr Statement kRecord{"tx_operator_record", R"(
  WITH )" FENCEPOST_HELD R"(,
  done AS (
    UPDATE tx_open AS t
       SET state = 'TRACKING',
           sub_state = 'recorded',
           tx_hash = $11,
           last_receipt_check = NULL,
           first_submitted_at = clock_timestamp(),
           next_resubmit_at = NULL,
           fencing_token = $4,
           updated_at = clock_timestamp()
      FROM held
     WHERE t.tx_id = $5::uuid
       AND t.state = $10
       AND t.receipt_block IS NULL
       AND NOT EXISTS (SELECT
                         FROM tx_attempt AS a
                        WHERE a.chain_id = $2
                          AND a.tx_hash = $11
                          AND (a.tx_id <> $5::uuid OR a.kind <> 'external'))
    RETURNING t.tx_id, t.chain_id, t.signer, t.nonce, $10::text AS from_state, t.state, t.sub_state
  ),
  attempt AS (
    INSERT INTO tx_attempt (chain_id, tx_hash, tx_id, attempt, kind, outcome, fencing_token)
    SELECT d.chain_id, $11, d.tx_id,
           1 + coalesce((SELECT max(a.attempt) FROM tx_attempt AS a WHERE a.tx_id = d.tx_id), 0),
           'recorded', 'unknown', $4
      FROM done AS d
        ON CONFLICT (chain_id, tx_hash) DO UPDATE
           SET attempt = excluded.attempt,
               kind = excluded.kind,
               outcome = excluded.outcome,
               fencing_token = excluded.fencing_token
  ),
  )" FENCEPOST_HISTORY("done") "," FENCEPOST_AUDIT("done") FENCEPOST_OUTCOME("done")};

awaitable<StepOutcome> record_attempt(pg::Pool& pool, std::string node, OperatorAct act, TxState from,
                                      std::string tx_hash) {
  auto params = params_of(node, act);
  params.add(kManagedTx.name(from)).add(tx_hash);
  co_return co_await write_row(pool, node, act, kRecord, std::move(params));
}

constexpr Statement kCancel{"tx_operator_cancel", R"(
  WITH )" FENCEPOST_HELD R"(,
  done AS (
    UPDATE tx_open AS t
       SET state = 'TRACKING',
           sub_state = 'cancelling',
           tx_hash = $12,
           first_submitted_at = clock_timestamp(),
           last_submit_at = clock_timestamp(),
           next_resubmit_at = clock_timestamp(),
           fencing_token = $4,
           updated_at = clock_timestamp()
      FROM held
     WHERE t.tx_id = $5::uuid
       AND t.state = $10
       AND t.tx_hash IS NOT DISTINCT FROM $11
       AND t.receipt_block IS NULL
    RETURNING t.tx_id, t.chain_id, t.signer, t.nonce, $10::text AS from_state, t.state, t.sub_state
  ),
  attempt AS (
    INSERT INTO tx_attempt (chain_id, tx_hash, tx_id, attempt, kind, raw, fees, fencing_token)
    SELECT d.chain_id, $12, d.tx_id,
           1 + coalesce((SELECT max(a.attempt) FROM tx_attempt AS a WHERE a.tx_id = d.tx_id), 0),
           'cancel', $13::bytea, $14::jsonb, $4
      FROM done AS d
        ON CONFLICT (chain_id, tx_hash) DO UPDATE  -- of a transaction that had this nonce before a reset
           SET tx_id = excluded.tx_id,
               attempt = excluded.attempt,
               kind = excluded.kind,
               raw = excluded.raw,
               fees = excluded.fees,
               outcome = NULL,
               fencing_token = excluded.fencing_token
  ),
  )" FENCEPOST_HISTORY("done") "," FENCEPOST_AUDIT("done") FENCEPOST_OUTCOME("done")};

awaitable<StepOutcome> store_cancel(pg::Pool& pool, std::string node, OperatorAct act, Claim cancel) {
  auto params = params_of(node, act);
  params.add(kManagedTx.name(cancel.from))
      .add(cancel.previous_hash)
      .add(cancel.tx_hash)
      .add(pg::to_bytes(cancel.raw))
      .add(cancel.fees);
  co_return co_await write_row(pool, node, act, kCancel, std::move(params));
}

constexpr Statement kFill{"tx_operator_fill", R"(
  WITH )" FENCEPOST_HELD R"(,
  place AS MATERIALIZED (
    SELECT c.chain_id, c.signer, c.next_creation
      FROM signer_nonce_cursor AS c, held
     WHERE c.chain_id = $2
       AND c.signer = $3
       AND c.next_nonce > $10
       AND NOT EXISTS (SELECT FROM managed_tx AS t WHERE t.chain_id = $2 AND t.signer = $3 AND t.nonce = $10)
  ),
  moved AS (
    UPDATE signer_nonce_cursor AS c
       SET next_creation = c.next_creation + 1,
           first_waiting = c.first_waiting + CASE WHEN c.first_waiting = c.next_creation THEN 1 ELSE 0 END,
           first_unmined = least(c.first_unmined, $10),
           updated_at = clock_timestamp()
      FROM place AS p
     WHERE c.chain_id = p.chain_id AND c.signer = p.signer
  ),
  done AS (
    INSERT INTO tx_open (chain_id, signer, nonce, tx_id, state, sub_state, next_resubmit_at, fencing_token)
    SELECT p.chain_id, p.signer, $10, $5::uuid, 'ALLOCATED', 'gap_fill', clock_timestamp(), $4
      FROM place AS p
    RETURNING tx_id, chain_id, signer, nonce, state, sub_state
  ),
  recorded AS (
    INSERT INTO managed_tx (tx_id, chain_id, signer, request_id, creation_seq, nonce, payload, payload_hash, gas_limit)
    SELECT $5::uuid, p.chain_id, p.signer, NULL, p.next_creation, $10, $11::jsonb, $12, $13
      FROM place AS p
  ),
  logged AS (
    INSERT INTO event (subject, type, to_state, sub_state, node, fencing_token, why, data)
    SELECT 'tx/' || tx_id, 'TxAccepted', state, sub_state, $1, $4, )" FENCEPOST_WHY R"(,
           jsonb_build_object('txId', tx_id, 'chainId', chain_id, 'signer', signer, 'requestId', NULL, 'nonce', nonce)
      FROM done
  ),
  )" FENCEPOST_AUDIT("done") FENCEPOST_OUTCOME("done")};

awaitable<StepOutcome> fill_gap(pg::Pool& pool, std::string node, OperatorAct act, GapFill fill) {
  act.tx_id = fill.tx_id;
  auto params = params_of(node, act);
  params.add(fill.nonce).add(fill.payload).add(pg::to_bytes(fill.payload_hash)).add(fill.gas_limit);
  const auto rows = co_await write_cursor(pool, node, act, kFill, std::move(params));
  co_return read_outcome(rows.one());
}

constexpr Statement kAccept{"tx_operator_accept", R"(
  WITH )" FENCEPOST_HELD R"(,
  done AS (
    UPDATE signer_nonce_cursor AS c
       SET next_nonce = greatest(c.next_nonce, $10),
           needs_reconcile = false,
           reconcile_reason = NULL,
           gap_nonce = NULL,
           chain_nonce = $10,
           chain_nonce_at = clock_timestamp(),
           fencing_token = $4,
           updated_at = clock_timestamp()
      FROM held
     WHERE c.chain_id = $2
       AND c.signer = $3
       AND c.needs_reconcile
       AND c.gap_nonce IS NULL  -- the chain is ahead
    RETURNING c.next_nonce
  ),
  )" FENCEPOST_AUDIT("done") R"(
  SELECT CASE WHEN NOT EXISTS (SELECT FROM held) THEN 'fenced' WHEN NOT EXISTS (SELECT FROM done) THEN 'moved'
              ELSE 'done'
         END AS outcome,
         (SELECT next_nonce FROM done) AS next_nonce)"};

awaitable<Accepted> accept_chain_nonce(pg::Pool& pool, std::string node, OperatorAct act, std::int64_t chain_nonce) {
  auto params = params_of(node, act);
  params.add(chain_nonce);
  const auto rows = co_await write_cursor(pool, node, act, kAccept, std::move(params));
  const auto row = rows.one();
  co_return Accepted{.outcome = read_outcome(row),
                     .next_nonce = row.get<std::optional<std::int64_t>>("next_nonce").value_or(0)};
}

}  // namespace fencepost::tx

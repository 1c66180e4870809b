#include "tx/store/reopen_store.hpp"

#include "pg/bytes.hpp"
#include "tx/store/fence.hpp"
#include "tx/store/operator_write.hpp"
#include "tx/store/sql_parts.hpp"

namespace fencepost::tx {

using pg::Statement;

// A violation of finality is reported without the fence, so the row of the end has a lock of its own. Locks only where
// the lease is this node's, as kLockRows.
const Statement sql::kLockEnded{"tx_ended_lock", R"(
  SELECT e.tx_id
    FROM tx_ended AS e
   CROSS JOIN LATERAL (SELECT m.chain_id, m.signer FROM managed_tx AS m WHERE m.tx_id = e.tx_id LIMIT 1) AS m
   WHERE e.tx_id = $2
     AND $1 = (SELECT l.owner_node FROM signer_lease AS l WHERE l.chain_id = m.chain_id AND l.signer = m.signer)
     FOR UPDATE OF e)"};

const Statement sql::kReopen{"tx_operator_reopen", R"(
  WITH )" FENCEPOST_HELD R"(,
  chosen AS MATERIALIZED (
    SELECT e.ctid AS row_id, e.tx_id, e.last_submit_at, m.nonce, c.row_id AS cursor_row,
           coalesce($13, a.tx_hash) AS tx_hash, e.tx_hash AS ended_hash
      FROM tx_ended AS e
     CROSS JOIN held
     CROSS JOIN LATERAL (SELECT m.nonce
                           FROM managed_tx AS m
                          WHERE m.tx_id = e.tx_id AND m.chain_id = $2 AND m.signer = $3
                          LIMIT 1) AS m
     CROSS JOIN LATERAL (SELECT c.ctid AS row_id, c.next_nonce
                           FROM signer_nonce_cursor AS c
                          WHERE c.chain_id = $2 AND c.signer = $3
                          LIMIT 1) AS c
      LEFT JOIN LATERAL (SELECT a.tx_hash
                           FROM tx_attempt AS a
                          WHERE a.tx_id = e.tx_id AND a.raw IS NOT NULL
                          ORDER BY (a.tx_hash = e.tx_hash) DESC, a.attempt DESC
                          LIMIT 1) AS a ON true
     WHERE e.tx_id = $5::uuid
       AND e.state = $10
       AND m.nonce >= $11
       AND m.nonce < c.next_nonce
       AND (e.sub_state = 'finality_violated'
            OR e.receipt_hash = $12
            OR ($13 IS NOT NULL AND e.receipt_block IS NULL))
       AND ($13 IS NOT NULL OR a.tx_hash IS NOT NULL)
       AND NOT EXISTS (SELECT FROM tx_open AS o WHERE o.chain_id = $2 AND o.signer = $3 AND o.nonce = m.nonce)
  ),
  removed AS (
    DELETE FROM tx_ended
     WHERE ctid = ANY (ARRAY(SELECT row_id FROM chosen))
    RETURNING tx_id
  ),
  done AS (
    INSERT INTO tx_open (chain_id, signer, nonce, tx_id, state, sub_state, tx_hash, first_submitted_at, last_submit_at,
                         next_resubmit_at, receipt_changed_at, withdrawn, fencing_token)
    SELECT $2, $3, nonce, tx_id, 'TRACKING', CASE WHEN $13 IS NULL THEN 'reorged' ELSE 'cancelling' END, tx_hash,
           clock_timestamp(), last_submit_at, clock_timestamp(), clock_timestamp(), true, $4
      FROM chosen
    RETURNING tx_id, nonce, state, sub_state, tx_hash
  ),
  lowered AS (
    UPDATE signer_nonce_cursor AS c
       SET first_unmined = least(c.first_unmined, s.nonce),
           fencing_token = $4,
           updated_at = clock_timestamp()
      FROM chosen AS s
     WHERE c.ctid = s.cursor_row
    RETURNING c.signer
  ),
  attempt AS (
    INSERT INTO tx_attempt (chain_id, tx_hash, tx_id, attempt, kind, raw, fees, fencing_token)
    SELECT $2, $13, s.tx_id, 1 + coalesce((SELECT max(a.attempt) FROM tx_attempt AS a WHERE a.tx_id = s.tx_id), 0),
           'cancel', $14::bytea, $15::jsonb, $4
      FROM chosen AS s
     WHERE $13 IS NOT NULL
        ON CONFLICT (chain_id, tx_hash) DO UPDATE  -- of a transaction that had this nonce before a reset
           SET tx_id = excluded.tx_id,
               attempt = excluded.attempt,
               kind = excluded.kind,
               raw = excluded.raw,
               fees = excluded.fees,
               outcome = NULL,
               message = NULL,
               fencing_token = excluded.fencing_token
  ),
  forgotten AS (  -- why it reverted in the block that is gone
    UPDATE tx_attempt AS a
       SET message = NULL
      FROM chosen AS s
     WHERE a.chain_id = $2
       AND a.tx_hash = s.ended_hash
       AND a.tx_hash IS DISTINCT FROM $13
       AND a.message IS NOT NULL
  ),
  dropped AS (
    DELETE FROM tx_receipt
     WHERE tx_id = ANY (ARRAY(SELECT tx_id FROM chosen))
  ),
  logged AS (
    INSERT INTO event (subject, type, from_state, to_state, sub_state, node, fencing_token, why, data)
    SELECT 'tx/' || tx_id, 'TxReopened', $10, state, sub_state, $1, $4, )" FENCEPOST_WHY R"(,
           jsonb_build_object('txId', tx_id, 'chainId', $2, 'signer', $3, 'nonce', nonce, 'txHash', tx_hash,
                              'reason', sub_state)
      FROM done
  ),
  )" FENCEPOST_AUDIT("done") FENCEPOST_OUTCOME("done") R"(
   WHERE (SELECT tx_wrote_all((SELECT count(*) FROM chosen), (SELECT count(*) FROM removed)))
     AND (SELECT tx_wrote_all((SELECT count(*) FROM chosen), (SELECT count(*) FROM lowered))))"};

pg::Batch reopen_statements(const std::string& node, const OperatorAct& act, const Reopening& reopening) {
  auto batch = fence_cursors(node, FencedLeases({act.lease}));
  batch.add(sql::kLockEnded, node, *act.tx_id);
  auto params = params_of(node, act);
  params.add(kManagedTx.name(reopening.from)).add(reopening.proof.chain_count).add(reopening.proof.orphan_block);
  if (reopening.cancel) {
    params.add(reopening.cancel->tx_hash).add(pg::to_bytes(reopening.cancel->raw)).add(reopening.cancel->fees);
  } else {
    params.add(std::optional<std::string>()).add(std::optional<pg::Bytes>()).add(std::optional<std::string>());
  }
  batch.add_params(sql::kReopen, std::move(params));
  return batch;
}

awaitable<StepOutcome> reopen(pg::Pool& pool, std::string node, OperatorAct act, Reopening reopening) {
  if (!kManagedTx.reopens(reopening.from, TxState::kTracking)) {
    throw Exception(internal("forbidden_step", "only a transaction that has ended can be reopened"));
  }
  const auto rows = co_await run_or_refuse(pool, reopen_statements(node, act, reopening));
  co_return read_outcome(rows.one());
}

// first_waiting becomes exact, so that a create after this one gets its nonce at once if no other transaction waits.
const Statement sql::kCancelWaiting{"tx_operator_cancel_waiting", R"(
  WITH )" FENCEPOST_HELD R"(,
  chosen AS MATERIALIZED (
    SELECT m.ctid AS row_id, m.tx_id, c.row_id AS cursor_row,
           coalesce((SELECT w.creation_seq
                       FROM managed_tx AS w
                      WHERE w.chain_id = $2
                        AND w.signer = $3
                        AND )" FENCEPOST_WAITS("w") R"(
                        AND w.creation_seq >= c.first_waiting
                        AND w.tx_id <> m.tx_id
                      ORDER BY w.creation_seq
                      LIMIT 1), c.next_creation) AS first_waiting
      FROM held
     CROSS JOIN LATERAL (SELECT m.ctid, m.* FROM managed_tx AS m WHERE m.tx_id = $5::uuid LIMIT 1) AS m
     CROSS JOIN LATERAL (SELECT c.ctid AS row_id, c.first_waiting, c.next_creation
                           FROM signer_nonce_cursor AS c
                          WHERE c.chain_id = $2 AND c.signer = $3
                          LIMIT 1) AS c
     WHERE m.chain_id = $2
       AND m.signer = $3
       AND )" FENCEPOST_WAITS("m") R"(
  ),
  moved AS (
    UPDATE signer_nonce_cursor AS c
       SET first_waiting = s.first_waiting,
           fencing_token = $4,
           updated_at = clock_timestamp()
      FROM chosen AS s
     WHERE c.ctid = s.cursor_row
    RETURNING c.signer
  ),
  done AS (
    UPDATE managed_tx AS m
       SET ended_unnumbered = true
      FROM chosen AS s
     WHERE m.ctid = s.row_id
       AND )" FENCEPOST_WAITS("m") R"(
    RETURNING m.tx_id
  ),
  ended AS (
    INSERT INTO tx_ended (tx_id, chain_id, state, sub_state, retry_count, fencing_token)
    SELECT tx_id, $2, 'FAILED_FINAL', 'cancelled_by_operator', 0, $4
      FROM chosen
  ),
  logged AS (
    INSERT INTO event (subject, type, from_state, to_state, sub_state, node, fencing_token, why, data)
    SELECT 'tx/' || tx_id, 'TxFailed', 'CREATED', 'FAILED_FINAL', 'cancelled_by_operator', $1, $4, )" FENCEPOST_WHY R"(,
           jsonb_build_object('txId', tx_id, 'chainId', $2, 'signer', $3, 'nonce', NULL,
                              'reason', 'cancelled_by_operator',
                              'detail', 'cancelled before it had a nonce; it was never sent')
      FROM chosen
  ),
  )" FENCEPOST_AUDIT("done") FENCEPOST_OUTCOME("chosen") R"(
   WHERE (SELECT tx_wrote_all((SELECT count(*) FROM chosen), (SELECT count(*) FROM done)))
     AND (SELECT tx_wrote_all((SELECT count(*) FROM chosen), (SELECT count(*) FROM moved))))"};

pg::Batch cancel_waiting_statements(const std::string& node, const OperatorAct& act) {
  auto batch = fence_cursors(node, FencedLeases({act.lease}));
  batch.add_params(sql::kCancelWaiting, params_of(node, act));
  return batch;
}

awaitable<StepOutcome> cancel_waiting(pg::Pool& pool, std::string node, OperatorAct act) {
  const auto rows = co_await run_or_refuse(pool, cancel_waiting_statements(node, act));
  co_return read_outcome(rows.one());
}

}  // namespace fencepost::tx

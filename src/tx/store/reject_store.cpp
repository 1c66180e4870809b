#include "tx/store/reject_store.hpp"

#include "tx/store/sql_parts.hpp"

namespace fencepost::tx {

using pg::Statement;

// The sub state of a STUCK transaction is compared, because it says that the transaction was never broadcast with
// success: `no_receipt` and others follow a broadcast.
//
// A transaction that an operator put into a gap may have a place in line behind ones that wait, and would be promoted
// again: first_waiting excludes it.
const Statement sql::kReject{"tx_reject", R"(
  WITH step AS MATERIALIZED (
    SELECT s.*, t.ctid AS row_id, t.nonce, t.retry_count, t.tx_hash, t.first_submitted_at, t.last_submit_at,
           c.ctid AS cursor_row, m.ctid AS record_row,
           CASE WHEN )" FENCEPOST_HELD_BY_US("s") R"( IS NOT true THEN 'fenced'
                WHEN t.chain_id = s.chain_id
                 AND t.signer = s.signer
                 AND t.state = s.from_state
                 AND (s.from_state <> 'STUCK' OR t.sub_state = s.reason)
                 AND t.receipt_block IS NULL
                 AND t.announced_block IS NULL
                 AND NOT t.withdrawn
                 AND c.next_nonce = t.nonce + 1
                 AND NOT c.needs_reconcile
                 AND coalesce(c.chain_nonce, 0) <= t.nonce
                 AND m.creation_seq < c.first_waiting
                 AND )" FENCEPOST_UNSENT("t") R"(
                THEN 'done'
                ELSE 'moved'
           END AS outcome
      FROM (SELECT $2::bigint AS chain_id, $3::text AS signer, $4::bigint AS token, $5::uuid AS tx_id,
                   $6::text AS from_state, $7::text AS reason, $8::text AS message) AS s
      LEFT JOIN LATERAL )" FENCEPOST_LEASE_OF("s") R"( AS l ON true
      LEFT JOIN LATERAL (SELECT t.ctid, t.* FROM tx_open AS t WHERE t.tx_id = s.tx_id LIMIT 1) AS t ON true
      LEFT JOIN LATERAL (SELECT c.ctid, c.*
                           FROM signer_nonce_cursor AS c
                          WHERE c.chain_id = s.chain_id AND c.signer = s.signer
                          LIMIT 1) AS c ON true
      LEFT JOIN LATERAL (SELECT m.ctid, m.creation_seq FROM managed_tx AS m WHERE m.tx_id = s.tx_id LIMIT 1) AS m
             ON true
  ),
  moved AS (
    UPDATE signer_nonce_cursor AS c
       SET next_nonce = s.nonce,
           fencing_token = s.token,
           updated_at = clock_timestamp()
      FROM step AS s
     WHERE c.ctid = s.cursor_row
       AND s.outcome = 'done'
    RETURNING c.signer
  ),
  closed AS (
    DELETE FROM tx_open
     WHERE ctid = ANY (ARRAY(SELECT row_id FROM step WHERE outcome = 'done'))
    RETURNING tx_id
  ),
  recorded AS (
    UPDATE managed_tx AS m
       SET nonce = NULL,
           released_nonce = s.nonce
      FROM step AS s
     WHERE m.ctid = s.record_row
       AND m.nonce = s.nonce
       AND s.outcome = 'done'
    RETURNING m.tx_id
  ),
  ended AS (
    INSERT INTO tx_ended (tx_id, chain_id, state, sub_state, error_message, retry_count, tx_hash, first_submitted_at,
                          last_submit_at, fencing_token)
    SELECT tx_id, chain_id, 'FAILED_FINAL', 'rejected', reason || ': ' || message, retry_count, tx_hash,
           first_submitted_at, last_submit_at, token
      FROM step
     WHERE outcome = 'done'
  ),
  logged AS (
    INSERT INTO event (subject, type, from_state, to_state, sub_state, node, fencing_token, why, data)
    SELECT 'tx/' || tx_id, 'TxFailed', from_state, 'FAILED_FINAL', 'rejected', $1, token,
           'can never be sent, so nonce ' || nonce || ' was released: ' || message,
           jsonb_build_object('txId', tx_id, 'chainId', chain_id, 'signer', signer, 'nonce', NULL,
                              'reason', 'rejected', 'detail', reason || ': ' || message)
      FROM step
     WHERE outcome = 'done'
  )
  SELECT outcome
    FROM step
   WHERE (SELECT tx_wrote_all((SELECT count(*) FROM step WHERE outcome = 'done'), (SELECT count(*) FROM moved)))
     AND (SELECT tx_wrote_all((SELECT count(*) FROM step WHERE outcome = 'done'), (SELECT count(*) FROM closed)))
     AND (SELECT tx_wrote_all((SELECT count(*) FROM step WHERE outcome = 'done'), (SELECT count(*) FROM recorded))))"};

pg::Batch reject_statements(const std::string& node, const Rejection& rejection) {
  FencedRows rows;
  rows.add(rejection.lease, rejection.tx_id);
  auto batch = fence_cursors_and_rows(node, rows);
  batch.add(sql::kReject, node, rejection.lease.key.chain_id, rejection.lease.key.signer, rejection.lease.fencing_token,
            rejection.tx_id, kManagedTx.name(rejection.from), kSubStates.name(rejection.reason), rejection.message);
  return batch;
}

awaitable<StepOutcome> reject(pg::Pool& pool, std::string node, Rejection rejection) {
  const auto rows = co_await run_fenced(pool, reject_statements(node, rejection));
  co_return read_outcome(rows.one());
}

}  // namespace fencepost::tx

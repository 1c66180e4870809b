-- Why a signer waits for an operator. NULL while needs_reconcile is set: the chain is ahead of the cursor.
-- `gap_nonce` is the lowest nonce below the cursor that the chain does not count as used and that no open transaction has:
-- the signer's higher nonces can never be mined, and are not broadcast. Its transaction was undone, or there is none.
ALTER TABLE signer_nonce_cursor
  ADD COLUMN reconcile_reason text NULL CHECK (reconcile_reason IN ('chain_ahead', 'undone', 'gap')),
  ADD COLUMN gap_nonce bigint NULL CHECK (gap_nonce >= 0);

-- A transaction that an operator cancelled while it waited for a nonce has ended, and never had one.
ALTER TABLE managed_tx
  ADD COLUMN ended_unnumbered boolean NOT NULL DEFAULT false,
  ADD CONSTRAINT managed_tx_unnumbered_has_no_nonce
    CHECK (NOT ended_unnumbered OR (nonce IS NULL AND released_nonce IS NULL));

ALTER TABLE tx_ended
  ADD CONSTRAINT tx_ended_given_up_is_not_mined
    CHECK (sub_state IS DISTINCT FROM 'given_up' OR (state = 'FAILED_FINAL' AND receipt_block IS NULL));

-- What waits for a nonce, without what had one or has ended.
DROP INDEX idx_managed_tx_waiting;
CREATE INDEX idx_managed_tx_waiting ON managed_tx (chain_id, signer, creation_seq)
  WHERE nonce IS NULL AND released_nonce IS NULL AND NOT ended_unnumbered;

-- As before, but a record without a nonce is CREATED only if it has not ended.
CREATE OR REPLACE VIEW tx_view AS
SELECT m.tx_id, m.chain_id, m.signer, m.request_id, m.creation_seq, m.nonce, m.payload, m.payload_hash, m.gas_limit,
       CASE WHEN m.nonce IS NULL AND m.released_nonce IS NULL AND NOT m.ended_unnumbered THEN 'CREATED'
            ELSE coalesce(o.state, e.state)
       END AS state,
       coalesce(o.sub_state, e.sub_state) AS sub_state,
       coalesce(o.error_message, e.error_message) AS error_message,
       coalesce(o.retry_count, e.retry_count, 0) AS retry_count,
       coalesce(o.tx_hash, e.tx_hash) AS tx_hash,
       coalesce(o.first_submitted_at, e.first_submitted_at) AS first_submitted_at,
       coalesce(o.last_submit_at, e.last_submit_at) AS last_submit_at,
       o.next_resubmit_at,
       r.receipt,
       coalesce(o.receipt_block, e.receipt_block) AS receipt_block,
       coalesce(o.receipt_hash, e.receipt_hash) AS receipt_hash,
       coalesce(o.receipt_changed_at, e.receipt_changed_at) AS receipt_changed_at,
       o.announced_block,
       o.announced_hash,
       coalesce(o.withdrawn, false) AS withdrawn,
       e.confirmations,
       e.ended_at AS confirmed_at,
       coalesce(o.fencing_token, e.fencing_token) AS fencing_token,
       m.created_at,
       coalesce(o.updated_at, e.updated_at, m.created_at) AS updated_at,
       m.released_nonce,
       m.ended_unnumbered
  FROM managed_tx AS m
  LEFT JOIN LATERAL (SELECT * FROM tx_open AS o WHERE o.tx_id = m.tx_id LIMIT 1) AS o ON true
  LEFT JOIN LATERAL (SELECT * FROM tx_ended AS e WHERE e.tx_id = m.tx_id LIMIT 1) AS e ON true
  LEFT JOIN LATERAL (SELECT * FROM tx_receipt AS r WHERE r.tx_id = m.tx_id LIMIT 1) AS r ON true;

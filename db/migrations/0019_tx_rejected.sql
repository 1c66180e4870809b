-- A transaction that can never be sent, and that no endpoint has, ends without a nonce: the next transaction of its signer
-- gets that nonce. Its record then has no nonce, and `released_nonce` says which one it had.
ALTER TABLE managed_tx
  ADD COLUMN released_nonce bigint NULL CHECK (released_nonce >= 0),
  ADD CONSTRAINT managed_tx_released_has_no_nonce CHECK (nonce IS NULL OR released_nonce IS NULL);

ALTER TABLE tx_ended
  ADD CONSTRAINT tx_ended_rejected_was_never_mined
    CHECK (sub_state IS DISTINCT FROM 'rejected' OR (state = 'FAILED_FINAL' AND receipt_block IS NULL));

-- What waits for a nonce, without what had one.
DROP INDEX idx_managed_tx_waiting;
CREATE INDEX idx_managed_tx_waiting ON managed_tx (chain_id, signer, creation_seq)
  WHERE nonce IS NULL AND released_nonce IS NULL;

-- As before, but a record without a nonce is CREATED only if it never had one.
CREATE OR REPLACE VIEW tx_view AS
SELECT m.tx_id, m.chain_id, m.signer, m.request_id, m.creation_seq, m.nonce, m.payload, m.payload_hash, m.gas_limit,
       CASE WHEN m.nonce IS NULL AND m.released_nonce IS NULL THEN 'CREATED'
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
       m.released_nonce
  FROM managed_tx AS m
  LEFT JOIN LATERAL (SELECT * FROM tx_open AS o WHERE o.tx_id = m.tx_id LIMIT 1) AS o ON true
  LEFT JOIN LATERAL (SELECT * FROM tx_ended AS e WHERE e.tx_id = m.tx_id LIMIT 1) AS e ON true
  LEFT JOIN LATERAL (SELECT * FROM tx_receipt AS r WHERE r.tx_id = m.tx_id LIMIT 1) AS r ON true;

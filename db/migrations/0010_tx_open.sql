-- Open work gets a table of its own, and managed_tx becomes the record of what was asked.
--
-- managed_tx was rewritten five to six times in a transaction's life, under twelve indexes. Now each fact is written
-- where it belongs, and most steps of open work are HOT updates:
--
--   managed_tx   what was asked; written at create, and once more when it gets its nonce
--   tx_open      the work: one narrow row while the transaction has a nonce and is not final
--   tx_receipt   the receipt, as the chain returned it
--   tx_ended     how it ended
--
-- A transaction is exactly one of: waiting (no nonce), open (a row in tx_open), ended (a row in tx_ended).
-- Lock order: signer_lease, signer_nonce_cursor, tx_open by (signer, nonce), managed_tx in the same order, event.

-- A node of the version before may be running. Its transactions end before these locks are granted. Afterwards each of
-- its writes fails: the tokens that it holds are void, and the columns that it writes are gone.
LOCK TABLE signer_lease IN ACCESS EXCLUSIVE MODE;
LOCK TABLE signer_nonce_cursor IN ACCESS EXCLUSIVE MODE;
LOCK TABLE managed_tx IN ACCESS EXCLUSIVE MODE;

UPDATE signer_lease
   SET owner_node = '',
       fencing_token = fencing_token + 1,
       expires_at = '-infinity';
-- The old name is in the statements with which an old node would acquire a lease: it must not keep one from a new node.
ALTER TABLE signer_lease RENAME COLUMN updated_at TO renewed_at;

-- Keys are ASCII: compare their bytes, which is faster than any other collation. Indexes are made anew below.
DROP INDEX idx_signer_lease_owner_node, idx_managed_tx_signer_tx_id, uq_managed_tx_signer_nonce,
           uq_managed_tx_signer_request_id;
ALTER TABLE managed_tx DROP CONSTRAINT managed_tx_pkey;
ALTER TABLE signer_lease ALTER COLUMN signer TYPE text COLLATE "C";
ALTER TABLE signer_nonce_cursor ALTER COLUMN signer TYPE text COLLATE "C";
ALTER TABLE managed_tx
  ALTER COLUMN signer TYPE text COLLATE "C",
  ALTER COLUMN request_id TYPE text COLLATE "C";
ALTER TABLE tx_attempt ALTER COLUMN tx_hash TYPE text COLLATE "C";
CREATE INDEX idx_signer_lease_owner_node ON signer_lease (owner_node);

-- No index mentions a column that changes, and most of each page stays free: steps are HOT.
CREATE TABLE tx_open (
  chain_id           bigint      NOT NULL,
  signer             text        COLLATE "C" NOT NULL,
  nonce              bigint      NOT NULL CHECK (nonce >= 0),
  tx_id              uuid        NOT NULL,
  state              text        NOT NULL,
  sub_state          text        NULL,
  error_message      text        NULL,
  retry_count        integer     NOT NULL DEFAULT 0,  -- failed tries since the last success
  tx_hash            text        COLLATE "C" NULL,    -- of the attempt that counts
  first_submitted_at timestamptz NULL,
  last_submit_at     timestamptz NULL,
  next_resubmit_at   timestamptz NULL,                -- when the next broadcast, of either kind, is due
  last_receipt_check timestamptz NULL,
  receipt_block      bigint      NULL,
  receipt_hash       text        NULL,                -- of the block
  succeeded          boolean     NULL,                -- what the receipt says
  receipt_changed_at timestamptz NULL,                -- when it got its receipt, or lost it
  announced_block    bigint      NULL,                -- the last block that was announced to consumers
  announced_hash     text        NULL,
  withdrawn          boolean     NOT NULL DEFAULT false,  -- what was announced before is void
  fencing_token      bigint      NOT NULL,            -- of the last write
  updated_at         timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (chain_id, signer, nonce),
  CONSTRAINT tx_open_tx_id_key UNIQUE (tx_id),
  CONSTRAINT tx_open_state_check CHECK (state IN ('ALLOCATED', 'TRACKING', 'STUCK')),
  CONSTRAINT tx_open_mined_has_a_block
    CHECK ((receipt_block IS NULL) = (receipt_hash IS NULL) AND (receipt_block IS NULL) = (succeeded IS NULL))
) WITH (fillfactor = 25,
        autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);

-- Written once, when the transaction is mined; removed and written again only by a reorg.
CREATE TABLE tx_receipt (
  tx_id         uuid   PRIMARY KEY,
  chain_id      bigint NOT NULL,
  receipt_block bigint NOT NULL,
  receipt       jsonb  NOT NULL
);

CREATE TABLE tx_ended (
  tx_id              uuid        PRIMARY KEY,
  chain_id           bigint      NOT NULL,
  state              text        NOT NULL,
  sub_state          text        NULL,
  error_message      text        NULL,
  retry_count        integer     NOT NULL,
  tx_hash            text        NULL,
  first_submitted_at timestamptz NULL,
  last_submit_at     timestamptz NULL,
  receipt_block      bigint      NULL,
  receipt_hash       text        NULL,
  receipt_changed_at timestamptz NULL,
  confirmations      jsonb       NULL,
  fencing_token      bigint      NULL,
  ended_at           timestamptz NOT NULL DEFAULT clock_timestamp(),
  updated_at         timestamptz NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT tx_ended_state_check CHECK (state IN ('CONFIRMED', 'FAILED_FINAL')),
  CONSTRAINT tx_ended_confirmed_is_mined CHECK (state <> 'CONFIRMED' OR receipt_block IS NOT NULL)
);

INSERT INTO tx_open (chain_id, signer, nonce, tx_id, state, sub_state, error_message, retry_count, tx_hash,
                     first_submitted_at, last_submit_at, next_resubmit_at, last_receipt_check, receipt_block,
                     receipt_hash, succeeded, receipt_changed_at, announced_block, announced_hash, withdrawn,
                     fencing_token, updated_at)
SELECT chain_id, signer, nonce, tx_id, state, sub_state, error_message, retry_count, tx_hash,
       first_submitted_at, last_submit_at, next_resubmit_at, NULL, receipt_block,
       receipt_hash, CASE WHEN receipt_block IS NOT NULL THEN coalesce(receipt ->> 'status' = '0x1', false) END,
       receipt_changed_at, told_block, told_hash, withdrawn, coalesce(fencing_token, 0), updated_at
  FROM managed_tx
 WHERE state IN ('ALLOCATED', 'TRACKING', 'STUCK')
 ORDER BY chain_id, signer, nonce;

INSERT INTO tx_receipt (tx_id, chain_id, receipt_block, receipt)
SELECT tx_id, chain_id, receipt_block, receipt
  FROM managed_tx
 WHERE receipt IS NOT NULL
 ORDER BY receipt_block, tx_id;

INSERT INTO tx_ended (tx_id, chain_id, state, sub_state, error_message, retry_count, tx_hash, first_submitted_at,
                      last_submit_at, receipt_block, receipt_hash, receipt_changed_at, confirmations, fencing_token,
                      ended_at, updated_at)
SELECT tx_id, chain_id, state, sub_state, error_message, retry_count, tx_hash, first_submitted_at,
       last_submit_at, receipt_block, receipt_hash, receipt_changed_at, confirmations, fencing_token,
       coalesce(confirmed_at, updated_at), updated_at
  FROM managed_tx
 WHERE state IN ('CONFIRMED', 'FAILED_FINAL')
 ORDER BY coalesce(confirmed_at, updated_at);

-- What was mined in blocks that are final now, and what a reorg takes back.
CREATE INDEX idx_tx_receipt_block ON tx_receipt (chain_id, receipt_block);
-- For the rare question what a deep reorg has undone: a few pages, not a tree. Rows arrive in the order of blocks.
CREATE INDEX idx_tx_ended_receipt_block ON tx_ended USING brin (receipt_block);
-- What operators ask for, among a million that went well.
CREATE INDEX idx_tx_ended_failed ON tx_ended (tx_id) WHERE state = 'FAILED_FINAL';

-- Both bounds are written under the cursor's lock. They let a reader skip what was promoted, mined or has ended, also
-- while an old snapshot keeps vacuum from removing it.
ALTER TABLE signer_nonce_cursor
  ADD COLUMN first_waiting bigint NOT NULL DEFAULT 0,  -- no transaction with a smaller creation_seq waits for a nonce
  ADD COLUMN first_unmined bigint NOT NULL DEFAULT 0;  -- no open transaction with a smaller nonce lacks its receipt
UPDATE signer_nonce_cursor AS c
   SET first_waiting = coalesce((SELECT min(t.creation_seq)
                                   FROM managed_tx AS t
                                  WHERE t.chain_id = c.chain_id AND t.signer = c.signer AND t.state = 'CREATED'),
                                c.next_creation),
       first_unmined = coalesce((SELECT min(t.nonce)
                                   FROM tx_open AS t
                                  WHERE t.chain_id = c.chain_id AND t.signer = c.signer AND t.receipt_block IS NULL),
                                c.next_nonce, 0);
ALTER TABLE signer_nonce_cursor ADD CONSTRAINT signer_nonce_cursor_line CHECK (first_waiting <= next_creation);

-- Indexes and constraints on these columns go with them.
ALTER TABLE managed_tx
  DROP COLUMN state,
  DROP COLUMN sub_state,
  DROP COLUMN error_message,
  DROP COLUMN retry_count,
  DROP COLUMN tx_hash,
  DROP COLUMN first_submitted_at,
  DROP COLUMN last_submit_at,
  DROP COLUMN next_resubmit_at,
  DROP COLUMN last_receipt_check,
  DROP COLUMN receipt,
  DROP COLUMN receipt_block,
  DROP COLUMN receipt_hash,
  DROP COLUMN receipt_changed_at,
  DROP COLUMN told_block,
  DROP COLUMN told_hash,
  DROP COLUMN withdrawn,
  DROP COLUMN confirmations,
  DROP COLUMN confirmed_at,
  DROP COLUMN fencing_token,
  DROP COLUMN updated_at;

-- Pages of a signer's transactions, newest first: tx_id is in order of time.
CREATE INDEX idx_managed_tx_signer_tx_id ON managed_tx (signer, tx_id);
-- In this order, because of indexes that cost the same PostgreSQL takes the newest, and while the table is empty all cost the
-- same: a plan made then must not use the wrong one.
CREATE INDEX idx_managed_tx_waiting ON managed_tx (chain_id, signer, creation_seq) WHERE nonce IS NULL;
CREATE UNIQUE INDEX uq_managed_tx_signer_nonce ON managed_tx (chain_id, signer, nonce) WHERE nonce IS NOT NULL;
CREATE UNIQUE INDEX uq_managed_tx_signer_request_id ON managed_tx (chain_id, signer, request_id)
  WHERE request_id IS NOT NULL;
ALTER TABLE managed_tx ADD PRIMARY KEY (tx_id);

-- Each transaction as it is now, whichever table says so. LIMIT 1 keeps the planner from joining whole tables, which
-- looks cheap to it while they are empty.
CREATE VIEW tx_view AS
SELECT m.tx_id, m.chain_id, m.signer, m.request_id, m.creation_seq, m.nonce, m.payload, m.payload_hash, m.gas_limit,
       CASE WHEN m.nonce IS NULL THEN 'CREATED' ELSE coalesce(o.state, e.state) END AS state,
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
       coalesce(o.updated_at, e.updated_at, m.created_at) AS updated_at
  FROM managed_tx AS m
  LEFT JOIN LATERAL (SELECT * FROM tx_open AS o WHERE o.tx_id = m.tx_id LIMIT 1) AS o ON true
  LEFT JOIN LATERAL (SELECT * FROM tx_ended AS e WHERE e.tx_id = m.tx_id LIMIT 1) AS e ON true
  LEFT JOIN LATERAL (SELECT * FROM tx_receipt AS r WHERE r.tx_id = m.tx_id LIMIT 1) AS r ON true;

-- Statements decide by rows that they have locked, and write these rows by their ctid. A row that was not written after
-- all would leave a step in the log that did not happen: fail, so that the whole transaction is rolled back.
CREATE FUNCTION tx_wrote_all(decided bigint, written bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  IF decided <> written THEN
    RAISE EXCEPTION 'a locked row was changed by another session: % rows to write, % written', decided, written
      USING ERRCODE = 'serialization_failure';
  END IF;
  RETURN true;
END $$;

-- Roles keep what they were granted: on the new tables and the view, what they had on managed_tx.
DO $$
DECLARE
  v_grant record;
BEGIN
  FOR v_grant IN
    SELECT a.privilege_type AS privilege, m.made,
           CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END AS grantee
      FROM pg_class AS c
     CROSS JOIN aclexplode(c.relacl) AS a
      JOIN (VALUES ('tx_open', '{SELECT,INSERT,UPDATE,DELETE}'::text[]),
                   ('tx_receipt', '{SELECT,INSERT,UPDATE,DELETE}'),
                   ('tx_ended', '{SELECT,INSERT,UPDATE,DELETE}'),
                   ('tx_view', '{SELECT}')) AS m(made, privileges)
        ON a.privilege_type = ANY (m.privileges)
     WHERE c.oid = 'managed_tx'::regclass
       AND a.grantee <> c.relowner
  LOOP
    EXECUTE format('GRANT %s ON %I TO %s', v_grant.privilege, v_grant.made, v_grant.grantee);
  END LOOP;
END $$;

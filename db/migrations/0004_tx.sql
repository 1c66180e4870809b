-- The transaction manager. PostgreSQL decides everything here; docs/correctness.md says why the locks are as they are.
-- Lock order: signer_lease, signer_nonce_cursor, managed_tx by (signer, nonce), outbox; several of one kind by key.

-- Nodes that run, or ran. `node_id` is name and boot id: two processes never share one.
CREATE TABLE cluster_node (
  node_id       text        PRIMARY KEY,
  advertise_url text        NOT NULL,  -- empty: cannot be forwarded to
  version       text        NOT NULL,
  started_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
  heartbeat_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- One row per signer: who may write for it, under which token, until when. A free lease has no owner and is expired.
CREATE TABLE signer_lease (
  chain_id      bigint      NOT NULL CHECK (chain_id > 0),
  signer        text        NOT NULL CHECK (signer ~ '^0x[0-9a-f]{40}$'),
  owner_node    text        NOT NULL,
  fencing_token bigint      NOT NULL CHECK (fencing_token >= 0),
  expires_at    timestamptz NOT NULL,
  updated_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (chain_id, signer)
) WITH (fillfactor = 50);  -- renewed every few seconds: room for HOT
CREATE INDEX idx_signer_lease_owner_node ON signer_lease (owner_node);

-- Where the next nonce and the next place in line come from, under this row's lock.
CREATE TABLE signer_nonce_cursor (
  chain_id        bigint      NOT NULL,
  signer          text        NOT NULL,
  next_nonce      bigint      NULL CHECK (next_nonce >= 0),  -- NULL: the chain has not been asked yet
  next_creation   bigint      NOT NULL DEFAULT 0,
  chain_nonce     bigint      NULL,                          -- as last seen, and when
  chain_nonce_at  timestamptz NULL,
  needs_reconcile boolean     NOT NULL DEFAULT false,        -- the chain is ahead of us: an operator must look
  fencing_token   bigint      NOT NULL DEFAULT 0,
  updated_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (chain_id, signer),
  FOREIGN KEY (chain_id, signer) REFERENCES signer_lease
) WITH (fillfactor = 50);

-- No foreign keys on the two hot tables: each check would be a look-up per row, and every writer holds the lease row
-- it would look up.
CREATE TABLE managed_tx (
  tx_id              uuid        NOT NULL,
  chain_id           bigint      NOT NULL,
  signer             text        NOT NULL,
  request_id         text        NULL CHECK (octet_length(request_id) BETWEEN 1 AND 128),
  creation_seq       bigint      NOT NULL,            -- place in the signer's line
  nonce              bigint      NULL CHECK (nonce >= 0),
  payload            jsonb       NOT NULL,            -- what the caller asked for
  payload_hash       bytea       NOT NULL,
  gas_limit          bigint      NOT NULL CHECK (gas_limit >= 0),
  tx_hash            text        NULL CHECK (tx_hash ~ '^0x[0-9a-f]{64}$'),  -- of the attempt that counts
  state              text        NOT NULL
                     CHECK (state IN ('CREATED', 'ALLOCATED', 'TRACKING', 'CONFIRMED', 'FAILED_FINAL', 'STUCK')),
  sub_state          text        NULL,
  error_message      text        NULL,
  retry_count        integer     NOT NULL DEFAULT 0,  -- failed tries since the last success
  first_submitted_at timestamptz NULL,
  last_submit_at     timestamptz NULL,
  next_resubmit_at   timestamptz NULL,                -- when the next broadcast, of either kind, is due
  last_receipt_check timestamptz NULL,
  receipt            jsonb       NULL,
  receipt_block      bigint      NULL,
  receipt_hash       text        NULL,                -- of the block
  receipt_changed_at timestamptz NULL,                -- when it got its receipt, or lost it
  told_block         bigint      NULL,                -- the last block that consumers were told of
  told_hash          text        NULL,
  withdrawn          boolean     NOT NULL DEFAULT false,  -- consumers were told that what they knew is void
  confirmations      jsonb       NULL,                -- written when final
  confirmed_at       timestamptz NULL,
  fencing_token      bigint      NULL,                -- of the last write
  created_at         timestamptz NOT NULL DEFAULT clock_timestamp(),
  updated_at         timestamptz NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT managed_tx_created_has_no_nonce CHECK ((state = 'CREATED') = (nonce IS NULL)),
  CONSTRAINT managed_tx_mined_has_a_block
    CHECK ((receipt IS NULL) = (receipt_block IS NULL) AND (receipt IS NULL) = (receipt_hash IS NULL)),
  CONSTRAINT managed_tx_confirmed_is_mined CHECK (state <> 'CONFIRMED' OR (receipt IS NOT NULL AND confirmed_at IS NOT NULL))
);

CREATE INDEX idx_managed_tx_tx_hash ON managed_tx (tx_hash) WHERE tx_hash IS NOT NULL;
-- Pages of a signer's transactions, newest first: tx_id is in order of time.
CREATE INDEX idx_managed_tx_signer_tx_id ON managed_tx (signer, tx_id);

-- For the rare question what a deep reorg has undone: a few pages, not a tree.
CREATE INDEX idx_managed_tx_receipt_block ON managed_tx USING brin (receipt_block);

-- The rest hold open work only, so that a million finished transactions cost nothing.
CREATE INDEX idx_managed_tx_signer_state_resubmit ON managed_tx (chain_id, signer, state, next_resubmit_at)
  WHERE state NOT IN ('CONFIRMED', 'FAILED_FINAL');
CREATE INDEX idx_managed_tx_waiting ON managed_tx (chain_id, signer, creation_seq)
  WHERE state = 'CREATED';
CREATE INDEX idx_managed_tx_in_flight ON managed_tx (chain_id, signer, nonce)
  WHERE state IN ('ALLOCATED', 'TRACKING', 'STUCK') AND receipt_block IS NULL;
CREATE INDEX idx_managed_tx_due_submit ON managed_tx (chain_id, next_resubmit_at)
  WHERE state = 'ALLOCATED' AND receipt_block IS NULL;
CREATE INDEX idx_managed_tx_due_resubmit ON managed_tx (chain_id, next_resubmit_at)
  WHERE state IN ('TRACKING', 'STUCK') AND receipt_block IS NULL;
-- What operators ask for, among a million that went well.
CREATE INDEX idx_managed_tx_trouble ON managed_tx (state, tx_id) WHERE state IN ('STUCK', 'FAILED_FINAL');
CREATE INDEX idx_managed_tx_mined ON managed_tx (chain_id, receipt_block)
  WHERE state IN ('TRACKING', 'STUCK') AND receipt_block IS NOT NULL;

-- Last, because of indexes that cost the same PostgreSQL takes the newest, and while the table is empty all cost the
-- same: a plan made then must not go by the wrong one.
CREATE UNIQUE INDEX uq_managed_tx_signer_nonce ON managed_tx (chain_id, signer, nonce) WHERE nonce IS NOT NULL;
CREATE UNIQUE INDEX uq_managed_tx_signer_request_id ON managed_tx (chain_id, signer, request_id)
  WHERE request_id IS NOT NULL;
ALTER TABLE managed_tx ADD PRIMARY KEY (tx_id);

-- Every transaction that was ever signed for, or said to have, a nonce of ours. Blocks are matched against these.
CREATE TABLE tx_attempt (
  chain_id      bigint      NOT NULL,
  tx_hash       text        NOT NULL CHECK (tx_hash ~ '^0x[0-9a-f]{64}$'),
  tx_id         uuid        NOT NULL,
  attempt       integer     NOT NULL,             -- 1, 2, …: only the newest is broadcast
  kind          text        NOT NULL CHECK (kind IN ('original', 'cancel', 'recorded', 'external')),
  raw           bytea       NULL,                 -- NULL: not signed here
  fees          jsonb       NULL,
  outcome       text        NULL CHECK (outcome IN ('accepted', 'refused', 'unknown')),  -- NULL: being sent
  message       text        NULL,
  claims        integer     NOT NULL DEFAULT 1,   -- broadcasts begun: an outcome counts only for the last one
  fencing_token bigint      NOT NULL,
  created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (chain_id, tx_hash),
  UNIQUE (tx_id, attempt),
  CONSTRAINT tx_attempt_signed_here_has_bytes CHECK ((raw IS NOT NULL) = (kind IN ('original', 'cancel')))
) WITH (fillfactor = 50);  -- each gets its outcome soon after: with room for that in the page, no index is touched

-- What people did by hand, and why.
CREATE TABLE operator_action (
  action_id  bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at         timestamptz NOT NULL DEFAULT clock_timestamp(),
  chain_id   bigint      NOT NULL,
  signer     text        NOT NULL,
  tx_id      uuid        NULL,
  action     text        NOT NULL,
  reason     text        NOT NULL CHECK (length(reason) BETWEEN 1 AND 500),
  actor      text        NOT NULL,  -- the API key
  node       text        NOT NULL,
  detail     jsonb       NOT NULL
);
CREATE INDEX idx_operator_action_signer ON operator_action (chain_id, signer, action_id);

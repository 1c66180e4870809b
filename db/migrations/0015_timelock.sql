-- Timelocks: the contracts that are watched, the events that they emitted, and the flows that the events add up to
-- (src/timelock).
--
-- Events are facts, flows follow from them: `fold` (src/timelock/model/fold.hpp) makes the same flows from the same
-- events at any time. Events, flows, the log's rows and the place in the chain are written in one transaction.
--
-- Lock order: timelock_scan, timelock, timelock_transaction_flows by key, event.

ALTER TABLE api_key ADD COLUMN contracts text[] NULL;  -- the timelocks that the key is restricted to; NULL: any

-- How far a chain has been scanned. `block_timestamp` is the chain's clock: flows become ready and expire by it.
--
-- One node scans a chain at a time, by a claim that ends at `claimed_until`. The claim only saves work. What makes two
-- scanners safe is that each write compares the block that it starts from, the set of contracts and the number of
-- reorgs with what the scanner read before it asked the chain.
CREATE TABLE timelock_scan (
  chain_id        bigint      PRIMARY KEY CHECK (chain_id > 0),
  block_number    bigint      NOT NULL CHECK (block_number >= 0),  -- the last block that was scanned
  block_hash      text        COLLATE "C" NOT NULL CHECK (block_hash <> ''),
  block_timestamp timestamptz NOT NULL,
  contracts       bigint      NOT NULL DEFAULT 0,  -- grows when a contract is added or its history is scanned again
  reorgs          bigint      NOT NULL DEFAULT 0,  -- grows with each reorg
  owner_node      text        NOT NULL DEFAULT '',
  claim_token     bigint      NOT NULL DEFAULT 0,
  claimed_until   timestamptz NOT NULL DEFAULT '-infinity',
  moved_at        timestamptz NOT NULL DEFAULT clock_timestamp(),  -- when block_timestamp last grew
  failing_since   timestamptz NULL,                -- NULL: the last step succeeded
  last_error      text        NULL
) WITH (fillfactor = 50);

-- A watched contract. Its history, the blocks from_block … history_last, is scanned beside the new blocks, which all
-- contracts share. Nothing of a contract is announced before its history is complete: earlier events would change the
-- numbers of generations that were announced.
CREATE TABLE timelock (
  chain_id         bigint      NOT NULL CHECK (chain_id > 0),
  contract_address text        COLLATE "C" NOT NULL CHECK (contract_address ~ '^0x[0-9a-f]{40}$'),
  standard         text        NOT NULL CHECK (standard IN ('compound', 'openzeppelin')),
  remark           text        NOT NULL DEFAULT '',
  from_block       bigint      NOT NULL CHECK (from_block >= 0),
  history_next     bigint      NOT NULL,  -- the next block of its history to scan
  history_last     bigint      NOT NULL,  -- its history is complete when history_next is above
  history_done_at  timestamptz NULL,
  last_error       text        NULL,      -- why its history is not scanned now, or why it was halted
  halted_block     bigint      NULL,      -- it emitted something that cannot be decoded: nothing from there on is scanned
  rules_wanted     bigint      NOT NULL DEFAULT 0,  -- grows when delay, admin or a role may have changed
  rules_read       bigint      NOT NULL DEFAULT 0,  -- rules_wanted when they were last read from the contract
  created_by       text        NOT NULL,
  created_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
  updated_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (chain_id, contract_address),
  UNIQUE (chain_id, contract_address, standard)
) WITH (fillfactor = 70);

CREATE TABLE compound_timelocks (
  chain_id         bigint        NOT NULL,
  contract_address text          COLLATE "C" NOT NULL,
  standard         text          NOT NULL DEFAULT 'compound' CHECK (standard = 'compound'),
  delay            numeric(78,0) NOT NULL,
  grace_period     numeric(78,0) NOT NULL,
  admin            text          NOT NULL,
  pending_admin    text          NULL,
  PRIMARY KEY (chain_id, contract_address),
  FOREIGN KEY (chain_id, contract_address, standard) REFERENCES timelock (chain_id, contract_address, standard)
    ON DELETE CASCADE
);

CREATE TABLE openzeppelin_timelocks (
  chain_id         bigint        NOT NULL,
  contract_address text          COLLATE "C" NOT NULL,
  standard         text          NOT NULL DEFAULT 'openzeppelin' CHECK (standard = 'openzeppelin'),
  min_delay        numeric(78,0) NOT NULL,
  admin            text          NULL,  -- the holder of the admin role, if it is one address and known
  PRIMARY KEY (chain_id, contract_address),
  FOREIGN KEY (chain_id, contract_address, standard) REFERENCES timelock (chain_id, contract_address, standard)
    ON DELETE CASCADE
);

-- What the contracts emitted. `from_address` and `to_address` are those of the transaction. An event of a block that a
-- reorg removed stays, with `orphaned`; it counts again if its block returns.
CREATE TABLE compound_timelock_transactions (
  chain_id         bigint        NOT NULL,
  contract_address text          COLLATE "C" NOT NULL,
  event_type       text          NOT NULL CHECK (event_type IN ('QueueTransaction', 'ExecuteTransaction',
                                                                'CancelTransaction')),
  event_tx_hash    text          COLLATE "C" NOT NULL,  -- the flow's id
  event_target     text          COLLATE "C" NOT NULL,
  event_value      numeric(78,0) NOT NULL,
  event_signature  text          NOT NULL,
  event_signature_bytes text     NULL,      -- set if the signature is not text: its bytes
  event_data       text          NOT NULL,
  event_eta        numeric(78,0) NOT NULL,
  tx_hash          text          COLLATE "C" NOT NULL,
  from_address     text          NOT NULL,
  to_address       text          NULL,
  block_number     bigint        NOT NULL,
  block_hash       text          COLLATE "C" NOT NULL,
  block_timestamp  timestamptz   NOT NULL,
  log_index        bigint        NOT NULL,
  orphaned         boolean       NOT NULL DEFAULT false,
  PRIMARY KEY (chain_id, block_hash, log_index)
);
CREATE INDEX idx_compound_timelock_transactions_flow
  ON compound_timelock_transactions (chain_id, contract_address, event_tx_hash);
CREATE INDEX idx_compound_timelock_transactions_contract
  ON compound_timelock_transactions (chain_id, contract_address, block_number);
CREATE INDEX idx_compound_timelock_transactions_block ON compound_timelock_transactions (chain_id, block_number);
-- Searches. Not hash indexes: thousands of events may share a target, and a hash index walks all of them at each insert.
CREATE INDEX idx_compound_timelock_transactions_tx ON compound_timelock_transactions (tx_hash);
CREATE INDEX idx_compound_timelock_transactions_target ON compound_timelock_transactions (event_target, block_timestamp);
CREATE INDEX idx_compound_timelock_transactions_signature
  ON compound_timelock_transactions (left(event_signature, 100) COLLATE "C", block_timestamp)
  WHERE event_signature <> '';

CREATE TABLE openzeppelin_timelock_transactions (
  chain_id          bigint        NOT NULL,
  contract_address  text          COLLATE "C" NOT NULL,
  event_type        text          NOT NULL CHECK (event_type IN ('CallScheduled', 'CallExecuted', 'CallSalt',
                                                                 'Cancelled')),
  event_id          text          COLLATE "C" NOT NULL,  -- the flow's id
  event_index       bigint        NULL,
  event_target      text          COLLATE "C" NULL,
  event_value       numeric(78,0) NULL,
  event_data        text          NULL,
  event_predecessor text          NULL,
  event_delay       numeric(78,0) NULL,
  event_salt        text          NULL,
  tx_hash           text          COLLATE "C" NOT NULL,
  from_address      text          NOT NULL,
  to_address        text          NULL,
  block_number      bigint        NOT NULL,
  block_hash        text          COLLATE "C" NOT NULL,
  block_timestamp   timestamptz   NOT NULL,
  log_index         bigint        NOT NULL,
  orphaned          boolean       NOT NULL DEFAULT false,
  PRIMARY KEY (chain_id, block_hash, log_index)
);
CREATE INDEX idx_openzeppelin_timelock_transactions_flow
  ON openzeppelin_timelock_transactions (chain_id, contract_address, event_id);
CREATE INDEX idx_openzeppelin_timelock_transactions_contract
  ON openzeppelin_timelock_transactions (chain_id, contract_address, block_number);
CREATE INDEX idx_openzeppelin_timelock_transactions_block ON openzeppelin_timelock_transactions (chain_id, block_number);
CREATE INDEX idx_openzeppelin_timelock_transactions_tx ON openzeppelin_timelock_transactions (tx_hash);
CREATE INDEX idx_openzeppelin_timelock_transactions_target
  ON openzeppelin_timelock_transactions (event_target, block_timestamp) WHERE event_target IS NOT NULL;

-- Changes of a contract's own rules: delay, admin, roles.
CREATE TABLE timelock_guard_event (
  chain_id         bigint      NOT NULL,
  contract_address text        COLLATE "C" NOT NULL,
  event_type       text        NOT NULL,
  arguments        jsonb       NOT NULL,
  tx_hash          text        COLLATE "C" NOT NULL,
  from_address     text        NOT NULL,
  to_address       text        NULL,
  block_number     bigint      NOT NULL,
  block_hash       text        COLLATE "C" NOT NULL,
  block_timestamp  timestamptz NOT NULL,
  log_index        bigint      NOT NULL,
  orphaned         boolean     NOT NULL DEFAULT false,
  told             boolean     NOT NULL DEFAULT false,  -- it was announced, and the announcement stands
  PRIMARY KEY (chain_id, block_hash, log_index)
);
CREATE INDEX idx_timelock_guard_event_contract ON timelock_guard_event (chain_id, contract_address, block_number);
CREATE INDEX idx_timelock_guard_event_block ON timelock_guard_event (chain_id, block_number);
CREATE INDEX idx_timelock_guard_event_untold ON timelock_guard_event (chain_id, block_number) WHERE told = orphaned;

-- One row for each time that an id was queued. `eta` and `delay` are the contract's own numbers, of any size; `due_at`
-- and `expired_at` are NULL if they do not fit a timestamp, and then never come.
--
-- `told` is the path of statuses that was announced: a change is announced once, and taken back once if a reorg undoes
-- it (src/timelock/model/changes.hpp). `tell_block` is the block whose scan makes the next change final enough to be
-- announced, once the history of the contract is complete; NULL: there is no change.
CREATE TABLE timelock_transaction_flows (
  timelock_standard text          COLLATE "C" NOT NULL CHECK (timelock_standard IN ('compound', 'openzeppelin')),
  chain_id          bigint        NOT NULL,
  contract_address  text          COLLATE "C" NOT NULL,
  flow_id           text          COLLATE "C" NOT NULL,
  generation        integer       NOT NULL CHECK (generation >= 1),
  status            text          COLLATE "C" NOT NULL
                    CHECK (status IN ('waiting', 'ready', 'executed', 'cancelled', 'expired')),
  confirmed         boolean       NOT NULL,  -- the status was announced
  removed           boolean       NOT NULL DEFAULT false,  -- a reorg removed the event that began it
  initiator_address text          COLLATE "C" NOT NULL,
  via_address       text          COLLATE "C" NULL,   -- the transaction's `to`, if it is not the timelock itself
  eta               numeric(78,0) NOT NULL,
  delay             numeric(78,0) NULL,
  predecessor       text          COLLATE "C" NULL,
  due_at            timestamptz   NULL,
  expired_at        timestamptz   NULL,      -- the last moment at which Compound executes it
  queue_tx_hash     text          COLLATE "C" NOT NULL,
  queue_block       bigint        NOT NULL,
  queued_at         timestamptz   NOT NULL,
  execute_tx_hash   text          COLLATE "C" NULL,
  executed_at       timestamptz   NULL,
  cancel_tx_hash    text          COLLATE "C" NULL,
  cancelled_at      timestamptz   NULL,
  end_block         bigint        NULL,
  calls             integer       NOT NULL,
  told              text[]        NOT NULL,
  retractions       integer       NOT NULL DEFAULT 0,
  tell_block        bigint        NULL,
  reminded          text[]        NOT NULL DEFAULT '{}',
  updated_at        timestamptz   NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (timelock_standard, chain_id, contract_address, flow_id, generation),
  FOREIGN KEY (chain_id, contract_address, timelock_standard)
    REFERENCES timelock (chain_id, contract_address, standard) ON DELETE CASCADE,
  CHECK ((status = 'executed') = (execute_tx_hash IS NOT NULL)),
  CHECK ((status = 'cancelled') = (cancel_tx_hash IS NOT NULL)),
  CHECK (timelock_standard = 'compound' OR expired_at IS NULL)
) WITH (fillfactor = 80);
-- Each change of a status adds an entry to every index that has the row: indexes are few and narrow.
--
-- Flows that the chain's clock moves (src/timelock/store/due_store.hpp), and those that a clock that was set back by a
-- reorg moves back. Ready flows ahead of the clock are found by idx_timelock_flows_eta.
CREATE INDEX idx_timelock_flows_due ON timelock_transaction_flows (chain_id, due_at)
  WHERE status = 'waiting' AND confirmed AND NOT removed AND due_at IS NOT NULL;
CREATE INDEX idx_timelock_flows_expiry ON timelock_transaction_flows (chain_id, expired_at)
  WHERE status IN ('waiting', 'ready') AND confirmed AND NOT removed AND expired_at IS NOT NULL;
CREATE INDEX idx_timelock_flows_expired ON timelock_transaction_flows (chain_id, expired_at) WHERE status = 'expired';
CREATE INDEX idx_timelock_flows_unreminded ON timelock_transaction_flows (chain_id, due_at)
  WHERE status = 'ready' AND confirmed AND NOT removed AND NOT 'ready_unexecuted' = ANY (reminded);
CREATE INDEX idx_timelock_flows_tell ON timelock_transaction_flows (chain_id, contract_address, tell_block)
  WHERE tell_block IS NOT NULL;
-- Lists (src/timelock/store/flow_query_store.hpp) read a page for each status, and merge the pages: so each index serves
-- its filter with any set of statuses, in one order. Flows with the same time are sorted when they are read.
CREATE INDEX idx_timelock_flows_newest ON timelock_transaction_flows (chain_id, timelock_standard, status, queued_at);
CREATE INDEX idx_timelock_flows_eta ON timelock_transaction_flows (chain_id, timelock_standard, status, eta);
CREATE INDEX idx_timelock_flows_contract ON timelock_transaction_flows (contract_address, status, queued_at);
CREATE INDEX idx_timelock_flows_contract_eta ON timelock_transaction_flows (contract_address, status, eta);
CREATE INDEX idx_timelock_flows_initiator ON timelock_transaction_flows (initiator_address, status, queued_at);
CREATE INDEX idx_timelock_flows_initiator_eta ON timelock_transaction_flows (initiator_address, status, eta);
CREATE INDEX idx_timelock_flows_via ON timelock_transaction_flows (via_address, status, queued_at)
  WHERE via_address IS NOT NULL;
CREATE INDEX idx_timelock_flows_via_eta ON timelock_transaction_flows (via_address, status, eta)
  WHERE via_address IS NOT NULL;

-- What explains calls: functions of ABIs that users uploaded. An empty address means every contract.
CREATE TABLE timelock_abi (
  id               uuid        PRIMARY KEY,
  name             text        NOT NULL,
  chain_id         bigint      NOT NULL DEFAULT 0,   -- 0: every chain
  contract_address text        COLLATE "C" NOT NULL DEFAULT '',
  abi              jsonb       NOT NULL,
  created_by       text        NOT NULL,
  created_at       timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- The functions of these ABIs by the first four bytes of a call, so that explaining a call reads no whole ABI.
CREATE TABLE timelock_abi_function (
  abi_id      uuid    NOT NULL REFERENCES timelock_abi ON DELETE CASCADE,
  place       integer NOT NULL,                -- in the ABI
  selector    text    COLLATE "C" NOT NULL,    -- 0x and eight digits
  declaration text    NOT NULL,                -- transfer(address to,uint256 amount)
  PRIMARY KEY (abi_id, place)
);
CREATE INDEX idx_timelock_abi_function_selector ON timelock_abi_function USING hash (selector);

-- The economy: who has how much, what moved, what waits to move. This file holds the tables, what the database itself
-- refuses, and the rules; 0006 moves money by them, 0007 has what nodes call, 0008 what people do.
--
-- Lock order: lanes, transfer_work, accounts by (guild_id, member_id), the rest. Two calls in one transaction may
-- break it, and so does an insert by hand with a key that a node is using: PostgreSQL then ends one of the two
-- (40P01), nodes try again, and nothing is done twice. A work row is the mutex of its transfer: whoever changes a
-- status holds it, or made the transfer in the same transaction. Who works through many skips those that are locked;
-- who names one (cancelling, putting off, a step by hand) waits for it and holds nothing then.
CREATE SCHEMA economy;

-- The outbox, found when the schema is made and not by the search_path of whoever inserts a transfer.
CREATE VIEW economy.outbox AS SELECT type, subject, data FROM outbox_event;

-- Rows are made by economy.fn_set_settings. Guild 0 is what a guild without a row of its own has.
CREATE TABLE economy.guild_settings (
  guild_id             bigint      PRIMARY KEY CHECK (guild_id >= 0),
  daily_limit          bigint      NULL     DEFAULT 500 CHECK (daily_limit >= 0),  -- NULL: none; 0: nothing may go out
  cooldown_seconds     integer     NOT NULL DEFAULT 300 CHECK (cooldown_seconds BETWEEN 0 AND 31536000),
  default_expiry_hours integer     NOT NULL DEFAULT 24  CHECK (default_expiry_hours BETWEEN 1 AND 8760),
  max_retries          integer     NOT NULL DEFAULT 10  CHECK (max_retries BETWEEN 0 AND 1000),
  updated_at           timestamptz NOT NULL DEFAULT clock_timestamp()
);
INSERT INTO economy.guild_settings (guild_id) VALUES (0);

CREATE FUNCTION economy._settings(p_guild_id bigint) RETURNS SETOF economy.guild_settings
LANGUAGE sql STABLE AS $$
  SELECT *
    FROM economy.guild_settings
   WHERE guild_id = coalesce((SELECT guild_id FROM economy.guild_settings WHERE guild_id = p_guild_id), 0)
$$;

-- `reserved` belongs to approved transfers. The day's counter lives here because it only changes under this row's lock.
-- Nothing that changes is indexed: every update is HOT while a page has room.
CREATE TABLE economy.accounts (
  guild_id         bigint      NOT NULL,
  member_id        bigint      NOT NULL,
  kind             text        NOT NULL DEFAULT 'member',           -- member, government or system
  balance          bigint      NOT NULL DEFAULT 0,
  reserved         bigint      NOT NULL DEFAULT 0,
  last_transfer_at timestamptz NULL,                                -- last approval; the cooldown counts from here
  day              date        NULL,                                -- the UTC day that `day_used` is of
  day_used         bigint      NOT NULL DEFAULT 0,
  created_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (guild_id, member_id),
  -- Few and large: each is made ready again for every statement that writes here.
  CONSTRAINT accounts_system_is_member_0
    CHECK (guild_id > 0 AND CASE kind WHEN 'system' THEN member_id = 0
                                      WHEN 'member' THEN member_id > 0
                                      WHEN 'government' THEN member_id > 0
                                      ELSE false
                            END),
  CONSTRAINT accounts_cover_what_is_reserved
    CHECK (reserved >= 0 AND day_used >= 0 AND (kind = 'system' OR balance >= reserved))
) WITH (fillfactor = 50);

-- The ledger. A row is both legs of a movement, so it is balanced by construction; economy.entries shows them singly.
-- What is minted comes from the guild's system account (member 0) and what is burnt goes there: all balances of a guild
-- sum to zero, the system account is minus the supply, and since minting refuses to take it below -(2^63-1), no
-- balance can overflow.
CREATE TABLE economy.transactions (
  id              bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  transfer_id     uuid        NOT NULL UNIQUE,
  kind            text        NOT NULL,  -- transfer, mint or burn
  guild_id        bigint      NOT NULL,
  debit_id        bigint      NOT NULL,
  credit_id       bigint      NOT NULL,
  amount          bigint      NOT NULL,
  debit_after     bigint      NOT NULL,
  credit_after    bigint      NOT NULL,
  reason          text        NULL,
  metadata        jsonb       NULL,      -- of a synchronous transfer, as is the key; the pool has its own
  actor           text        NULL,      -- who minted or burnt
  idempotency_key text        NULL,
  created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT transactions_move_money
    CHECK (amount > 0 AND CASE kind WHEN 'transfer' THEN debit_id > 0 AND credit_id > 0 AND debit_id <> credit_id
                                    WHEN 'mint' THEN debit_id = 0 AND credit_id > 0
                                    WHEN 'burn' THEN debit_id > 0 AND credit_id = 0
                                    ELSE false
                          END),
  CONSTRAINT transactions_leave_no_debt
    CHECK ((debit_id = 0 OR debit_after >= 0) AND (credit_id = 0 OR credit_after >= 0)),
  CONSTRAINT transactions_texts_are_short
    CHECK (length(reason) <= 500 AND octet_length(idempotency_key) BETWEEN 1 AND 128),
  CONSTRAINT transactions_metadata_can_be_told
    CHECK (jsonb_typeof(metadata) = 'object' AND octet_length(metadata::text) <= 8192
           AND NOT jsonb_path_exists(metadata, 'strict $.**{17}'))
);
CREATE INDEX transactions_debit ON economy.transactions (guild_id, debit_id, id);
CREATE INDEX transactions_credit ON economy.transactions (guild_id, credit_id, id);
CREATE UNIQUE INDEX transactions_idempotency_key ON economy.transactions (guild_id, debit_id, idempotency_key, kind)
  WHERE idempotency_key IS NOT NULL;

CREATE VIEW economy.entries AS
SELECT guild_id, debit_id AS member_id, id AS transaction_id, transfer_id, kind, -amount AS amount,
       debit_after AS balance_after, credit_id AS counterparty_id, reason, created_at
  FROM economy.transactions
 UNION ALL
SELECT guild_id, credit_id, id, transfer_id, kind, amount, credit_after, debit_id, reason, created_at
  FROM economy.transactions;

CREATE FUNCTION economy._refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION USING ERRCODE = 'integrity_constraint_violation', MESSAGE = TG_ARGV[0];
END $$;

CREATE TRIGGER accounts_are_kept BEFORE DELETE ON economy.accounts
  FOR EACH ROW EXECUTE FUNCTION economy._refuse('an account is never deleted: its entries stay');
CREATE TRIGGER accounts_are_all_kept BEFORE TRUNCATE ON economy.accounts
  FOR EACH STATEMENT EXECUTE FUNCTION economy._refuse('an account is never deleted: its entries stay');
CREATE TRIGGER transactions_are_immutable BEFORE UPDATE OR DELETE ON economy.transactions
  FOR EACH ROW EXECUTE FUNCTION economy._refuse('the ledger is never changed: post a transfer that undoes it');
CREATE TRIGGER transactions_are_kept BEFORE TRUNCATE ON economy.transactions
  FOR EACH STATEMENT EXECUTE FUNCTION economy._refuse('the ledger is never changed');

-- The pool. No index mentions what changes, and a page keeps room for the next version: the two or three updates of a
-- row's life are HOT. What is still open is found by transfer_work, what was rejected by transfer_denials.
CREATE TABLE economy.pending_transfers (
  transfer_id     uuid        PRIMARY KEY DEFAULT gen_random_uuid(),
  seq             bigint      GENERATED ALWAYS AS IDENTITY,                  -- in order of creation
  guild_id        bigint      NOT NULL,
  initiator_id    bigint      NOT NULL,
  target_id       bigint      NOT NULL,
  amount          bigint      NOT NULL,
  status          varchar(20) NOT NULL DEFAULT 'pending'
                  CHECK (status IN ('pending', 'checking', 'approved', 'completed', 'rejected')),
  checks          jsonb       NOT NULL DEFAULT '{}',  -- {"balance": 1, "cooldown": 0, "daily_limit": 1}
  retry_count     integer     NOT NULL DEFAULT 0,     -- retries made; early ones do not count
  expires_at      timestamptz NOT NULL,               -- left out: after the guild's default_expiry_hours
  metadata        jsonb       NOT NULL DEFAULT '{}',
  reason          text        NULL,
  idempotency_key text        NULL,
  created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
  updated_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT pending_transfers_move_money
    CHECK (amount > 0 AND guild_id > 0 AND initiator_id > 0 AND target_id > 0 AND initiator_id <> target_id),
  CONSTRAINT pending_transfers_texts_are_short
    CHECK (length(reason) <= 500 AND octet_length(idempotency_key) BETWEEN 1 AND 128),
  -- Metadata is neither long nor deep, so that a page of them can be told; its text counts, in which 1e300 has 301 digits.
  CONSTRAINT pending_transfers_metadata_can_be_told
    CHECK (jsonb_typeof(metadata) = 'object' AND octet_length(metadata::text) <= 8192
           AND NOT jsonb_path_exists(metadata, 'strict $.**{17}')),
  CONSTRAINT pending_transfers_can_be_told
    CHECK (jsonb_typeof(checks) = 'object' AND retry_count BETWEEN 0 AND 1001
           AND expires_at >= '1970-01-01' AND expires_at < '9999-01-01'
           AND created_at >= '1970-01-01' AND created_at < '9999-01-01')
) WITH (fillfactor = 50);
CREATE UNIQUE INDEX pending_transfers_guild ON economy.pending_transfers (guild_id, seq);
-- Per payer, because whoever creates holds the payer's lock: that is what makes one key one transfer in both modes.
CREATE UNIQUE INDEX pending_transfers_idempotency_key
  ON economy.pending_transfers (guild_id, initiator_id, idempotency_key) WHERE idempotency_key IS NOT NULL;

-- One row for each transfer that is not finished, narrow, so that what is written often is small.
CREATE TABLE economy.transfer_work (
  transfer_id     uuid        PRIMARY KEY,
  seq             bigint      NOT NULL,
  guild_id        bigint      NOT NULL,
  initiator_id    bigint      NOT NULL,
  amount          bigint      NOT NULL,
  lane            smallint    NOT NULL,            -- one guild, one lane; one lane, one node at a time
  approved        boolean     NOT NULL,            -- to be executed; otherwise to be checked again
  failed_on       smallint    NOT NULL,            -- 1 balance, 2 cooldown, 4 daily_limit
  due_at          timestamptz NOT NULL,            -- when somebody should look, which may be before …
  next_attempt_at timestamptz NOT NULL,            -- … the retry that counts
  expires_at      timestamptz NOT NULL
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
        autovacuum_vacuum_cost_delay = 0);
CREATE INDEX transfer_work_due ON economy.transfer_work (lane, due_at, seq);
CREATE INDEX transfer_work_expires ON economy.transfer_work (expires_at) WHERE NOT approved;
CREATE INDEX transfer_work_waiting ON economy.transfer_work (guild_id, seq) WHERE NOT approved;
-- Those that another cooldown or limit may help, and those that a credit may: each must be found without looking at
-- all that wait for something else.
CREATE INDEX transfer_work_throttled ON economy.transfer_work (guild_id, initiator_id, seq)
  WHERE NOT approved AND failed_on & 6 <> 0;
CREATE INDEX transfer_work_poor ON economy.transfer_work (guild_id, initiator_id, seq)
  WHERE NOT approved AND failed_on & 1 = 1;

-- Why a transfer was rejected, and which ones of a guild were.
CREATE TABLE economy.transfer_denials (
  guild_id    bigint      NOT NULL,
  seq         bigint      NOT NULL,
  transfer_id uuid        NOT NULL,
  reason      text        NOT NULL
              CHECK (reason IN ('transfer_checks_failed', 'transfer_checks_expired', 'transfer_cancelled')),
  denied_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (guild_id, seq)
);

-- What operators did by hand, and why.
CREATE TABLE economy.operations (
  operation_id bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at           timestamptz NOT NULL DEFAULT clock_timestamp(),
  guild_id     bigint      NOT NULL,
  member_id    bigint      NULL,
  action       text        NOT NULL CHECK (action IN ('mint', 'burn', 'set_settings', 'set_account_kind')),
  reason       text        NOT NULL CHECK (length(reason) BETWEEN 1 AND 500),
  actor        text        NOT NULL CHECK (length(actor) BETWEEN 1 AND 200),
  detail       jsonb       NOT NULL
);
CREATE INDEX operations_guild ON economy.operations (guild_id, operation_id);
CREATE TRIGGER operations_are_immutable BEFORE UPDATE OR DELETE ON economy.operations
  FOR EACH ROW EXECUTE FUNCTION economy._refuse('the record of operators is never changed');
CREATE TRIGGER operations_are_kept BEFORE TRUNCATE ON economy.operations
  FOR EACH STATEMENT EXECUTE FUNCTION economy._refuse('the record of operators is never changed');

-- ── The status machine ────────────────────────────────────────────────────────────────────────────────────────────
--   pending → checking → approved → completed        completed and rejected are for ever
--      └────────┴──────→ rejected
-- `pending` may become `approved` or `rejected` at once: checking then began and ended within the statement that
-- inserted it. WHEN keeps what is allowed from ever entering a function.

CREATE FUNCTION economy._admit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.status <> 'pending' OR NEW.retry_count <> 0 OR NEW.checks <> '{}' THEN
    RAISE EXCEPTION 'a transfer begins as pending, unchecked and untried'
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  NEW.expires_at := clock_timestamp() + make_interval(
    hours => (SELECT default_expiry_hours FROM economy._settings(NEW.guild_id)));
  RETURN NEW;
END $$;
CREATE TRIGGER pending_transfers_begin BEFORE INSERT ON economy.pending_transfers
  FOR EACH ROW WHEN (NEW.status <> 'pending' OR NEW.retry_count <> 0 OR NEW.checks <> '{}' OR NEW.expires_at IS NULL)
  EXECUTE FUNCTION economy._admit();

CREATE TRIGGER pending_transfers_terms BEFORE UPDATE ON economy.pending_transfers
  FOR EACH ROW WHEN ((OLD.transfer_id, OLD.seq, OLD.guild_id, OLD.initiator_id, OLD.target_id, OLD.amount, OLD.reason,
                      OLD.idempotency_key, OLD.expires_at, OLD.created_at, OLD.metadata)
                     IS DISTINCT FROM
                     (NEW.transfer_id, NEW.seq, NEW.guild_id, NEW.initiator_id, NEW.target_id, NEW.amount, NEW.reason,
                      NEW.idempotency_key, NEW.expires_at, NEW.created_at, NEW.metadata))
  EXECUTE FUNCTION economy._refuse('the terms of a transfer never change');

CREATE TRIGGER pending_transfers_machine BEFORE UPDATE ON economy.pending_transfers
  FOR EACH ROW WHEN (NOT CASE OLD.status WHEN 'pending'  THEN NEW.status IN ('checking', 'approved', 'rejected')
                                         WHEN 'checking' THEN NEW.status IN ('checking', 'approved', 'rejected')
                                         WHEN 'approved' THEN NEW.status = 'completed'
                                         ELSE false
                         END)
  EXECUTE FUNCTION economy._refuse('not a step of the status machine: completed and rejected are for ever');

CREATE TRIGGER pending_transfers_kept BEFORE DELETE ON economy.pending_transfers
  FOR EACH ROW WHEN (OLD.status NOT IN ('completed', 'rejected'))
  EXECUTE FUNCTION economy._refuse('a transfer that is not finished cannot be deleted: cancel it');
-- With it goes what is kept beside it.
CREATE FUNCTION economy._forget_denials() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM economy.transfer_denials AS d
   USING gone
   WHERE d.guild_id = gone.guild_id AND d.seq = gone.seq;
  RETURN NULL;
END $$;
CREATE TRIGGER pending_transfers_gone AFTER DELETE ON economy.pending_transfers
  REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION economy._forget_denials();
CREATE TRIGGER pending_transfers_not_emptied BEFORE TRUNCATE ON economy.pending_transfers
  FOR EACH STATEMENT EXECUTE FUNCTION economy._refuse('transfers that are not finished cannot be deleted');

-- A status must be true: `completed` has its ledger row, `approved` was approved by the rules, what is finished has no
-- work left. As a set, when the statement is done.
CREATE FUNCTION economy._verify_statuses() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  v_wrong record;
BEGIN
  SELECT n.transfer_id, n.status INTO v_wrong
    FROM moved AS n
   WHERE (SELECT w.approved FROM economy.transfer_work AS w WHERE w.transfer_id = n.transfer_id)
         IS DISTINCT FROM CASE n.status WHEN 'approved' THEN true WHEN 'checking' THEN false END
      OR n.status = 'completed'
         AND (SELECT (t.guild_id, t.debit_id, t.credit_id, t.amount)
                     = (n.guild_id, n.initiator_id, n.target_id, n.amount)
                FROM economy.transactions AS t
               WHERE t.transfer_id = n.transfer_id) IS NOT TRUE
   LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'transfer % cannot be made % by hand', v_wrong.transfer_id, v_wrong.status
      USING ERRCODE = 'integrity_constraint_violation',
            HINT = 'Use economy.fn_update_pending_transfer_status, which moves the money too.';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER pending_transfers_true AFTER UPDATE ON economy.pending_transfers
  REFERENCING NEW TABLE AS moved
  FOR EACH STATEMENT EXECUTE FUNCTION economy._verify_statuses();

-- ── The rules, each once ──────────────────────────────────────────────────────────────────────────────────────────

CREATE FUNCTION economy._rule_balance(p_available bigint, p_amount bigint) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$ SELECT p_amount <= p_available $$;

CREATE FUNCTION economy._rule_cooldown(p_kind text, p_until timestamptz, p_at timestamptz) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$ SELECT p_kind = 'government' OR p_until IS NULL OR p_until <= p_at $$;

CREATE FUNCTION economy._rule_daily_limit(p_kind text, p_used bigint, p_limit bigint, p_amount bigint) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$ SELECT p_kind = 'government' OR p_limit IS NULL OR p_amount <= p_limit - p_used $$;

-- Of `p_used` and what is added, which may be more than a number can hold where there is no limit.
CREATE FUNCTION economy._add_used(p_used bigint, p_amount bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$ SELECT p_used + least(p_amount, 9223372036854775807 - p_used) $$;

CREATE FUNCTION economy._used_on(p_day date, p_day_used bigint, p_at timestamptz) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$ SELECT CASE WHEN p_day = (p_at AT TIME ZONE 'UTC')::date THEN p_day_used ELSE 0 END $$;

CREATE FUNCTION economy._throttled_until(p_last timestamptz, p_cooldown_seconds integer) RETURNS timestamptz
LANGUAGE sql STABLE AS $$ SELECT p_last + make_interval(secs => p_cooldown_seconds) $$;

-- What the rules look at. A payer without an account has nothing.
CREATE FUNCTION economy._standing(p_guild_id bigint, p_member_id bigint, p_at timestamptz)
RETURNS TABLE (kind text, available bigint, used bigint, throttled_until timestamptz, daily_limit bigint,
               cooldown_seconds integer, max_retries integer)
LANGUAGE sql STABLE AS $$
  SELECT coalesce(a.kind, 'member'),
         coalesce(a.balance - a.reserved, 0),
         coalesce(economy._used_on(a.day, a.day_used, p_at), 0),
         economy._throttled_until(a.last_transfer_at, s.cooldown_seconds),
         s.daily_limit, s.cooldown_seconds, s.max_retries
    FROM economy._settings(p_guild_id) AS s
    LEFT JOIN economy.accounts AS a ON a.guild_id = p_guild_id AND a.member_id = p_member_id
$$;

CREATE FUNCTION economy._day_ends(p_at timestamptz) RETURNS timestamptz
LANGUAGE sql IMMUTABLE AS $$ SELECT ((p_at AT TIME ZONE 'UTC')::date + 1)::timestamp AT TIME ZONE 'UTC' $$;

-- min(2^n, 300) seconds after the nth retry, and up to a tenth more so that they do not come all at once.
CREATE FUNCTION economy._backoff(p_retries integer) RETURNS interval
LANGUAGE sql VOLATILE AS $$
  SELECT make_interval(secs => least(power(2, least(p_retries, 9)), 300) * (1 + random() * 0.1))
$$;

CREATE FUNCTION economy._lane(p_guild_id bigint) RETURNS smallint
LANGUAGE sql IMMUTABLE AS $$ SELECT (hashint8(p_guild_id) & 63)::smallint $$;

-- The first half of a lane's advisory lock: any number, as long as it is ours.
CREATE FUNCTION economy._lane_class() RETURNS integer
LANGUAGE sql IMMUTABLE AS $$ SELECT 1953652325 $$;

CREATE FUNCTION economy._checks(p_failed_on smallint) RETURNS jsonb
LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE p_failed_on
           WHEN 0 THEN jsonb '{"balance": 1, "cooldown": 1, "daily_limit": 1}'
           WHEN 1 THEN jsonb '{"balance": 0, "cooldown": 1, "daily_limit": 1}'
           WHEN 2 THEN jsonb '{"balance": 1, "cooldown": 0, "daily_limit": 1}'
           WHEN 3 THEN jsonb '{"balance": 0, "cooldown": 0, "daily_limit": 1}'
           WHEN 4 THEN jsonb '{"balance": 1, "cooldown": 1, "daily_limit": 0}'
           WHEN 5 THEN jsonb '{"balance": 0, "cooldown": 1, "daily_limit": 0}'
           WHEN 6 THEN jsonb '{"balance": 1, "cooldown": 0, "daily_limit": 0}'
           WHEN 7 THEN jsonb '{"balance": 0, "cooldown": 0, "daily_limit": 0}'
         END
$$;

-- ── What is told on the channel economy_events: ids as numbers, nothing that needs escaping ──────────────────────────
-- Every cast is spelt out: one that is only stable would keep these from being inlined, at fifty times the cost.

CREATE FUNCTION economy._iso(p_at timestamptz) RETURNS text
LANGUAGE sql STABLE AS $$ SELECT to_char(p_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') $$;

CREATE FUNCTION economy._check_result_event(p_type text, p_passed boolean, p_transfer_id uuid, p_guild_id bigint,
                                            p_initiator_id bigint, p_more text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
  SELECT '{"event_type": "transfer_check_result", "transfer_id": "' || p_transfer_id::text
         || '", "check_type": "' || p_type || '", "result": ' || CASE WHEN p_passed THEN '1' ELSE '0' END
         || ', "guild_id": ' || p_guild_id::text || ', "initiator_id": ' || p_initiator_id::text || p_more || '}'
$$;
CREATE FUNCTION economy._balance_event(p_passed boolean, p_transfer_id uuid, p_guild_id bigint, p_initiator_id bigint,
                                       p_available bigint, p_amount bigint) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
  SELECT economy._check_result_event('balance', p_passed, p_transfer_id, p_guild_id, p_initiator_id,
                                     ', "balance": ' || p_available::text || ', "required": ' || p_amount::text)
$$;
CREATE FUNCTION economy._cooldown_event(p_passed boolean, p_transfer_id uuid, p_guild_id bigint, p_initiator_id bigint,
                                        p_until timestamptz) RETURNS text
LANGUAGE sql STABLE AS $$
  SELECT economy._check_result_event('cooldown', p_passed, p_transfer_id, p_guild_id, p_initiator_id,
                                     ', "throttled_until": '
                                     || CASE WHEN p_passed THEN 'null' ELSE '"' || economy._iso(p_until) || '"' END)
$$;
CREATE FUNCTION economy._daily_limit_event(p_passed boolean, p_transfer_id uuid, p_guild_id bigint,
                                           p_initiator_id bigint, p_used bigint, p_amount bigint, p_limit bigint)
RETURNS text
LANGUAGE sql IMMUTABLE AS $$
  SELECT economy._check_result_event('daily_limit', p_passed, p_transfer_id, p_guild_id, p_initiator_id,
                                     ', "total_today": ' || p_used::text || ', "attempted_amount": ' || p_amount::text
                                     || ', "limit": ' || coalesce(p_limit::text, 'null'))
$$;
-- transfer_check_approved, and transaction_denied with its reason.
CREATE FUNCTION economy._transfer_event(p_head text, p_transfer_id uuid, p_guild_id bigint, p_initiator_id bigint,
                                        p_target_id bigint, p_amount bigint) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
  SELECT '{"event_type": ' || p_head || ', "transfer_id": "' || p_transfer_id::text || '", "guild_id": '
         || p_guild_id::text || ', "initiator_id": ' || p_initiator_id::text || ', "target_id": ' || p_target_id::text
         || ', "amount": ' || p_amount::text || '}'
$$;

-- The steps that every set of transfers takes: the functions that move money, taken apart into rules, locking, deciding and
-- writing. What takes them is in 0025 (synchronous transfers), 0026 (the pool) and 0027 (what nodes and operators call).
--
-- Every set goes the same way:
--   parties    _places_of finds each account once, in order of guild and member; an item names its parties by place
--   locks      _open_accounts opens what is missing, _lock_accounts locks and reads all by one statement
--   decisions  in memory, one item after the other, each upon what the one before has left: fn_transfer_set
--              (synchronous), _check (reserving), _complete (carrying out what is reserved)
--   writing    one statement for each table: _write_accounts, _post, _show_checked, _show_completed
--
-- READ COMMITTED is what makes this right: each statement after a lock sees what was committed before the lock was
-- granted. Starting a statement costs as much as several of its rows, so there are few of them.
--
-- Joins are from a list to a table by its key, never between two lists: to the planner lists are short, and it would
-- compare each with each. transfer_work is not joined at all: its statistics often say empty, and the planner would read
-- all of it. There, and where a row may be missing, `= ANY` or a scalar subquery leave no way but the index.

-- What these steps replace. No CASCADE: an object of another owner that depends on one of these stops the migration.
DROP FUNCTION
  economy._classify(economy._item[]), economy._items(uuid[], text), economy._items_of, economy._kept(economy._item[]),
  economy._lock_parties(economy._item[]), economy._only_new, economy._refuse_id(uuid), economy._settle,
  economy._show_checked, economy._wake_credited, economy._without, economy.fn_transfer_now;
DROP TYPE economy._item, economy._verdict, economy._parties, economy._settlement, economy._class;

-- ── Tables ────────────────────────────────────────────────────────────────────────────────────────────────────────

-- awaits_money: a transfer of this payer may wait for money, so a credit has to look for it. Set when a check fails on
-- the balance, under the account's lock; cleared by the first credit that finds no such transfer.
ALTER TABLE economy.accounts ADD COLUMN awaits_money boolean NOT NULL DEFAULT false;
UPDATE economy.accounts AS a
   SET awaits_money = true
  FROM (SELECT DISTINCT guild_id, initiator_id FROM economy.transfer_work WHERE NOT approved AND failed_on & 1 = 1) AS w
 WHERE a.guild_id = w.guild_id
   AND a.member_id = w.initiator_id;

-- counted_on: the UTC day of whose allowance a transfer took; NULL where it took none (government accounts), and before
-- this column was there.
ALTER TABLE economy.transactions ADD COLUMN counted_on date NULL;

-- PostgreSQL prepares each CHECK for every statement that writes, so there is one for each table that every set writes.
-- They ask no more than the old ones did, so no row is looked at again. The limits of texts and metadata are checked
-- where these come in: by the pool's table, by fn_transfer_set and by _need_record.
ALTER TABLE economy.accounts
  DROP CONSTRAINT accounts_system_is_member_0,
  DROP CONSTRAINT accounts_cover_what_is_reserved,
  ADD CONSTRAINT accounts_are_sound
    CHECK (guild_id > 0 AND reserved >= 0 AND day_used >= 0
           AND CASE kind WHEN 'system' THEN member_id = 0
                         WHEN 'member' THEN member_id > 0 AND balance >= reserved
                         WHEN 'government' THEN member_id > 0 AND balance >= reserved
                         ELSE false
               END) NOT VALID;
ALTER TABLE economy.transactions
  DROP CONSTRAINT transactions_move_money,
  DROP CONSTRAINT transactions_leave_no_debt,
  DROP CONSTRAINT transactions_texts_are_short,
  DROP CONSTRAINT transactions_metadata_can_be_told,
  ADD CONSTRAINT transactions_are_sound
    CHECK (amount > 0
           AND CASE kind WHEN 'transfer' THEN debit_id > 0 AND credit_id > 0 AND debit_id <> credit_id
                                              AND debit_after >= 0 AND credit_after >= 0
                         WHEN 'mint' THEN debit_id = 0 AND credit_id > 0 AND credit_after >= 0
                         WHEN 'burn' THEN debit_id > 0 AND credit_id = 0 AND debit_after >= 0
                         ELSE false
               END) NOT VALID;

-- ── Parties ───────────────────────────────────────────────────────────────────────────────────────────────────────

-- The parties of a set, each once. Places count from 1.
CREATE TYPE economy._places AS (
  guild_ids  bigint[],   -- in order of guild and member, as the members
  member_ids bigint[],
  payers     integer[],  -- for each item its payer's place; NULL: none is needed
  targets    integer[]   -- the same for its target
);

CREATE FUNCTION economy._places_of(p_guild_ids bigint[], p_payer_ids bigint[], p_target_ids bigint[])
RETURNS economy._places
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  v economy._places;
BEGIN
  SELECT coalesce(array_agg(l.guild_id ORDER BY l.place) FILTER (WHERE l.nth = 1), '{}'),
         coalesce(array_agg(l.member_id ORDER BY l.place) FILTER (WHERE l.nth = 1), '{}'),
         array_agg(l.place ORDER BY l.n) FILTER (WHERE l.side = 0),
         array_agg(l.place ORDER BY l.n) FILTER (WHERE l.side = 1)
    INTO v.guild_ids, v.member_ids, v.payers, v.targets
    FROM (SELECT l.n, l.side, l.guild_id, l.member_id,
                 CASE WHEN l.member_id IS NOT NULL
                      THEN (dense_rank() OVER (ORDER BY l.member_id IS NULL, l.guild_id, l.member_id))::integer
                 END AS place,
                 CASE WHEN l.member_id IS NOT NULL
                      THEN row_number() OVER (PARTITION BY l.member_id IS NULL, l.guild_id, l.member_id)
                 END AS nth
            FROM (SELECT k.n, s.side, k.guild_id, CASE s.side WHEN 0 THEN k.payer_id ELSE k.target_id END AS member_id
                    FROM unnest(p_guild_ids, p_payer_ids, p_target_ids) WITH ORDINALITY
                         AS k(guild_id, payer_id, target_id, n)
                   CROSS JOIN generate_series(0, 1) AS s(side)) AS l) AS l;
  RETURN v;
END $$;

-- Opens the accounts that are missing: a row that does not exist cannot be locked, and could appear, with money, before
-- it is looked at. Requires: no account is locked by this transaction, so that a wait for another session that opens the
-- same account is never part of a deadlock.
CREATE FUNCTION economy._open_accounts(p_guild_ids bigint[], p_member_ids bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO economy.accounts (guild_id, member_id)
  SELECT k.guild_id, k.member_id
    FROM unnest(p_guild_ids, p_member_ids) AS k(guild_id, member_id)
   WHERE (SELECT true FROM economy.accounts AS a
           WHERE a.guild_id = k.guild_id AND a.member_id = k.member_id) IS NULL
   ORDER BY k.guild_id, k.member_id
      ON CONFLICT DO NOTHING;
END $$;

-- Locked accounts: element n of each array is the nth account.
CREATE TYPE economy._locked AS (
  places   tid[],          -- where the rows are: they stay there while they are locked
  kinds    text[],
  balances bigint[],
  reserved bigint[],
  used     bigint[],       -- of the allowance of the UTC day of `at`
  last_at  timestamptz[],  -- the last approval
  awaits   boolean[],
  at       timestamptz     -- after the last lock was granted; everything is judged by it
);

-- Locks accounts, each named once and in order, by one statement: so there is one order, and two sessions never wait for
-- each other. Accounts that do not exist are left out: callers compare the number. Refuses accounts in another order.
CREATE FUNCTION economy._lock_accounts(p_guild_ids bigint[], p_member_ids bigint[]) RETURNS economy._locked
LANGUAGE plpgsql AS $$
DECLARE
  v economy._locked;
  v_guild_ids bigint[];
  v_member_ids bigint[];
  v_days date[];
  v_used bigint[];
  v_today date;
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'money moves only in READ COMMITTED transactions' USING ERRCODE = 'invalid_transaction_state',
      HINT = 'What was committed while this one waited for a lock would not be seen.';
  END IF;
  SELECT coalesce(array_agg(a.ctid), '{}'), coalesce(array_agg(a.kind), '{}'), coalesce(array_agg(a.balance), '{}'),
         coalesce(array_agg(a.reserved), '{}'), coalesce(array_agg(a.day), '{}'), coalesce(array_agg(a.day_used), '{}'),
         coalesce(array_agg(a.last_transfer_at), '{}'), coalesce(array_agg(a.awaits_money), '{}'),
         coalesce(array_agg(a.guild_id), '{}'), coalesce(array_agg(a.member_id), '{}')
    INTO v.places, v.kinds, v.balances, v.reserved, v_days, v_used, v.last_at, v.awaits, v_guild_ids, v_member_ids
    FROM (SELECT a.guild_id, a.member_id, a.ctid, a.kind, a.balance, a.reserved, a.day, a.day_used, a.last_transfer_at, a.awaits_money
            FROM unnest(p_guild_ids, p_member_ids) AS k(guild_id, member_id)
            JOIN economy.accounts AS a ON a.guild_id = k.guild_id AND a.member_id = k.member_id
           ORDER BY a.guild_id, a.member_id
             FOR NO KEY UPDATE OF a) AS a;  -- an insert that refers to an account need not wait for it
  IF cardinality(v_member_ids) = cardinality(p_member_ids)
     AND (v_guild_ids <> p_guild_ids OR v_member_ids <> p_member_ids) THEN  -- places would be those of other accounts
    RAISE EXCEPTION 'the accounts of a set come in order of guild and member' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  v.at := economy._clock();
  v_today := (v.at AT TIME ZONE 'UTC')::date;
  FOR n IN 1 .. cardinality(v_days) LOOP
    IF v_days[n] IS DISTINCT FROM v_today THEN v_used[n] := 0; END IF;
  END LOOP;
  v.used := v_used;
  RETURN v;
END $$;

-- Opens and locks.
CREATE FUNCTION economy._lock_parties(p economy._places) RETURNS economy._locked
LANGUAGE plpgsql AS $$
DECLARE
  v economy._locked;
BEGIN
  PERFORM economy._open_accounts(p.guild_ids, p.member_ids);
  v := economy._lock_accounts(p.guild_ids, p.member_ids);
  IF cardinality(v.places) <> cardinality(p.member_ids) THEN  -- places would be wrong
    RAISE EXCEPTION 'an account is not there any more' USING ERRCODE = 'serialization_failure';
  END IF;
  RETURN v;
END $$;

-- Which accounts this transaction could lock although other sessions hold locks; it holds these then. An account that is
-- not free at once is waited for a moment, and all together for a tenth of a second: a transaction like this one is over
-- by then, and a session that does not commit delays only transfers of the same accounts. Such waits may be out of order,
-- but none is long enough to be a deadlock.
CREATE FUNCTION economy._free_accounts(p_guild_ids bigint[], p_member_ids bigint[]) RETURNS boolean[]
LANGUAGE plpgsql AS $$
DECLARE
  v_lock_timeout text := current_setting('lock_timeout');
  v_until timestamptz := clock_timestamp() + interval '100 ms';
  v_count integer := cardinality(p_member_ids);
  v_free boolean[] := array_fill(false, ARRAY[v_count]);
  v_place integer;
BEGIN
  PERFORM set_config('lock_timeout', '20ms', true);
  FOR n IN 1 .. v_count LOOP
    EXIT WHEN clock_timestamp() > v_until;
    CONTINUE WHEN EXISTS (SELECT FROM economy.accounts AS a
                           WHERE a.guild_id = p_guild_ids[n] AND a.member_id = p_member_ids[n]);
    BEGIN
      INSERT INTO economy.accounts (guild_id, member_id) VALUES (p_guild_ids[n], p_member_ids[n]) ON CONFLICT DO NOTHING;
    EXCEPTION WHEN lock_not_available THEN
      NULL;  -- another session is just opening it: it is not found below
    END;
  END LOOP;
  FOR v_place IN
    SELECT k.n::integer
      FROM unnest(p_guild_ids, p_member_ids) WITH ORDINALITY AS k(guild_id, member_id, n)
      JOIN economy.accounts AS a ON a.guild_id = k.guild_id AND a.member_id = k.member_id
     ORDER BY a.guild_id, a.member_id
       FOR NO KEY UPDATE OF a SKIP LOCKED
  LOOP
    v_free[v_place] := true;
  END LOOP;
  FOR n IN 1 .. v_count LOOP
    EXIT WHEN clock_timestamp() > v_until;
    CONTINUE WHEN v_free[n];
    BEGIN
      PERFORM FROM economy.accounts AS a
        WHERE a.guild_id = p_guild_ids[n] AND a.member_id = p_member_ids[n]
          FOR NO KEY UPDATE;
      v_free[n] := FOUND;
    EXCEPTION WHEN lock_not_available THEN
      NULL;
    END;
  END LOOP;
  PERFORM set_config('lock_timeout', v_lock_timeout, true);
  RETURN v_free;
END $$;

-- The parties without those that other sessions keep locked. The place of such a party is 0 then.
CREATE FUNCTION economy._only_free(p economy._places) RETURNS economy._places
LANGUAGE plpgsql AS $$
DECLARE
  v economy._places;
  v_free boolean[] := economy._free_accounts(p.guild_ids, p.member_ids);
  v_place integer[];  -- the new place of each
BEGIN
  v.guild_ids := '{}';
  v.member_ids := '{}';
  FOR n IN 1 .. cardinality(v_free) LOOP
    IF v_free[n] THEN
      v.guild_ids := v.guild_ids || p.guild_ids[n];
      v.member_ids := v.member_ids || p.member_ids[n];
    END IF;
    v_place[n] := CASE WHEN v_free[n] THEN cardinality(v.member_ids) ELSE 0 END;
  END LOOP;
  SELECT array_agg(v_place[k.payer] ORDER BY k.n), array_agg(v_place[k.target] ORDER BY k.n)
    INTO v.payers, v.targets
    FROM unnest(p.payers, p.targets) WITH ORDINALITY AS k(payer, target, n);
  RETURN v;
END $$;

-- ── Rules ─────────────────────────────────────────────────────────────────────────────────────────────────────────

-- Which rules a transfer fails: 1 balance + 2 cooldown + 4 daily_limit; 0: none.
CREATE FUNCTION economy._failed_rules(p_kind text, p_available bigint, p_until timestamptz, p_used bigint, p_limit bigint,
                                      p_amount bigint, p_at timestamptz) RETURNS smallint
LANGUAGE sql IMMUTABLE AS $$
  SELECT (CASE WHEN economy._rule_balance(p_available, p_amount) THEN 0 ELSE 1 END
          + CASE WHEN economy._rule_cooldown(p_kind, p_until, p_at) THEN 0 ELSE 2 END
          + CASE WHEN economy._rule_daily_limit(p_kind, p_used, p_limit, p_amount) THEN 0 ELSE 4 END)::smallint
$$;

-- NULL: until it expires.
CREATE FUNCTION economy._max_retries(p_requested integer, p_guilds integer) RETURNS integer
LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN p_requested IS NULL THEN p_guilds WHEN p_requested >= 0 THEN p_requested END
$$;

-- Whether the terms of a transfer make sense. The row that a caller asks for may still be refused for its texts.
CREATE FUNCTION economy._makes_sense(p_guild_id bigint, p_payer_id bigint, p_target_id bigint, p_amount bigint)
RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
  SELECT (p_guild_id > 0 AND p_payer_id > 0 AND p_target_id > 0 AND p_payer_id <> p_target_id AND p_amount > 0) IS TRUE
$$;

-- Whether the texts of a synchronous transfer are within the limits that the table of the pool has. Metadata is neither
-- long nor deep, so that a page of them can be told; its text counts, in which 1e300 has 301 digits.
CREATE FUNCTION economy._texts_fit(p_reason text, p_metadata text, p_idempotency_key text) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
  SELECT (length(p_reason) <= 500) IS NOT FALSE
         AND (octet_length(p_idempotency_key) BETWEEN 1 AND 128) IS NOT FALSE
         AND CASE WHEN p_metadata IS NULL OR p_metadata = '{}' THEN true
                  ELSE jsonb_typeof(p_metadata::jsonb) = 'object'
                       AND octet_length(p_metadata::jsonb::text) <= 8192
                       AND NOT jsonb_path_exists(p_metadata::jsonb, 'strict $.**{17}')
             END
$$;

-- ── Writing ───────────────────────────────────────────────────────────────────────────────────────────────────────

-- Writes what a set has come to for its accounts. Requires: they are locked, and `p_places` is from that.
CREATE FUNCTION economy._write_accounts(p_places tid[], p_touched boolean[], p_balances bigint[], p_reserved bigint[],
                                        p_used bigint[], p_spent boolean[], p_awaits boolean[], p_at timestamptz)
RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  v_today date := (p_at AT TIME ZONE 'UTC')::date;
  v_written integer;
BEGIN
  UPDATE economy.accounts AS a
     SET balance = d.balance,
         reserved = d.reserved,
         day = CASE WHEN d.spent THEN v_today ELSE a.day END,
         day_used = CASE WHEN d.spent THEN d.used ELSE a.day_used END,
         last_transfer_at = CASE WHEN d.spent THEN p_at ELSE a.last_transfer_at END,
         awaits_money = d.awaits
    FROM unnest(p_places, p_touched, p_balances, p_reserved, p_used, p_spent, p_awaits)
         AS d(place, touched, balance, reserved, used, spent, awaits)
   WHERE d.touched
     AND a.ctid = d.place;
  GET DIAGNOSTICS v_written = ROW_COUNT;
  IF v_written <> cardinality(array_positions(p_touched, true)) THEN
    RAISE EXCEPTION 'an account was written that is not locked' USING ERRCODE = 'serialization_failure';
  END IF;
END $$;

-- Appends to the ledger, in order. An element without a ledger id has not moved.
CREATE FUNCTION economy._post(p_kind text, p_guild_ids bigint[], p_member_ids bigint[], p_payers integer[],
                              p_targets integer[], p_amounts bigint[], p_transfer_ids uuid[], p_ledger_ids bigint[],
                              p_debit_after bigint[], p_credit_after bigint[], p_counted_on date[], p_reasons text[],
                              p_metadata text[], p_idempotency_keys text[], p_actor text, p_at timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO economy.transactions (id, transfer_id, kind, guild_id, debit_id, credit_id, amount, debit_after,
                                    credit_after, counted_on, reason, metadata, actor, idempotency_key, created_at)
         OVERRIDING SYSTEM VALUE
  SELECT k.ledger_id, k.transfer_id, p_kind, p_guild_ids[k.payer], p_member_ids[k.payer], p_member_ids[k.target],
         k.amount, k.debit_after, k.credit_after, k.counted_on, k.reason, nullif(k.metadata, '{}')::jsonb, p_actor,
         k.idempotency_key, p_at
    FROM unnest(p_ledger_ids, p_transfer_ids, p_payers, p_targets, p_amounts, p_debit_after, p_credit_after,
                p_counted_on, p_reasons, p_metadata, p_idempotency_keys)
         AS k(ledger_id, transfer_id, payer, target, amount, debit_after, credit_after, counted_on, reason, metadata,
              idempotency_key)
   WHERE k.ledger_id IS NOT NULL;
  IF p_kind = 'transfer' THEN
    INSERT INTO economy.outbox (type, subject, data)
    SELECT 'TransferCompleted', 'transfer/' || k.transfer_id,
           economy._outbox_data(k.transfer_id, p_guild_ids[k.payer], p_member_ids[k.payer], p_member_ids[k.target],
                                k.amount, ', "ledgerId": "' || k.ledger_id::text || '"')
      FROM unnest(p_ledger_ids, p_transfer_ids, p_payers, p_targets, p_amounts)
           AS k(ledger_id, transfer_id, payer, target, amount)
     WHERE k.ledger_id IS NOT NULL;
  END IF;
END $$;

-- Makes due what waits for money that is there now: of each credited payer the first 16 transfers that failed on the
-- balance, in order, and of those the ones that the balance covers. Answers how many. Requires: the accounts are locked
-- and written, so a check either was before and is seen here, or comes after and sees the balance.
CREATE FUNCTION economy._wake_credited(p_guild_ids bigint[], p_member_ids bigint[], p_credited boolean[],
                                       p_awaits boolean[], p_balances bigint[], p_reserved bigint[],
                                       p_at timestamptz) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
  v_worth uuid[];
  v_idle_guilds bigint[];
  v_idle_members bigint[];
BEGIN
  SELECT array_agg(w.transfer_id) FILTER (WHERE w.due_at > p_at AND w.amount <= k.balance - k.reserved),
         array_agg(k.guild_id) FILTER (WHERE w.transfer_id IS NULL),
         array_agg(k.member_id) FILTER (WHERE w.transfer_id IS NULL)
    INTO v_worth, v_idle_guilds, v_idle_members
    FROM unnest(p_guild_ids, p_member_ids, p_credited, p_awaits, p_balances, p_reserved)
         AS k(guild_id, member_id, credited, awaits, balance, reserved)
    LEFT JOIN LATERAL (SELECT w.transfer_id, w.amount, w.due_at
                         FROM economy.transfer_work AS w
                        WHERE w.guild_id = k.guild_id
                          AND w.initiator_id = k.member_id
                          AND NOT w.approved
                          AND w.failed_on & 1 = 1
                        ORDER BY w.seq
                        LIMIT 16) AS w ON true
   WHERE k.credited
     AND k.awaits;
  IF v_idle_members IS NOT NULL THEN
    UPDATE economy.accounts AS a
       SET awaits_money = false
      FROM unnest(v_idle_guilds, v_idle_members) AS k(guild_id, member_id)
     WHERE a.guild_id = k.guild_id
       AND a.member_id = k.member_id;
  END IF;
  RETURN CASE WHEN v_worth IS NULL THEN 0 ELSE economy._make_due(v_worth, p_at) END;
END $$;

-- Claims the ids of the items that are `new`, for a set whose caller chose them. Raises unique_violation if one names a
-- transfer of the pool; the ledger's own key refuses the others.
CREATE FUNCTION economy._use_ids(p_transfer_ids uuid[], p_outcomes text[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  v_ids uuid[];
  v_used uuid;
BEGIN
  SELECT array_agg(k.transfer_id) INTO v_ids
    FROM unnest(p_transfer_ids, p_outcomes) AS k(transfer_id, outcome)
   WHERE k.outcome = 'new';
  IF v_ids IS NULL THEN RETURN; END IF;
  PERFORM economy._claim_ids(v_ids);
  SELECT p.transfer_id INTO v_used FROM economy.pending_transfers AS p WHERE p.transfer_id = ANY (v_ids) LIMIT 1;
  IF FOUND THEN RAISE EXCEPTION 'transfer % is in the pool', v_used USING ERRCODE = 'unique_violation'; END IF;
END $$;

-- ── Keys ──────────────────────────────────────────────────────────────────────────────────────────────────────────

-- What the idempotency keys of a set say of its items.
CREATE TYPE economy._classes AS (
  outcomes  text[],    -- new · repeat (the same as an earlier item of this set) · existing · conflict (the key was used
                       -- for something else); what p_outcomes says of an item that is not new
  known_ids uuid[],    -- of the transfer that has the key
  firsts    integer[]  -- the place of the first item of this set with the same key
);

-- Requires: the payers are locked, which is what makes the answer last. p_outcomes: which items are `new` so far.
CREATE FUNCTION economy._classify(p_outcomes text[], p_guild_ids bigint[], p_payer_ids bigint[], p_target_ids bigint[],
                                  p_amounts bigint[], p_reasons text[], p_metadata text[], p_idempotency_keys text[])
RETURNS economy._classes
LANGUAGE plpgsql STABLE AS $$
DECLARE
  v economy._classes;
BEGIN
  SELECT array_agg(CASE WHEN i.outcome <> 'new' OR i.idempotency_key IS NULL THEN i.outcome
                        WHEN known.same THEN 'existing'
                        WHEN known.transfer_id IS NOT NULL THEN 'conflict'
                        WHEN i.first = i.n THEN 'new'
                        WHEN (i.target_id, i.amount, i.reason, i.metadata)
                             IS NOT DISTINCT FROM (i.first_target, i.first_amount, i.first_reason, i.first_metadata)
                        THEN 'repeat'
                        ELSE 'conflict'
                   END ORDER BY i.n),
         array_agg(known.transfer_id ORDER BY i.n),
         array_agg(i.first::integer ORDER BY i.n)
    INTO v.outcomes, v.known_ids, v.firsts
    FROM (SELECT k.*,
                 first_value(k.n) OVER same_key AS first,
                 first_value(k.target_id) OVER same_key AS first_target,
                 first_value(k.amount) OVER same_key AS first_amount,
                 first_value(k.reason) OVER same_key AS first_reason,
                 first_value(k.metadata) OVER same_key AS first_metadata
            FROM (SELECT k.n, k.outcome, k.guild_id, k.payer_id, k.target_id, k.amount, k.reason, k.idempotency_key,
                         coalesce(k.metadata::jsonb, '{}') AS metadata
                    FROM unnest(p_outcomes, p_guild_ids, p_payer_ids, p_target_ids, p_amounts, p_reasons, p_metadata,
                                p_idempotency_keys) WITH ORDINALITY
                         AS k(outcome, guild_id, payer_id, target_id, amount, reason, metadata, idempotency_key, n)) AS k
          WINDOW same_key AS (PARTITION BY k.outcome, k.guild_id, k.payer_id, k.idempotency_key ORDER BY k.n)) AS i
    LEFT JOIN LATERAL (
           SELECT p.transfer_id,
                  (p.target_id, p.amount, p.reason, p.metadata)
                  IS NOT DISTINCT FROM (i.target_id, i.amount, i.reason, i.metadata) AS same
             FROM economy.pending_transfers AS p
            WHERE p.guild_id = i.guild_id AND p.initiator_id = i.payer_id AND p.idempotency_key = i.idempotency_key
            UNION ALL
           SELECT t.transfer_id,
                  (t.credit_id, t.amount, t.reason, coalesce(t.metadata, '{}'))
                  IS NOT DISTINCT FROM (i.target_id, i.amount, i.reason, i.metadata)
             FROM economy.transactions AS t
            WHERE t.guild_id = i.guild_id AND t.debit_id = i.payer_id AND t.idempotency_key = i.idempotency_key
              AND t.kind = 'transfer'
            LIMIT 1) AS known ON i.outcome = 'new';
  RETURN v;
END $$;

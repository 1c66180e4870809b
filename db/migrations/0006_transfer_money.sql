-- How money moves: always as a set. Functions whose name begins with _ are the parts; who calls one must hold the locks
-- that its comment asks for. READ COMMITTED is what makes them right: each statement after a lock sees what was
-- committed before the lock was granted.
--
-- Every set goes the same way: its accounts are locked and read by one statement (_lock_parties), the steps are taken
-- one by one in memory (_settle), and what they come to is written by one statement for each table. Starting a
-- statement costs as much as several of its rows, so there are few of them.
--
-- Joins are from a list to a table by its key, never between two lists: to the planner lists are short, and it would
-- compare each with each. transfer_work is not joined at all: it is empty whenever somebody counts it, and the planner
-- would read all of it. There, and where a row may be missing, `= ANY` or a scalar subquery leave no way but the index.

-- A transfer on its way through a set. Sets are arrays of these: one array costs less than one for each column.
CREATE TYPE economy._item AS (
  step            text,         -- check: reserve if the rules allow · complete: move what is reserved · now: move at
                                -- once if the rules allow · mint · burn: move · NULL: nothing is to be done
  place           bigint,       -- the order within the set; in the pool its seq
  transfer_id     uuid,
  guild_id        bigint,
  initiator_id    bigint,
  target_id       bigint,
  amount          bigint,
  reason          text,
  metadata        jsonb,        -- of the synchronous mode, as is the key
  idempotency_key text,
  retry_count     integer,      -- of the pool, as is the rest
  expires_at      timestamptz,
  next_attempt_at timestamptz,  -- NULL: checked for the first time
  failed_before   smallint
);

-- What the checks gave, what they saw, and what follows for a transfer of the pool.
CREATE TYPE economy._verdict AS (
  failed_on       smallint,     -- 0: passed; 1 balance + 2 cooldown + 4 daily_limit; 8: expired; NULL: not tried
  available       bigint,
  used            bigint,
  throttled_until timestamptz,
  daily_limit     bigint,
  status          text,
  retries         integer,      -- made, this one included
  retry_at        timestamptz,  -- the next that counts
  due_at          timestamptz,  -- when to look again, which is sooner where what failed clears by itself
  moves           boolean       -- whether pending_transfers shows it: not an early try that found what was known
);

-- Who takes part in a set, locked.
CREATE TYPE economy._parties AS (
  accounts economy.accounts[],  -- in order of guild and member, as they were when they were locked
  payers   integer[],           -- for each item its payer's place among them; 0: none
  targets  integer[],           -- the same; whoever is only checked has none
  at       timestamptz          -- after the last lock was granted; everything is judged by it
);

-- Locks the parties of a set: of what is only checked the payers, of everything else both sides. Whoever has no
-- account gets one: what is not there cannot be locked, and could appear, with money, before it is looked at. Accounts
-- are opened before any is locked, and all are locked by one statement: so there is one order, and two sessions never
-- wait for each other.
CREATE FUNCTION economy._lock_parties(p_items economy._item[]) RETURNS economy._parties
LANGUAGE plpgsql AS $$
DECLARE
  v economy._parties;
  v_guilds bigint[];
  v_members bigint[];
  v_any_missing boolean;
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'money moves only in READ COMMITTED transactions' USING ERRCODE = 'invalid_transaction_state',
      HINT = 'What was committed while this one waited for a lock would not be seen.';
  END IF;
  -- A party's rank is its place among the accounts.
  SELECT array_agg(CASE WHEN l.here THEN l.rank ELSE 0 END) FILTER (WHERE l.side = 0),
         array_agg(CASE WHEN l.here THEN l.rank ELSE 0 END) FILTER (WHERE l.side = 1),
         array_agg(l.guild_id) FILTER (WHERE l.here AND l.nth = 1),
         array_agg(l.member_id) FILTER (WHERE l.here AND l.nth = 1),
         bool_or((SELECT true FROM economy.accounts AS a
                   WHERE a.guild_id = l.guild_id AND a.member_id = l.member_id) IS NULL)
           FILTER (WHERE l.here AND l.nth = 1)
    INTO v.payers, v.targets, v_guilds, v_members, v_any_missing
    FROM (SELECT l.*,
                 (dense_rank() OVER (ORDER BY NOT l.here, l.guild_id, l.member_id))::integer AS rank,
                 row_number() OVER (PARTITION BY NOT l.here, l.guild_id, l.member_id ORDER BY l.n, l.side) AS nth
            FROM (SELECT k.ordinality AS n, s.side, k.guild_id,
                         CASE WHEN s.side = 0 THEN k.initiator_id ELSE k.target_id END AS member_id,
                         k.step IS NOT NULL AND (s.side = 0 OR k.step <> 'check') AS here
                    FROM unnest(p_items) WITH ORDINALITY AS k
                   CROSS JOIN generate_series(0, 1) AS s(side)) AS l
           ORDER BY l.n, l.side) AS l;
  IF v_any_missing THEN
    INSERT INTO economy.accounts (guild_id, member_id)
    SELECT k.guild_id, k.member_id
      FROM unnest(v_guilds, v_members) AS k(guild_id, member_id)
     WHERE (SELECT true FROM economy.accounts AS a
             WHERE a.guild_id = k.guild_id AND a.member_id = k.member_id) IS NULL
     ORDER BY k.guild_id, k.member_id
        ON CONFLICT DO NOTHING;
  END IF;
  SELECT array_agg(a.account) INTO v.accounts
    FROM (SELECT a AS account
            FROM unnest(v_guilds, v_members) AS k(guild_id, member_id)
            JOIN economy.accounts AS a ON a.guild_id = k.guild_id AND a.member_id = k.member_id
           ORDER BY a.guild_id, a.member_id
             FOR NO KEY UPDATE OF a) AS a;  -- an insert that refers to an account need not wait for it
  IF cardinality(v.accounts) IS DISTINCT FROM cardinality(v_guilds) THEN  -- places would be wrong
    RAISE EXCEPTION 'an account is not there any more' USING ERRCODE = 'serialization_failure';
  END IF;
  v.at := clock_timestamp();
  RETURN v;
END $$;

-- Which items cannot be done now because somebody keeps one of their accounts, locked or being opened; with one goes
-- whoever has its key. The accounts of the others are locked afterwards. What is not free at once is waited for a
-- moment each, and a tenth of a second in all: a transaction like this one is over by then, and a stranger who forgets
-- to commit holds up only those who deal with the same accounts. Such waits may be out of order, but none is long
-- enough to be a deadlock.
CREATE FUNCTION economy._kept(p_items economy._item[]) RETURNS boolean[]
LANGUAGE plpgsql AS $$
DECLARE
  v_lock_timeout text := current_setting('lock_timeout');
  v_until timestamptz := clock_timestamp() + interval '100 ms';
  v_guilds bigint[];
  v_members bigint[];
  v_free text[];
  v_kept boolean[];
BEGIN
  SELECT array_agg(k.guild_id), array_agg(k.member_id) INTO v_guilds, v_members
    FROM (SELECT DISTINCT i.guild_id, side.member_id
            FROM unnest(p_items) AS i
           CROSS JOIN LATERAL (VALUES (i.initiator_id), (CASE WHEN i.step <> 'check' THEN i.target_id END))
                 AS side(member_id)
           WHERE i.step IS NOT NULL
             AND side.member_id IS NOT NULL
           ORDER BY i.guild_id, side.member_id) AS k;
  PERFORM set_config('lock_timeout', '20ms', true);
  FOR n IN 1 .. coalesce(cardinality(v_guilds), 0) LOOP
    EXIT WHEN clock_timestamp() > v_until;
    CONTINUE WHEN EXISTS (SELECT FROM economy.accounts AS a
                           WHERE a.guild_id = v_guilds[n] AND a.member_id = v_members[n]);
    BEGIN
      INSERT INTO economy.accounts (guild_id, member_id) VALUES (v_guilds[n], v_members[n]) ON CONFLICT DO NOTHING;
    EXCEPTION WHEN lock_not_available THEN
      NULL;  -- whoever opens it is not done: it is not found below
    END;
  END LOOP;
  SELECT coalesce(array_agg(a.guild_id || '/' || a.member_id), '{}') INTO v_free
    FROM (SELECT a.guild_id, a.member_id
            FROM unnest(v_guilds, v_members) AS k(guild_id, member_id)
            JOIN economy.accounts AS a USING (guild_id, member_id)
           ORDER BY a.guild_id, a.member_id
             FOR NO KEY UPDATE OF a SKIP LOCKED) AS a;
  FOR n IN 1 .. coalesce(cardinality(v_guilds), 0) LOOP
    EXIT WHEN clock_timestamp() > v_until;
    CONTINUE WHEN v_guilds[n] || '/' || v_members[n] = ANY (v_free);
    BEGIN
      PERFORM FROM economy.accounts AS a
        WHERE a.guild_id = v_guilds[n] AND a.member_id = v_members[n]
          FOR NO KEY UPDATE;
      IF FOUND THEN v_free := v_free || (v_guilds[n] || '/' || v_members[n]); END IF;
    EXCEPTION WHEN lock_not_available THEN
      NULL;
    END;
  END LOOP;
  SELECT array_agg(CASE WHEN k.idempotency_key IS NULL THEN k.kept ELSE k.key_is_kept END ORDER BY k.ordinality)
    INTO v_kept
    FROM (SELECT i.*, bool_or(i.kept) OVER (PARTITION BY i.guild_id, i.initiator_id, i.idempotency_key) AS key_is_kept
            FROM (SELECT i.*,
                         i.step IS NOT NULL
                         AND NOT (i.guild_id || '/' || i.initiator_id = ANY (v_free)
                                  AND (i.step = 'check' OR i.guild_id || '/' || i.target_id = ANY (v_free))) AS kept
                    FROM unnest(p_items) WITH ORDINALITY AS i) AS i) AS k;
  PERFORM set_config('lock_timeout', v_lock_timeout, true);
  RETURN v_kept;
END $$;

-- Items without their steps, where they are marked.
CREATE FUNCTION economy._without(p_items economy._item[], p_marked boolean[]) RETURNS economy._item[]
LANGUAGE plpgsql AS $$
BEGIN
  FOR n IN 1 .. cardinality(p_items) LOOP
    IF p_marked[n] THEN p_items[n].step := NULL; END IF;
  END LOOP;
  RETURN p_items;
END $$;

-- Makes due what waits for a balance that is there now: the first 16 of each credited payer that failed on it, in
-- order, and of those the ones it suffices for. Who calls holds the accounts' locks: a check either was before and is
-- seen here, or comes after and sees the balance. A row that is locked has somebody looking at it already.
CREATE FUNCTION economy._wake_credited(p_accounts economy.accounts[], p_credited boolean[], p_balance bigint[],
                                       p_reserved bigint[], p_at timestamptz) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
  v_worth uuid[];
  v_free uuid[];
BEGIN
  SELECT array_agg(w.transfer_id) INTO v_worth
    FROM ROWS FROM (unnest(p_accounts), unnest(p_credited), unnest(p_balance), unnest(p_reserved))
         AS k(guild_id, member_id, kind, was_balance, was_reserved, last_transfer_at, day, day_used, created_at,
              credited, balance, reserved)
   CROSS JOIN LATERAL (SELECT w.transfer_id, w.amount, w.due_at
                         FROM economy.transfer_work AS w
                        WHERE w.guild_id = k.guild_id
                          AND w.initiator_id = k.member_id
                          AND NOT w.approved
                          AND w.failed_on & 1 = 1
                        ORDER BY w.seq
                        LIMIT 16) AS w
   WHERE k.credited
     AND w.due_at > p_at
     AND w.amount <= k.balance - k.reserved;
  IF v_worth IS NULL THEN RETURN 0; END IF;
  SELECT array_agg(w.transfer_id) INTO v_free
    FROM (SELECT transfer_id FROM economy.transfer_work WHERE transfer_id = ANY (v_worth) FOR UPDATE SKIP LOCKED) AS w;
  UPDATE economy.transfer_work SET due_at = p_at WHERE transfer_id = ANY (v_free);
  RETURN coalesce(cardinality(v_free), 0);
END $$;

CREATE FUNCTION economy._outbox_data(p_transfer_id uuid, p_guild_id bigint, p_initiator_id bigint, p_target_id bigint,
                                     p_amount bigint, p_more text) RETURNS jsonb
LANGUAGE sql IMMUTABLE AS $$
  SELECT ('{"transferId": "' || p_transfer_id::text || '", "guildId": "' || p_guild_id::text || '", "initiatorId": "'
          || p_initiator_id::text || '", "targetId": "' || p_target_id::text || '", "amount": "' || p_amount::text
          || '"' || p_more || '}')::jsonb
$$;

CREATE FUNCTION economy._refuse_id(p_transfer_id uuid) RETURNS uuid
LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'transfer % is in the pool', p_transfer_id USING ERRCODE = 'unique_violation';
END $$;

-- What a set comes to, one element for each item.
CREATE TYPE economy._settlement AS (
  verdicts     economy._verdict[],  -- of what was checked
  ledger_ids   bigint[],            -- of what moved, as are the balances it left
  debit_after  bigint[],
  credit_after bigint[],
  woken        integer              -- how many waiting transfers became due by it
);

-- Takes the steps of a set, one after the other as given, each upon what the one before has left. What is checked and
-- passes starts the cooldown and takes of the day's allowance, and what fails takes nothing. Then writes what the
-- steps come to: accounts netted, the ledger in order, each row with the balances it left, and the outbox. In the pool
-- a failed try counts as a retry, unless it is the first (p_fresh) or comes before its time: such early tries count
-- nothing, and after 16 of a payer's have failed its further ones are not made, so that whoever can cause them can
-- only cost so much. The last retry that fails rejects.
CREATE FUNCTION economy._settle(p_items economy._item[], p_parties economy._parties, p_fresh boolean, p_actor text)
RETURNS economy._settlement
LANGUAGE plpgsql AS $$
DECLARE
  i economy._item;
  n integer := 0;
  p integer;
  t integer;
  v_at timestamptz := p_parties.at;
  v_payers integer[] := p_parties.payers;
  v_targets integer[] := p_parties.targets;
  s economy.guild_settings;
  -- Of each party, as the steps change it.
  v_kind text[];
  v_balance bigint[];
  v_reserved bigint[];
  v_used bigint[];
  v_last timestamptz[];
  v_early_failures integer[];
  v_touched boolean[];
  v_spent boolean[];     -- counts against the day and the cooldown
  v_credited boolean[];
  -- Of each item.
  v_verdicts economy._verdict[];
  v_ledger_ids bigint[];
  v_debit_after bigint[];
  v_credit_after bigint[];
  -- Of the item at hand.
  v_early boolean;
  v_available bigint;
  v_until timestamptz;
  v_failed smallint;
  v_verdict economy._verdict;
  r economy._settlement;
BEGIN
  SELECT array_agg(a.kind), array_agg(a.balance), array_agg(a.reserved),
         array_agg(economy._used_on(a.day, a.day_used, v_at)), array_agg(a.last_transfer_at), array_agg(0),
         array_agg(false), array_agg(false), array_agg(false)
    INTO v_kind, v_balance, v_reserved, v_used, v_last, v_early_failures, v_touched, v_spent, v_credited
    FROM unnest(p_parties.accounts) AS a;

  FOREACH i IN ARRAY p_items LOOP
    n := n + 1;
    p := v_payers[n];
    v_verdict := NULL;
    v_failed := CASE WHEN i.step IS NOT NULL THEN 0 END;
    IF i.step IN ('check', 'now') THEN
      IF s.guild_id IS DISTINCT FROM i.guild_id THEN
        SELECT * INTO s FROM economy._settings(i.guild_id);
        s.guild_id := i.guild_id;
      END IF;
      v_available := v_balance[p] - v_reserved[p];
      v_until := economy._throttled_until(v_last[p], s.cooldown_seconds);
      v_early := coalesce(i.next_attempt_at > v_at, false);
      v_failed := CASE WHEN i.expires_at < v_at THEN 8
                       WHEN v_early AND v_early_failures[p] >= 16 THEN NULL
                       ELSE CASE WHEN economy._rule_balance(v_available, i.amount) THEN 0 ELSE 1 END
                          + CASE WHEN economy._rule_cooldown(v_kind[p], v_until, v_at) THEN 0 ELSE 2 END
                          + CASE WHEN economy._rule_daily_limit(v_kind[p], v_used[p], s.daily_limit, i.amount) THEN 0
                                 ELSE 4 END
                  END;
      v_verdict := ROW(v_failed, v_available, v_used[p], v_until, s.daily_limit, 'approved', i.retry_count,
                       coalesce(i.next_attempt_at, v_at), v_at, NOT v_early OR v_failed <> i.failed_before);
      IF i.step = 'check' AND NOT v_early AND NOT p_fresh AND v_failed <> 8 THEN
        v_verdict.retries := i.retry_count + 1;
      END IF;
      IF v_failed = 0 THEN
        IF v_kind[p] <> 'government' THEN
          v_used[p] := economy._add_used(v_used[p], i.amount);
          v_last[p] := v_at;
          v_spent[p] := true;
        END IF;
      ELSIF v_failed = 8 OR NOT v_early AND v_verdict.retries >= s.max_retries THEN
        v_verdict.status := 'rejected';
      ELSE
        v_verdict.status := 'checking';
        IF v_early THEN
          v_early_failures[p] := v_early_failures[p] + 1;
        ELSE
          v_verdict.retry_at := v_at + economy._backoff(v_verdict.retries);
        END IF;
        v_verdict.due_at := least(v_verdict.retry_at,
                                  CASE v_failed WHEN 2 THEN v_until
                                                WHEN 4 THEN economy._day_ends(v_at)
                                                WHEN 6 THEN greatest(v_until, economy._day_ends(v_at))
                                  END);
      END IF;
    END IF;
    v_verdicts[n] := v_verdict;
    v_ledger_ids[n] := NULL;
    v_debit_after[n] := NULL;
    v_credit_after[n] := NULL;

    IF v_failed = 0 THEN
      v_touched[p] := true;
      IF i.step = 'check' THEN
        v_reserved[p] := v_reserved[p] + i.amount;
      ELSE
        t := v_targets[n];
        IF i.step = 'complete' THEN v_reserved[p] := v_reserved[p] - i.amount; END IF;
        v_balance[p] := v_balance[p] - i.amount;
        v_balance[t] := v_balance[t] + i.amount;
        v_touched[t] := true;
        v_credited[t] := true;
        v_ledger_ids[n] := nextval('economy.transactions_id_seq');
        v_debit_after[n] := v_balance[p];
        v_credit_after[n] := v_balance[t];
      END IF;
    END IF;
  END LOOP;

  IF true = ANY (v_touched) THEN
    UPDATE economy.accounts AS a
       SET balance = a.balance + (d.new_balance - d.balance),
           reserved = a.reserved + (d.new_reserved - d.reserved),
           day = CASE WHEN d.spent THEN (v_at AT TIME ZONE 'UTC')::date ELSE a.day END,
           day_used = CASE WHEN d.spent THEN d.new_used ELSE a.day_used END,
           last_transfer_at = CASE WHEN d.spent THEN v_at ELSE a.last_transfer_at END
      FROM ROWS FROM (unnest(p_parties.accounts), unnest(v_touched), unnest(v_balance), unnest(v_reserved),
                      unnest(v_used), unnest(v_spent))
           AS d(guild_id, member_id, kind, balance, reserved, last_transfer_at, day, day_used, created_at, touched,
                new_balance, new_reserved, new_used, spent)
     WHERE d.touched
       AND a.guild_id = d.guild_id
       AND a.member_id = d.member_id;
  END IF;
  r.woken := 0;
  IF true = ANY (v_credited) THEN
    INSERT INTO economy.transactions (id, transfer_id, kind, guild_id, debit_id, credit_id, amount, debit_after,
                                      credit_after, reason, metadata, actor, idempotency_key, created_at)
           OVERRIDING SYSTEM VALUE
    SELECT k.ledger_id,
           -- Looked at under the payer's lock, as the trigger of the pool looks at the ledger.
           CASE WHEN k.step = 'now' AND (SELECT true FROM economy.pending_transfers AS p
                                          WHERE p.transfer_id = k.transfer_id)
                THEN economy._refuse_id(k.transfer_id) ELSE k.transfer_id
           END,
           CASE WHEN k.step IN ('mint', 'burn') THEN k.step ELSE 'transfer' END, k.guild_id,
           k.initiator_id, k.target_id, k.amount, k.debit_after, k.credit_after, k.reason, k.metadata, p_actor,
           k.idempotency_key, v_at
      FROM ROWS FROM (unnest(p_items), unnest(v_ledger_ids), unnest(v_debit_after), unnest(v_credit_after))
           AS k(step, place, transfer_id, guild_id, initiator_id, target_id, amount, reason, metadata, idempotency_key,
                retry_count, expires_at, next_attempt_at, failed_before, ledger_id, debit_after, credit_after)
     WHERE k.ledger_id IS NOT NULL;
    INSERT INTO economy.outbox (type, subject, data)
    SELECT 'TransferCompleted', 'transfer/' || k.transfer_id,
           economy._outbox_data(k.transfer_id, k.guild_id, k.initiator_id, k.target_id, k.amount,
                                ', "ledgerId": "' || k.ledger_id::text || '"')
      FROM ROWS FROM (unnest(p_items), unnest(v_ledger_ids))
           AS k(step, place, transfer_id, guild_id, initiator_id, target_id, amount, reason, metadata, idempotency_key,
                retry_count, expires_at, next_attempt_at, failed_before, ledger_id)
     WHERE k.ledger_id IS NOT NULL
       AND k.step IN ('now', 'complete');
    r.woken := economy._wake_credited(p_parties.accounts, v_credited, v_balance, v_reserved, v_at);
  END IF;
  r.verdicts := v_verdicts;
  r.ledger_ids := v_ledger_ids;
  r.debit_after := v_debit_after;
  r.credit_after := v_credit_after;
  RETURN r;
END $$;

-- What a rejection leaves behind, whatever the reason.
CREATE FUNCTION economy._tell_denied(p_ids uuid[], p_reason text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO economy.transfer_denials (guild_id, seq, transfer_id, reason)
  SELECT guild_id, seq, transfer_id, p_reason
    FROM economy.pending_transfers
   WHERE transfer_id = ANY (p_ids);
  INSERT INTO economy.outbox (type, subject, data)
  SELECT 'TransferDenied', 'transfer/' || transfer_id,
         economy._outbox_data(transfer_id, guild_id, initiator_id, target_id, amount, ', "reason": "' || p_reason || '"')
    FROM economy.pending_transfers
   WHERE transfer_id = ANY (p_ids)
   ORDER BY seq;
  PERFORM pg_notify('economy_events',
                    economy._transfer_event('"transaction_denied", "reason": "' || p_reason || '"',
                                            transfer_id, guild_id, initiator_id, target_id, amount))
     FROM economy.pending_transfers
    WHERE transfer_id = ANY (p_ids)
    ORDER BY seq;
END $$;

-- Rejects what is not approved yet. Who calls holds the work rows.
CREATE FUNCTION economy._deny(p_ids uuid[], p_reason text, p_at timestamptz) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
  v_denied uuid[];
BEGIN
  SELECT array_agg(transfer_id) INTO v_denied
    FROM economy.pending_transfers
   WHERE transfer_id = ANY (p_ids)
     AND status IN ('pending', 'checking');
  IF v_denied IS NULL THEN RETURN 0; END IF;
  DELETE FROM economy.transfer_work WHERE transfer_id = ANY (v_denied);
  UPDATE economy.pending_transfers
     SET status = 'rejected',
         updated_at = p_at
   WHERE transfer_id = ANY (v_denied);
  PERFORM economy._tell_denied(v_denied, p_reason);
  RETURN cardinality(v_denied);
END $$;

-- Shows what was checked, first tries (p_fresh) and retries alike: as approved, waiting or rejected, and tells. Who
-- calls holds the work rows, unless the transfers were inserted by the same statement.
CREATE FUNCTION economy._show_checked(p_items economy._item[], v economy._verdict[], p_fresh boolean, p_at timestamptz,
                                      OUT approved integer, OUT waiting integer, OUT denied integer)
LANGUAGE plpgsql AS $$
DECLARE
  v_told integer;
  v_failed uuid[];
  v_expired uuid[];
BEGIN
  IF NOT p_fresh THEN
    FOR n IN 1 .. cardinality(p_items) LOOP
      CONTINUE WHEN p_items[n].step IS DISTINCT FROM 'check';
      IF v[n].status = 'rejected' THEN
        DELETE FROM economy.transfer_work WHERE transfer_id = p_items[n].transfer_id;
      ELSE
        UPDATE economy.transfer_work
           SET approved = v[n].status = 'approved',
               failed_on = coalesce(v[n].failed_on, failed_on),
               due_at = v[n].due_at,
               next_attempt_at = v[n].retry_at
         WHERE transfer_id = p_items[n].transfer_id;
      END IF;
    END LOOP;
  END IF;

  WITH k AS MATERIALIZED (
    SELECT k.* FROM ROWS FROM (unnest(p_items), unnest(v)) AS k WHERE k.step = 'check'
  ),
  begun AS (
    INSERT INTO economy.transfer_work (transfer_id, seq, guild_id, initiator_id, amount, lane, approved, failed_on,
                                       due_at, next_attempt_at, expires_at)
    SELECT transfer_id, place, guild_id, initiator_id, amount, economy._lane(guild_id), status = 'approved', failed_on,
           due_at, retry_at, expires_at
      FROM k
     WHERE p_fresh
       AND status <> 'rejected'
  ),
  moved AS (
    UPDATE economy.pending_transfers AS p
       SET status = k.status,
           checks = coalesce(economy._checks(k.failed_on), p.checks),
           retry_count = k.retries,
           updated_at = p_at
      FROM k
     WHERE k.moves
       AND p.transfer_id = k.transfer_id
       AND p.status IN ('pending', 'checking')
  ),
  appended AS (
    INSERT INTO economy.outbox (type, subject, data)
    SELECT 'TransferApproved', 'transfer/' || transfer_id,
           economy._outbox_data(transfer_id, guild_id, initiator_id, target_id, amount, '')
      FROM k
     WHERE status = 'approved'
  ),
  told AS (  -- CASE and not a list of VALUES, whose expressions would be compiled again for every row
    SELECT pg_notify('economy_events', CASE e.n
             WHEN 1 THEN economy._balance_event(failed_on & 1 = 0, transfer_id, guild_id, initiator_id, available,
                                                amount)
             WHEN 2 THEN economy._cooldown_event(failed_on & 2 = 0, transfer_id, guild_id, initiator_id, throttled_until)
             WHEN 3 THEN economy._daily_limit_event(failed_on & 4 = 0, transfer_id, guild_id, initiator_id, used, amount,
                                                    daily_limit)
             ELSE economy._transfer_event('"transfer_check_approved"', transfer_id, guild_id, initiator_id, target_id,
                                          amount)
           END)
      FROM k
     CROSS JOIN generate_series(1, 4) AS e(n)
     WHERE failed_on < 8
       AND (e.n < 4 OR failed_on = 0)
  )
  SELECT count(*) FILTER (WHERE status = 'approved'), count(*) FILTER (WHERE status = 'checking'),
         count(*) FILTER (WHERE status = 'rejected'), (SELECT count(*) FROM told),
         array_agg(transfer_id) FILTER (WHERE status = 'rejected' AND failed_on <> 8),
         array_agg(transfer_id) FILTER (WHERE failed_on = 8)
    INTO approved, waiting, denied, v_told, v_failed, v_expired
    FROM k;
  IF v_failed IS NOT NULL THEN PERFORM economy._tell_denied(v_failed, 'transfer_checks_failed'); END IF;
  IF v_expired IS NOT NULL THEN PERFORM economy._tell_denied(v_expired, 'transfer_checks_expired'); END IF;
END $$;

-- Checking starts with the insert, whoever inserts.
CREATE FUNCTION economy._begin_checking() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  v_items economy._item[];
  v_parties economy._parties;
  v_used record;
BEGIN
  SELECT array_agg(ROW('check', seq, transfer_id, guild_id, initiator_id, target_id, amount, NULL, NULL,
                       idempotency_key, retry_count, expires_at, NULL, NULL)::economy._item)
    INTO v_items
    FROM (SELECT * FROM inserted ORDER BY seq) AS i;
  IF v_items IS NULL THEN RETURN NULL; END IF;
  v_parties := economy._lock_parties(v_items);
  SELECT i.transfer_id, i.idempotency_key, i.initiator_id, i.id_is_used INTO v_used
    FROM (SELECT i.*, (SELECT true FROM economy.transactions AS t WHERE t.transfer_id = i.transfer_id) AS id_is_used
            FROM inserted AS i) AS i
   WHERE i.id_is_used
      OR i.idempotency_key IS NOT NULL
         AND (SELECT true
                FROM economy.transactions AS t
               WHERE t.guild_id = i.guild_id AND t.debit_id = i.initiator_id AND t.idempotency_key = i.idempotency_key
                 AND t.kind = 'transfer')
   LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION USING ERRCODE = 'unique_violation',
      MESSAGE = CASE WHEN v_used.id_is_used
                     THEN format('transfer %s has been carried out before', v_used.transfer_id)
                     ELSE format('idempotency key %s of member %s was used for a synchronous transfer',
                                 v_used.idempotency_key, v_used.initiator_id)
                END;
  END IF;
  PERFORM economy._show_checked(v_items, (economy._settle(v_items, v_parties, true, NULL)).verdicts, true,
                                v_parties.at);
  PERFORM pg_notify('economy_work', '');  -- a node should look; many of these in one transaction are one
  RETURN NULL;
END $$;
CREATE TRIGGER pending_transfers_check AFTER INSERT ON economy.pending_transfers
  REFERENCING NEW TABLE AS inserted
  FOR EACH STATEMENT EXECUTE FUNCTION economy._begin_checking();

-- Open transfers as items, in order: those to be completed, or those to be checked again. Only what is in the right
-- state: who calls holds their work rows, so it stays so.
CREATE FUNCTION economy._items(p_ids uuid[], p_step text) RETURNS economy._item[]
LANGUAGE plpgsql AS $$
DECLARE
  v_items economy._item[];
BEGIN
  SELECT array_agg(ROW(p_step, t.seq, t.transfer_id, t.guild_id, t.initiator_id, t.target_id, t.amount, t.reason, NULL,
                       NULL, t.retry_count, t.expires_at, t.next_attempt_at, t.failed_on)::economy._item)
    INTO v_items
    FROM (SELECT p.*, w.next_attempt_at, w.failed_on
            FROM unnest(p_ids) AS k(transfer_id)
            JOIN economy.pending_transfers AS p USING (transfer_id)
            LEFT JOIN LATERAL (SELECT w.next_attempt_at, w.failed_on
                                 FROM economy.transfer_work AS w
                                WHERE w.transfer_id = p.transfer_id AND p_step = 'check'
                                LIMIT 1) AS w ON true
           WHERE CASE p_step WHEN 'complete' THEN p.status = 'approved' ELSE p.status IN ('pending', 'checking') END
           ORDER BY p.seq) AS t;
  RETURN coalesce(v_items, '{}');
END $$;

-- Shows what was completed. Who calls holds the work rows.
CREATE FUNCTION economy._show_completed(p_ids uuid[], p_at timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM economy.transfer_work WHERE transfer_id = ANY (p_ids);
  UPDATE economy.pending_transfers
     SET status = 'completed',
         updated_at = p_at
   WHERE transfer_id = ANY (p_ids);
END $$;

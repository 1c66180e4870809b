-- The pool, on the steps of 0024: checks reserve the money of a transfer or let it wait, and completing moves it.

-- ── The pool: checking ────────────────────────────────────────────────────────────────────────────────────────────

-- A transfer of the pool that is to be checked.
CREATE TYPE economy._waiting AS (
  seq             bigint,
  transfer_id     uuid,
  guild_id        bigint,
  initiator_id    bigint,
  target_id       bigint,
  amount          bigint,
  retry_count     integer,
  expires_at      timestamptz,
  max_retries     integer,
  next_attempt_at timestamptz,  -- NULL: checked for the first time, as is the next
  failed_before   smallint
);

-- What the checks gave, what they saw, and what follows.
CREATE TYPE economy._verdict AS (
  failed_on       smallint,     -- 0: passed; 1 balance + 2 cooldown + 4 daily_limit; 8: expired
  available       bigint,
  used            bigint,
  throttled_until timestamptz,
  daily_limit     bigint,
  status          text,
  retries         integer,      -- made, this one included
  retry_at        timestamptz,  -- the next that counts
  due_at          timestamptz,  -- when to look again
  moves           boolean,      -- whether pending_transfers shows it: not an early look that found what was known
  told            boolean,      -- false: one of many looks that found nothing new, and is not announced
  parked          boolean,      -- waits for the cooldown behind 16 others of its payer
  counted_on      date          -- the UTC day whose allowance it used
);

-- What follows for a transfer that failed: it waits or is rejected. A failed try counts as a retry, and the last one
-- rejects, unless
--   * it is the first (p_fresh);
--   * it comes before its time, because something has changed;
--   * only the cooldown or the day's limit is in the way: that ends at a known time, and the next try is then. A parked
--     transfer is tried when it has moved up (_move_up), and an hour later in any case.
CREATE FUNCTION economy._wait_or_reject(v economy._verdict, i economy._waiting, p_guilds_max_retries integer,
                                        p_fresh boolean, p_at timestamptz) RETURNS economy._verdict
LANGUAGE plpgsql AS $$
DECLARE
  v_clears timestamptz := CASE v.failed_on WHEN 2 THEN v.throttled_until
                                           WHEN 4 THEN economy._day_ends(p_at)
                                           WHEN 6 THEN greatest(v.throttled_until, economy._day_ends(p_at))
                          END;
BEGIN
  v.status := 'checking';
  IF v.failed_on = 8 THEN
    v.status := 'rejected';
  ELSIF v_clears IS NOT NULL THEN
    v.retry_at := v_clears + CASE WHEN v.parked THEN interval '1 hour' ELSE interval '0' END;
  ELSIF i.next_attempt_at > p_at THEN
    -- If what it waited for has ended early, and now money is missing, its time was not that of a retry.
    v.retry_at := CASE WHEN i.failed_before IN (2, 4, 6)
                       THEN least(i.next_attempt_at, p_at + economy._backoff(i.retry_count))
                       ELSE i.next_attempt_at
                  END;
  ELSE
    IF NOT p_fresh THEN v.retries := least(i.retry_count, 999999) + 1; END IF;
    v.moves := true;
    v.retry_at := p_at + economy._backoff(v.retries);
    IF v.retries >= economy._max_retries(i.max_retries, p_guilds_max_retries) THEN v.status := 'rejected'; END IF;
  END IF;
  v.due_at := v.retry_at;
  RETURN v;
END $$;

-- Applies the rules to transfers, one after the other in the given order, each upon what the one before has left, and
-- writes the accounts: what passes is reserved, starts the cooldown and takes of the day's allowance; what fails takes
-- nothing. Looks that find nothing new are announced for the first 16 of a payer: what can be caused at will stays cheap.
-- When a cooldown ends, one of the transfers that wait for it passes: the first 16 of a payer are tried, the rest is parked.
-- Requires: the payers are locked; p_payers has their places.
CREATE FUNCTION economy._check(p_items economy._waiting[], p_payers integer[], a economy._locked, p_fresh boolean)
RETURNS economy._verdict[]
LANGUAGE plpgsql AS $$
DECLARE
  i economy._waiting;
  v economy._verdict;
  s economy.guild_settings;
  v_verdicts economy._verdict[];
  v_kinds text[] := a.kinds;
  v_balances bigint[] := a.balances;
  v_reserved bigint[] := a.reserved;
  v_used bigint[] := a.used;
  v_last timestamptz[] := a.last_at;
  v_awaits boolean[] := a.awaits;
  v_touched boolean[] := array_fill(false, ARRAY[cardinality(a.kinds)]);
  v_spent boolean[] := v_touched;
  v_looks integer[] := array_fill(0, ARRAY[cardinality(a.kinds)]);
  v_ahead integer[] := array_fill(NULL::integer, ARRAY[cardinality(a.kinds)]);  -- how many wait for the cooldown before it
  v_at timestamptz := a.at;
  n integer := 0;
  p integer;
BEGIN
  FOREACH i IN ARRAY p_items LOOP
    n := n + 1;
    p := p_payers[n];
    IF s.guild_id IS DISTINCT FROM i.guild_id THEN
      SELECT * INTO s FROM economy._settings(i.guild_id);
      s.guild_id := i.guild_id;
    END IF;
    v := NULL;
    v.available := v_balances[p] - v_reserved[p];
    v.used := v_used[p];
    v.throttled_until := economy._throttled_until(v_last[p], s.cooldown_seconds);
    v.daily_limit := s.daily_limit;
    v.failed_on := CASE WHEN i.expires_at < v_at THEN 8::smallint
                        ELSE economy._failed_rules(v_kinds[p], v.available, v.throttled_until, v.used, s.daily_limit,
                                                   i.amount, v_at)
                   END;
    v.moves := v.failed_on IS DISTINCT FROM i.failed_before;
    v.told := true;
    v.parked := false;
    v.retries := i.retry_count;
    IF v.failed_on = 0 THEN
      v.status := 'approved';
      v.retry_at := coalesce(i.next_attempt_at, v_at);
      v.due_at := v_at;
      v_reserved[p] := v_reserved[p] + i.amount;
      v_touched[p] := true;
      IF v_kinds[p] <> 'government' THEN
        v_used[p] := economy._add_used(v.used, i.amount);
        v_last[p] := v_at;
        v_spent[p] := true;
        v.counted_on := (v_at AT TIME ZONE 'UTC')::date;
      END IF;
    ELSE
      IF v.failed_on = 2 THEN
        IF v_ahead[p] IS NULL THEN
          v_ahead[p] := (SELECT count(*)::integer
                           FROM (SELECT FROM economy.transfer_work AS w
                                  WHERE w.guild_id = i.guild_id
                                    AND w.initiator_id = i.initiator_id
                                    AND w.seq < i.seq
                                    AND NOT w.approved
                                    AND w.failed_on = 2
                                  ORDER BY w.seq
                                  LIMIT 16) AS w);
        END IF;
        v.parked := v_ahead[p] >= 16;
        v_ahead[p] := v_ahead[p] + 1;
      END IF;
      v := economy._wait_or_reject(v, i, s.max_retries, p_fresh, v_at);
      IF v.failed_on & 1 = 1 AND v.status = 'checking' AND NOT v_awaits[p] THEN
        v_awaits[p] := true;
        v_touched[p] := true;
      END IF;
      IF NOT p_fresh AND v.status = 'checking' AND v.retries = i.retry_count THEN
        v_looks[p] := v_looks[p] + 1;
        v.told := v.moves OR v_looks[p] <= 16;
      END IF;
    END IF;
    v_verdicts[n] := v;
  END LOOP;
  IF true = ANY (v_touched) THEN
    PERFORM economy._write_accounts(a.places, v_touched, v_balances, v_reserved, v_used, v_spent, v_awaits, v_at);
  END IF;
  RETURN v_verdicts;
END $$;

-- Announces what the checks of a set gave.
CREATE FUNCTION economy._tell_checked(p_items economy._waiting[], p_verdicts economy._verdict[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO economy.outbox (type, subject, data)
  SELECT 'TransferApproved', 'transfer/' || k.transfer_id,
         economy._outbox_data(k.transfer_id, k.guild_id, k.initiator_id, k.target_id, k.amount, '')
    FROM ROWS FROM (unnest(p_items), unnest(p_verdicts)) AS k
   WHERE k.status = 'approved';
  PERFORM pg_notify('economy_events', CASE e.n  -- not a list of VALUES: these would be compiled again for each row
            WHEN 1 THEN economy._balance_event(k.failed_on & 1 = 0, k.transfer_id, k.guild_id, k.initiator_id,
                                               k.available, k.amount)
            WHEN 2 THEN economy._cooldown_event(k.failed_on & 2 = 0, k.transfer_id, k.guild_id, k.initiator_id,
                                                k.throttled_until)
            WHEN 3 THEN economy._daily_limit_event(k.failed_on & 4 = 0, k.transfer_id, k.guild_id, k.initiator_id,
                                                   k.used, k.amount, k.daily_limit)
            ELSE economy._transfer_event('"transfer_check_approved"', k.transfer_id, k.guild_id, k.initiator_id,
                                         k.target_id, k.amount)
          END)
     FROM ROWS FROM (unnest(p_items), unnest(p_verdicts)) AS k
    CROSS JOIN generate_series(1, 4) AS e(n)
    WHERE k.failed_on < 8
      AND k.told
      AND (e.n < 4 OR k.failed_on = 0);
END $$;

-- The work that checks leave: of transfers that were just inserted, or of those whose work rows are locked. Rejected ones
-- have none.
CREATE FUNCTION economy._begin_work(p_items economy._waiting[], p_verdicts economy._verdict[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO economy.transfer_work (transfer_id, seq, guild_id, initiator_id, amount, lane, approved, failed_on, due_at,
                                     next_attempt_at, expires_at, counted_on, parked)
  SELECT k.transfer_id, k.seq, k.guild_id, k.initiator_id, k.amount, economy._lane(k.guild_id), k.status = 'approved',
         k.failed_on, k.due_at, k.retry_at, k.expires_at, k.counted_on, k.parked
    FROM ROWS FROM (unnest(p_items), unnest(p_verdicts)) AS k
   WHERE k.status <> 'rejected';
END $$;

CREATE FUNCTION economy._go_on_with_work(p_items economy._waiting[], p_verdicts economy._verdict[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  v economy._verdict;
BEGIN
  FOR n IN 1 .. cardinality(p_items) LOOP
    v := p_verdicts[n];
    IF v.status = 'rejected' THEN
      DELETE FROM economy.transfer_work WHERE transfer_id = p_items[n].transfer_id;
    ELSE
      UPDATE economy.transfer_work
         SET approved = v.status = 'approved',
             failed_on = v.failed_on,
             counted_on = v.counted_on,
             due_at = v.due_at,
             next_attempt_at = v.retry_at,
             parked = v.parked
       WHERE transfer_id = p_items[n].transfer_id;
    END IF;
  END LOOP;
END $$;

-- Shows what was checked, first tries (p_fresh) and retries alike: as approved, waiting or rejected, and announces it.
-- Requires: the work rows are locked, unless the transfers were inserted by the same statement. Each of these claims its
-- id, by its work row or, if it is rejected at once, without one.
CREATE FUNCTION economy._show_checked(p_items economy._waiting[], p_verdicts economy._verdict[], p_fresh boolean,
                                      p_at timestamptz, OUT approved integer, OUT waiting integer, OUT denied integer)
LANGUAGE plpgsql AS $$
DECLARE
  v_failed uuid[];
  v_expired uuid[];
BEGIN
  IF p_fresh THEN
    PERFORM economy._begin_work(p_items, p_verdicts);
  ELSE
    PERFORM economy._go_on_with_work(p_items, p_verdicts);
  END IF;
  UPDATE economy.pending_transfers AS p
     SET status = k.status,
         checks = coalesce(economy._checks(k.failed_on), p.checks),
         retry_count = k.retries,
         updated_at = p_at
    FROM ROWS FROM (unnest(p_items), unnest(p_verdicts)) AS k
   WHERE k.moves
     AND p.transfer_id = k.transfer_id
     AND p.status IN ('pending', 'checking');
  PERFORM economy._tell_checked(p_items, p_verdicts);
  SELECT (count(*) FILTER (WHERE k.status = 'approved'))::integer,
         (count(*) FILTER (WHERE k.status = 'checking'))::integer,
         (count(*) FILTER (WHERE k.status = 'rejected'))::integer,
         array_agg(k.transfer_id) FILTER (WHERE k.status = 'rejected' AND k.failed_on <> 8),
         array_agg(k.transfer_id) FILTER (WHERE k.failed_on = 8)
    INTO approved, waiting, denied, v_failed, v_expired
    FROM ROWS FROM (unnest(p_items), unnest(p_verdicts)) AS k;
  IF p_fresh AND denied > 0 THEN PERFORM economy._claim_ids(v_failed || v_expired); END IF;
  IF v_failed IS NOT NULL THEN PERFORM economy._tell_denied(v_failed, 'transfer_checks_failed'); END IF;
  IF v_expired IS NOT NULL THEN PERFORM economy._tell_denied(v_expired, 'transfer_checks_expired'); END IF;
END $$;

-- Raises unique_violation if a transfer that was just inserted has the id, or the key, of a synchronous one. Requires: the
-- ids are claimed and the payers locked, so the answer lasts.
CREATE FUNCTION economy._refuse_used(p_items economy._waiting[], p_idempotency_keys text[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  v_used record;
BEGIN
  SELECT k.transfer_id, k.initiator_id, k.idempotency_key, k.id_is_used INTO v_used
    FROM (SELECT k.*, (SELECT true FROM economy.transactions AS t WHERE t.transfer_id = k.transfer_id) AS id_is_used
            FROM ROWS FROM (unnest(p_items), unnest(p_idempotency_keys))
                 AS k(seq, transfer_id, guild_id, initiator_id, target_id, amount, retry_count, expires_at, max_retries,
                      next_attempt_at, failed_before, idempotency_key)) AS k
   WHERE k.id_is_used
      OR k.idempotency_key IS NOT NULL
         AND (SELECT true
                FROM economy.transactions AS t
               WHERE t.guild_id = k.guild_id AND t.debit_id = k.initiator_id AND t.idempotency_key = k.idempotency_key
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
END $$;

-- Checking starts with the insert, in every session.
CREATE OR REPLACE FUNCTION economy._begin_checking() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  v_items economy._waiting[];
  v_guilds bigint[];
  v_payers bigint[];
  v_keys text[];
  v_last_expiry timestamptz;
  v economy._places;
  a economy._locked;
BEGIN
  IF TG_RELID <> 'economy.pending_transfers'::regclass THEN
    RAISE EXCEPTION 'only transfers are checked' USING ERRCODE = 'insufficient_privilege';
  END IF;
  SELECT array_agg(ROW(i.seq, i.transfer_id, i.guild_id, i.initiator_id, i.target_id, i.amount, i.retry_count,
                       i.expires_at, i.max_retries, NULL, NULL)::economy._waiting),
         array_agg(i.guild_id), array_agg(i.initiator_id), array_agg(i.idempotency_key), max(i.expires_at)
    INTO v_items, v_guilds, v_payers, v_keys, v_last_expiry
    FROM (SELECT * FROM inserted ORDER BY seq) AS i;
  IF v_items IS NULL THEN RETURN NULL; END IF;
  IF v_items[1].seq < 1
     OR v_items[cardinality(v_items)].seq > (SELECT last_value FROM economy.pending_transfers_seq_seq) THEN
    RAISE EXCEPTION 'the seq of a transfer comes from its sequence' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF v_last_expiry > economy._clock() + interval '8761 hours' THEN
    RAISE EXCEPTION 'a transfer expires after at most 8760 hours, not at %', v_last_expiry USING ERRCODE = 'check_violation';
  END IF;
  v := economy._places_of(v_guilds, v_payers, array_fill(NULL::bigint, ARRAY[cardinality(v_items)]));
  a := economy._lock_parties(v);
  PERFORM economy._show_checked(v_items, economy._check(v_items, v.payers, a, true), true, a.at);
  PERFORM economy._refuse_used(v_items, v_keys);
  PERFORM pg_notify('economy_work', '');  -- a node should look; many of these in one transaction are one
  RETURN NULL;
END $$;

-- Lets parked transfers move up: the first 16 of each payer that wait for the cooldown become due when it ends. Answers how
-- many are due already. One whose work row is locked gets a reminder.
CREATE FUNCTION economy._move_up(p_guild_ids bigint[], p_payer_ids bigint[]) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
  v_at timestamptz := economy._clock();
  v_ids uuid[];
  v_free uuid[];
  v_clears timestamptz;
  v_due integer := 0;
  k record;
BEGIN
  FOR k IN SELECT DISTINCT u.guild_id, u.payer_id FROM unnest(p_guild_ids, p_payer_ids) AS u(guild_id, payer_id) LOOP
    SELECT array_agg(w.transfer_id) FILTER (WHERE w.parked) INTO v_ids
      FROM (SELECT w.transfer_id, w.parked
              FROM economy.transfer_work AS w
             WHERE w.guild_id = k.guild_id
               AND w.initiator_id = k.payer_id
               AND NOT w.approved
               AND w.failed_on = 2
             ORDER BY w.seq
             LIMIT 16) AS w;
    CONTINUE WHEN v_ids IS NULL;
    SELECT coalesce(s.throttled_until, v_at) INTO v_clears FROM economy._standing(k.guild_id, k.payer_id, v_at) AS s;
    SELECT coalesce(array_agg(w.transfer_id), '{}') INTO v_free
      FROM (SELECT transfer_id FROM economy.transfer_work WHERE transfer_id = ANY (v_ids) FOR UPDATE SKIP LOCKED) AS w;
    UPDATE economy.transfer_work
       SET parked = false,
           due_at = least(due_at, v_clears),
           next_attempt_at = least(next_attempt_at, v_clears)
     WHERE transfer_id = ANY (v_free);
    PERFORM economy._remind_of_locked(v_ids, v_free);
    IF v_clears <= v_at THEN v_due := v_due + cardinality(v_ids); END IF;
  END LOOP;
  RETURN v_due;
END $$;

-- Rejects transfers that wait, and lets those behind them move up. Answers how many. Requires: the work rows are locked.
CREATE OR REPLACE FUNCTION economy._deny(p_ids uuid[], p_reason text, p_at timestamptz) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
  v_denied uuid[];
  v_guilds bigint[];
  v_payers bigint[];
BEGIN
  SELECT array_agg(transfer_id) INTO v_denied
    FROM economy.pending_transfers
   WHERE transfer_id = ANY (p_ids)
     AND status IN ('pending', 'checking');
  IF v_denied IS NULL THEN RETURN 0; END IF;
  WITH gone AS (
    DELETE FROM economy.transfer_work WHERE transfer_id = ANY (v_denied) RETURNING guild_id, initiator_id, failed_on
  )
  SELECT array_agg(g.guild_id), array_agg(g.initiator_id) INTO v_guilds, v_payers
    FROM gone AS g
   WHERE g.failed_on = 2;
  UPDATE economy.pending_transfers
     SET status = 'rejected',
         updated_at = p_at
   WHERE transfer_id = ANY (v_denied);
  PERFORM economy._tell_denied(v_denied, p_reason);
  IF v_guilds IS NOT NULL AND economy._move_up(v_guilds, v_payers) > 0 THEN PERFORM pg_notify('economy_work', ''); END IF;
  RETURN cardinality(v_denied);
END $$;

-- Checks waiting transfers again. moved: how many others are due now, because what they waited behind does not wait for the
-- cooldown any more. Requires: their work rows are locked.
CREATE FUNCTION economy._check_again(p_ids uuid[], OUT approved integer, OUT waiting integer, OUT denied integer,
                                     OUT moved integer)
LANGUAGE plpgsql AS $$
DECLARE
  v_items economy._waiting[];
  v_guilds bigint[];
  v_payers bigint[];
  v economy._places;
  a economy._locked;
BEGIN
  SELECT array_agg(ROW(t.seq, t.transfer_id, t.guild_id, t.initiator_id, t.target_id, t.amount, t.retry_count,
                       t.expires_at, t.max_retries, t.next_attempt_at, t.failed_on)::economy._waiting),
         array_agg(t.guild_id), array_agg(t.initiator_id)
    INTO v_items, v_guilds, v_payers
    FROM (SELECT p.*, w.next_attempt_at, w.failed_on
            FROM unnest(p_ids) AS k(transfer_id)
            JOIN economy.pending_transfers AS p USING (transfer_id)
            LEFT JOIN LATERAL (SELECT w.next_attempt_at, w.failed_on
                                 FROM economy.transfer_work AS w
                                WHERE w.transfer_id = p.transfer_id
                                LIMIT 1) AS w ON true
           WHERE p.status IN ('pending', 'checking')
           ORDER BY p.seq) AS t;
  approved := 0;
  waiting := 0;
  denied := 0;
  moved := 0;
  IF v_items IS NULL THEN RETURN; END IF;
  v := economy._places_of(v_guilds, v_payers, array_fill(NULL::bigint, ARRAY[cardinality(v_items)]));
  a := economy._lock_parties(v);
  SELECT s.approved, s.waiting, s.denied INTO approved, waiting, denied
    FROM economy._show_checked(v_items, economy._check(v_items, v.payers, a, false), false, a.at) AS s;
  SELECT array_agg(i.guild_id), array_agg(i.initiator_id) INTO v_guilds, v_payers
    FROM unnest(v_items) AS i
   WHERE i.failed_before = 2;
  IF v_guilds IS NOT NULL THEN moved := economy._move_up(v_guilds, v_payers); END IF;
END $$;

-- ── The pool: completing ──────────────────────────────────────────────────────────────────────────────────────────

-- Carries out approved transfers in order of their creation. Requires: their work rows are locked. woken: how many waiting
-- transfers became due.
CREATE FUNCTION economy._complete(p_ids uuid[], OUT completed integer, OUT woken integer)
LANGUAGE plpgsql AS $$
DECLARE
  v economy._places;
  a economy._locked;
  v_ids uuid[];
  v_guilds bigint[];
  v_payer_ids bigint[];
  v_target_ids bigint[];
  v_amounts bigint[];
  v_reasons text[];
  v_counted_on date[];
  v_payers integer[];
  v_targets integer[];
  v_balances bigint[];
  v_reserved bigint[];
  v_ledger_ids bigint[];
  v_debit_after bigint[];
  v_credit_after bigint[];
  v_touched boolean[];
  v_credited boolean[];
  p integer;
  t integer;
BEGIN
  SELECT array_agg(p.transfer_id), array_agg(p.guild_id), array_agg(p.initiator_id), array_agg(p.target_id),
         array_agg(p.amount), array_agg(p.reason), array_agg(p.counted_on)
    INTO v_ids, v_guilds, v_payer_ids, v_target_ids, v_amounts, v_reasons, v_counted_on
    FROM (SELECT p.transfer_id, p.guild_id, p.initiator_id, p.target_id, p.amount, p.reason,
                 (SELECT w.counted_on FROM economy.transfer_work AS w WHERE w.transfer_id = p.transfer_id) AS counted_on
            FROM unnest(p_ids) AS k(transfer_id)
            JOIN economy.pending_transfers AS p USING (transfer_id)
           WHERE p.status = 'approved'
           ORDER BY p.seq) AS p;
  completed := coalesce(cardinality(v_ids), 0);
  woken := 0;
  IF completed = 0 THEN RETURN; END IF;
  v := economy._places_of(v_guilds, v_payer_ids, v_target_ids);
  a := economy._lock_parties(v);
  v_payers := v.payers;
  v_targets := v.targets;
  v_balances := a.balances;
  v_reserved := a.reserved;
  v_credited := array_fill(false, ARRAY[cardinality(a.kinds)]);
  FOR n IN 1 .. completed LOOP
    p := v_payers[n];
    t := v_targets[n];
    v_reserved[p] := v_reserved[p] - v_amounts[n];
    v_balances[p] := v_balances[p] - v_amounts[n];
    v_balances[t] := v_balances[t] + v_amounts[n];
    v_credited[t] := true;
    v_ledger_ids[n] := nextval('economy.transactions_id_seq');
    v_debit_after[n] := v_balances[p];
    v_credit_after[n] := v_balances[t];
  END LOOP;
  v_touched := array_fill(true, ARRAY[cardinality(a.kinds)]);
  PERFORM economy._write_accounts(a.places, v_touched, v_balances, v_reserved, a.used,
                                  array_fill(false, ARRAY[cardinality(a.kinds)]), a.awaits, a.at);
  PERFORM economy._post('transfer', v.guild_ids, v.member_ids, v_payers, v_targets, v_amounts, v_ids, v_ledger_ids,
                        v_debit_after, v_credit_after, v_counted_on, v_reasons, NULL, NULL, NULL, a.at);
  PERFORM economy._show_completed(v_ids, a.at);
  IF true = ANY (a.awaits) THEN
    woken := economy._wake_credited(v.guild_ids, v.member_ids, v_credited, a.awaits, v_balances, v_reserved, a.at);
  END IF;
END $$;

-- How money moves: always as a set, by arrays of equal length. Functions whose name begins with _ are the parts; who
-- calls one must hold the locks that its comment asks for. READ COMMITTED is what makes them right: each statement
-- after a lock sees what was committed before the lock was granted.
--
-- Joins are from a list to a table by its key, never between two lists: to the planner lists are short, and it would
-- compare each with each. Where a row must be missing or may be, a scalar subquery leaves no way but the index.

-- Opens what is missing among these members' accounts. Before any account is locked, or two sessions could wait for
-- each other.
CREATE FUNCTION economy._open_accounts(p_guilds bigint[], p_members bigint[]) RETURNS void
LANGUAGE sql VOLATILE AS $$
  INSERT INTO economy.accounts (guild_id, member_id)
  SELECT k.guild_id, k.member_id
    FROM (SELECT DISTINCT guild_id, member_id FROM unnest(p_guilds, p_members) AS k(guild_id, member_id)) AS k
   WHERE k.guild_id > 0
     AND k.member_id > 0
     AND (SELECT true FROM economy.accounts AS a
           WHERE a.guild_id = k.guild_id AND a.member_id = k.member_id) IS NULL
   ORDER BY k.guild_id, k.member_id
      ON CONFLICT DO NOTHING
$$;

CREATE FUNCTION economy._lock_accounts(p_guilds bigint[], p_members bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM
     FROM (SELECT DISTINCT guild_id, member_id FROM unnest(p_guilds, p_members) AS k(guild_id, member_id)) AS k
     JOIN economy.accounts AS a ON a.guild_id = k.guild_id AND a.member_id = k.member_id
    ORDER BY a.guild_id, a.member_id
      FOR NO KEY UPDATE OF a;  -- an insert that refers to an account need not wait for it
END $$;

-- Checks amounts against their payers and reserves those that pass, with the day's allowance; the cooldown begins.
-- Greedy: in the order given, where each payer's come together, and what fails takes nothing. With a cooldown a
-- member's first that passes is therefore its last. `p_early` marks tries before their time: after 16 of a payer's
-- have failed, its further ones are not tried (NULL), so that whoever can wake them can only cost so much.
-- Who calls holds the payers' locks and has taken `p_at` after it got them. Gives back for each what was seen: the
-- checks that failed (0: reserved), and what it was judged by.
CREATE FUNCTION economy._reserve(p_guilds bigint[], p_payers bigint[], p_amounts bigint[], p_early boolean[],
                                 p_at timestamptz,
                                 OUT failed_on smallint[], OUT available bigint[], OUT used bigint[],
                                 OUT throttled_until timestamptz[], OUT daily_limit bigint[], OUT max_retries integer[])
LANGUAGE plpgsql AS $$
DECLARE
  i record;
  v_guild bigint;
  v_payer bigint;
  v_available bigint;
  v_used bigint;
  v_until timestamptz;
  v_early_failures integer;
  v_failed smallint;
BEGIN
  FOR i IN
    SELECT k.guild_id, k.payer_id, k.amount, k.early, s.*
      FROM unnest(p_guilds, p_payers, p_amounts, p_early) WITH ORDINALITY AS k(guild_id, payer_id, amount, early, place)
     CROSS JOIN LATERAL economy._standing(k.guild_id, k.payer_id, p_at) AS s
     ORDER BY k.place
  LOOP
    IF v_payer IS DISTINCT FROM i.payer_id OR v_guild IS DISTINCT FROM i.guild_id THEN
      v_guild := i.guild_id;
      v_payer := i.payer_id;
      v_available := i.available;
      v_used := i.used;
      v_until := i.throttled_until;
      v_early_failures := 0;
    END IF;
    IF i.early AND v_early_failures >= 16 THEN
      v_failed := NULL;
    ELSE
      v_failed := CASE WHEN economy._rule_balance(v_available, i.amount) THEN 0 ELSE 1 END
                + CASE WHEN economy._rule_cooldown(i.kind, v_until, p_at) THEN 0 ELSE 2 END
                + CASE WHEN economy._rule_daily_limit(i.kind, v_used, i.daily_limit, i.amount) THEN 0 ELSE 4 END;
    END IF;
    failed_on := failed_on || v_failed;
    available := available || v_available;
    used := used || v_used;
    throttled_until := throttled_until || v_until;
    daily_limit := daily_limit || i.daily_limit;
    max_retries := max_retries || i.max_retries;
    IF v_failed = 0 THEN
      v_available := v_available - i.amount;
      v_used := v_used + least(i.amount, 9223372036854775807 - v_used);
      v_until := p_at + make_interval(secs => i.cooldown_seconds);
    ELSIF i.early THEN
      v_early_failures := v_early_failures + 1;
    END IF;
  END LOOP;

  UPDATE economy.accounts AS a
     SET reserved = a.reserved + d.total,
         day = CASE WHEN a.kind = 'government' THEN a.day ELSE (p_at AT TIME ZONE 'UTC')::date END,
         day_used = CASE WHEN a.kind = 'government' THEN a.day_used
                         ELSE least(d.total::numeric + CASE WHEN a.day = (p_at AT TIME ZONE 'UTC')::date
                                                            THEN a.day_used ELSE 0 END, 9223372036854775807)
                    END,
         last_transfer_at = CASE WHEN a.kind = 'government' THEN a.last_transfer_at ELSE p_at END
    FROM (SELECT k.guild_id, k.payer_id, sum(k.amount)::bigint AS total
            FROM unnest(p_guilds, p_payers, p_amounts, failed_on) AS k(guild_id, payer_id, amount, failed_on)
           WHERE k.failed_on = 0
           GROUP BY k.guild_id, k.payer_id) AS d
   WHERE a.guild_id = d.guild_id
     AND a.member_id = d.payer_id;
END $$;

-- Makes due what waits for a balance that is there now: the first 16 of each payer that failed on it, in order, and of
-- those the ones it suffices for. Who calls holds the accounts' locks: a check either was before and is seen here, or
-- comes after and sees the balance. A row that is locked has somebody looking at it already.
CREATE FUNCTION economy._wake_credited(p_guilds bigint[], p_members bigint[], p_at timestamptz) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
  v_worth uuid[];
  v_free uuid[];
BEGIN
  SELECT array_agg(w.transfer_id) INTO v_worth
    FROM (SELECT DISTINCT guild_id, member_id FROM unnest(p_guilds, p_members) AS k(guild_id, member_id)) AS k
   CROSS JOIN LATERAL (SELECT w.transfer_id, w.amount, w.due_at
                         FROM economy.transfer_work AS w
                        WHERE w.guild_id = k.guild_id
                          AND w.initiator_id = k.member_id
                          AND NOT w.approved
                          AND w.failed_on & 1 = 1
                        ORDER BY w.seq
                        LIMIT 16) AS w
   WHERE w.due_at > p_at
     AND w.amount <= (SELECT a.balance - a.reserved
                        FROM economy.accounts AS a
                       WHERE a.guild_id = k.guild_id AND a.member_id = k.member_id);
  IF v_worth IS NULL THEN RETURN 0; END IF;
  SELECT array_agg(w.transfer_id) INTO v_free
    FROM (SELECT transfer_id FROM economy.transfer_work WHERE transfer_id = ANY (v_worth) FOR UPDATE SKIP LOCKED) AS w;
  UPDATE economy.transfer_work SET due_at = p_at WHERE transfer_id = ANY (v_free);
  RETURN coalesce(cardinality(v_free), 0);
END $$;

-- Moves money: ledger rows in the order given, each with the balances it left; accounts netted; the outbox told.
-- A transfer's amount was reserved by _reserve and is released here. Who calls holds the locks of all parties.
CREATE FUNCTION economy._post(p_kind text, p_ids uuid[], p_guilds bigint[], p_debits bigint[], p_credits bigint[],
                              p_amounts bigint[], p_reasons text[], p_metadata jsonb[], p_keys text[], p_actor text,
                              p_at timestamptz,
                              OUT woken integer)
LANGUAGE plpgsql AS $$
BEGIN
  WITH leg AS MATERIALIZED (
    SELECT k.place, s.side, k.guild_id, CASE WHEN s.side = 0 THEN k.debit_id ELSE k.credit_id END AS member_id,
           CASE WHEN s.side = 0 THEN -k.amount ELSE k.amount END AS delta,
           CASE WHEN s.side = 0 AND p_kind = 'transfer' THEN k.amount ELSE 0 END AS released,
           k.transfer_id, k.credit_id, k.amount, k.reason, k.metadata, k.idempotency_key
      FROM unnest(p_ids, p_guilds, p_debits, p_credits, p_amounts, p_reasons, p_metadata, p_keys) WITH ORDINALITY
           AS k(transfer_id, guild_id, debit_id, credit_id, amount, reason, metadata, idempotency_key, place)
     CROSS JOIN (VALUES (0), (1)) AS s(side)
  ),
  running AS (
    SELECT l.*, (a.balance + sum(l.delta) OVER (PARTITION BY l.guild_id, l.member_id ORDER BY l.place))::bigint AS after
      FROM leg AS l
      JOIN economy.accounts AS a ON a.guild_id = l.guild_id AND a.member_id = l.member_id
  ),
  posted AS (
    INSERT INTO economy.transactions (transfer_id, kind, guild_id, debit_id, credit_id, amount, debit_after,
                                      credit_after, reason, metadata, actor, idempotency_key, created_at)
    SELECT b.transfer_id, p_kind, b.guild_id, b.member_id, b.credit_id, b.amount, b.after, b.credit_after, b.reason,
           b.metadata, p_actor, b.idempotency_key, p_at
      FROM (SELECT r.*, lead(r.after) OVER (ORDER BY r.place, r.side) AS credit_after FROM running AS r) AS b
     WHERE b.side = 0
     ORDER BY b.place
    RETURNING id, transfer_id, guild_id, debit_id, credit_id, amount
  ),
  netted AS (
    UPDATE economy.accounts AS a
       SET balance = a.balance + d.delta,
           reserved = a.reserved - d.released
      FROM (SELECT guild_id, member_id, sum(delta)::bigint AS delta, sum(released)::bigint AS released
              FROM leg
             GROUP BY guild_id, member_id) AS d
     WHERE a.guild_id = d.guild_id
       AND a.member_id = d.member_id
  )
  INSERT INTO economy.outbox (type, subject, data)
  SELECT 'TransferCompleted', 'transfer/' || transfer_id,
         jsonb_build_object('transferId', transfer_id, 'guildId', guild_id::text, 'initiatorId', debit_id::text,
                            'targetId', credit_id::text, 'amount', amount::text, 'ledgerId', id::text)
    FROM posted
   WHERE p_kind = 'transfer'
   ORDER BY id;
  woken := economy._wake_credited(p_guilds, p_credits, p_at);
END $$;

-- What a rejection leaves behind, whatever the reason. Who calls has set the status, or does so in this transaction.
CREATE FUNCTION economy._tell_denied(p_ids uuid[], p_reason text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM economy.transfer_work WHERE transfer_id = ANY (p_ids);
  INSERT INTO economy.transfer_denials (guild_id, seq, transfer_id, reason)
  SELECT guild_id, seq, transfer_id, p_reason
    FROM economy.pending_transfers
   WHERE transfer_id = ANY (p_ids);
  INSERT INTO economy.outbox (type, subject, data)
  SELECT 'TransferDenied', 'transfer/' || transfer_id,
         jsonb_build_object('transferId', transfer_id, 'guildId', guild_id::text, 'initiatorId', initiator_id::text,
                            'targetId', target_id::text, 'amount', amount::text, 'reason', p_reason)
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

-- Rejects what is not approved yet. Who calls holds the work rows, or has just inserted the transfers.
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
  PERFORM economy._tell_denied(v_denied, p_reason);
  UPDATE economy.pending_transfers
     SET status = 'rejected',
         updated_at = p_at
   WHERE transfer_id = ANY (v_denied);
  RETURN cardinality(v_denied);
END $$;

-- What follows from the checks: the status, how many retries were made, when the next one is, and when to look again,
-- which is sooner where what failed clears by itself. Pure but for the clock's jitter. A try before its time counts
-- nothing and moves nothing; NULL in p_failed_on was not even tried.
CREATE FUNCTION economy._judge(p_failed_on smallint[], p_retry_counts integer[], p_max_retries integer[],
                               p_early boolean[], p_next_attempts timestamptz[], p_throttled_until timestamptz[],
                               p_fresh boolean, p_at timestamptz,
                               OUT statuses text[], OUT retry_counts integer[], OUT next_attempts timestamptz[],
                               OUT dues timestamptz[])
LANGUAGE plpgsql AS $$
BEGIN
  SELECT array_agg(v.status), array_agg(v.retries), array_agg(v.next_attempt_at),
         array_agg(CASE WHEN v.status = 'approved' THEN p_at
                        ELSE least(v.next_attempt_at,
                                   CASE v.failed_on WHEN 2 THEN v.throttled_until
                                                    WHEN 4 THEN economy._day_ends(p_at)
                                                    WHEN 6 THEN greatest(v.throttled_until, economy._day_ends(p_at))
                                   END)
                   END)
    INTO statuses, retry_counts, next_attempts, dues
    FROM (SELECT k.*,
                 CASE WHEN k.failed_on = 0 THEN 'approved'
                      WHEN NOT k.early AND k.retries >= k.max_retries THEN 'rejected'
                      ELSE 'checking'
                 END AS status,
                 CASE WHEN k.early THEN k.next_before ELSE p_at + economy._backoff(k.retries) END AS next_attempt_at
            FROM (SELECT k.*, k.retry_count + CASE WHEN p_fresh OR k.early THEN 0 ELSE 1 END AS retries
                    FROM unnest(p_failed_on, p_retry_counts, p_max_retries, p_early, p_next_attempts, p_throttled_until)
                         AS k(failed_on, retry_count, max_retries, early, next_before, throttled_until)) AS k) AS v;
END $$;

-- Three transfer_check_result for each that was tried, and transfer_check_approved.
CREATE FUNCTION economy._tell_checked(p_ids uuid[], p_guilds bigint[], p_initiators bigint[], p_targets bigint[],
                                      p_amounts bigint[], p_failed_on smallint[], p_available bigint[], p_used bigint[],
                                      p_throttled_until timestamptz[], p_daily_limit bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  -- CASE and not a list of VALUES, whose expressions would be compiled again for every row.
  PERFORM pg_notify('economy_events', CASE e.n
            WHEN 1 THEN economy._balance_event(k.failed_on & 1 = 0, k.transfer_id, k.guild_id, k.initiator_id,
                                               k.available, k.amount)
            WHEN 2 THEN economy._cooldown_event(k.failed_on & 2 = 0, k.transfer_id, k.guild_id, k.initiator_id,
                                                k.throttled_until)
            WHEN 3 THEN economy._daily_limit_event(k.failed_on & 4 = 0, k.transfer_id, k.guild_id, k.initiator_id,
                                                   k.used, k.amount, k.daily_limit)
            ELSE economy._transfer_event('"transfer_check_approved"', k.transfer_id, k.guild_id, k.initiator_id,
                                         k.target_id, k.amount)
          END)
     FROM unnest(p_ids, p_guilds, p_initiators, p_targets, p_amounts, p_failed_on, p_available, p_used,
                 p_throttled_until, p_daily_limit)
          AS k(transfer_id, guild_id, initiator_id, target_id, amount, failed_on, available, used, throttled_until,
               daily_limit)
    CROSS JOIN generate_series(1, 4) AS e(n)
    WHERE k.failed_on IS NOT NULL
      AND (e.n < 4 OR k.failed_on = 0);
  INSERT INTO economy.outbox (type, subject, data)
  SELECT 'TransferApproved', 'transfer/' || k.transfer_id,
         jsonb_build_object('transferId', k.transfer_id, 'guildId', k.guild_id::text,
                            'initiatorId', k.initiator_id::text, 'targetId', k.target_id::text,
                            'amount', k.amount::text)
    FROM unnest(p_ids, p_guilds, p_initiators, p_targets, p_amounts, p_failed_on)
         AS k(transfer_id, guild_id, initiator_id, target_id, amount, failed_on)
   WHERE k.failed_on = 0;
END $$;

-- The checks of a set of transfers, first ones (p_fresh) and retries alike: approves, lets wait, or rejects. Who calls
-- holds the payers' locks and, unless the transfers were inserted by the same statement, their work rows.
CREATE FUNCTION economy._check_transfers(p_ids uuid[], p_fresh boolean, p_at timestamptz,
                                         OUT approved integer, OUT waiting integer, OUT denied integer)
LANGUAGE plpgsql AS $$
DECLARE
  i record;  -- the transfers, each payer's together and in order
  r record;  -- what their checks gave
  v record;  -- what follows
  v_expired uuid[];
  v_exhausted uuid[];
BEGIN
  approved := 0;
  waiting := 0;
  denied := 0;
  SELECT array_agg(transfer_id) INTO v_expired
    FROM economy.pending_transfers
   WHERE transfer_id = ANY (p_ids)
     AND expires_at < p_at;
  IF v_expired IS NOT NULL THEN denied := economy._deny(v_expired, 'transfer_checks_expired', p_at); END IF;
  SELECT array_agg(transfer_id) AS ids, array_agg(seq) AS seqs, array_agg(guild_id) AS guilds,
         array_agg(initiator_id) AS initiators, array_agg(target_id) AS targets, array_agg(amount) AS amounts,
         array_agg(retry_count) AS retry_counts, array_agg(expires_at) AS expiries,
         array_agg(coalesce(next_attempt_at > p_at, false)) AS early, array_agg(next_attempt_at) AS next_attempts,
         array_agg(failed_on) AS failed_before
    INTO i
    FROM (SELECT p.transfer_id, p.seq, p.guild_id, p.initiator_id, p.target_id, p.amount, p.retry_count, p.expires_at,
                 w.next_attempt_at, w.failed_on
            FROM unnest(p_ids) AS k(transfer_id)
            JOIN economy.pending_transfers AS p USING (transfer_id)
            LEFT JOIN LATERAL (SELECT w.next_attempt_at, w.failed_on
                                 FROM economy.transfer_work AS w
                                WHERE w.transfer_id = p.transfer_id AND NOT p_fresh
                                LIMIT 1) AS w ON true
           WHERE p.status IN ('pending', 'checking')
           ORDER BY p.guild_id, p.initiator_id, p.seq) AS t;
  IF i.ids IS NULL THEN RETURN; END IF;
  r := economy._reserve(i.guilds, i.initiators, i.amounts, i.early, p_at);
  v := economy._judge(r.failed_on, i.retry_counts, r.max_retries, i.early, i.next_attempts, r.throttled_until, p_fresh,
                      p_at);
  SELECT count(*) FILTER (WHERE k.status = 'approved'), count(*) FILTER (WHERE k.status = 'checking'),
         array_agg(k.transfer_id) FILTER (WHERE k.status = 'rejected')
    INTO approved, waiting, v_exhausted
    FROM unnest(i.ids, v.statuses) AS k(transfer_id, status);

  IF p_fresh THEN
    INSERT INTO economy.transfer_work (transfer_id, seq, guild_id, initiator_id, amount, lane, approved, failed_on,
                                       due_at, next_attempt_at, expires_at)
    SELECT k.transfer_id, k.seq, k.guild_id, k.initiator_id, k.amount, economy._lane(k.guild_id),
           k.status = 'approved', k.failed_on, k.due_at, k.next_attempt_at, k.expires_at
      FROM unnest(i.ids, i.seqs, i.guilds, i.initiators, i.amounts, v.statuses, r.failed_on, v.dues, v.next_attempts,
                  i.expiries)
           AS k(transfer_id, seq, guild_id, initiator_id, amount, status, failed_on, due_at, next_attempt_at, expires_at)
     WHERE k.status <> 'rejected';
  ELSE
    -- One by one: the planner finds this table empty most of the time, and would look at all of it for each row.
    FOR n IN 1 .. cardinality(i.ids) LOOP
      UPDATE economy.transfer_work
         SET approved = v.statuses[n] = 'approved',
             failed_on = coalesce(r.failed_on[n], failed_on),
             due_at = v.dues[n],
             next_attempt_at = v.next_attempts[n]
       WHERE transfer_id = i.ids[n];
    END LOOP;
  END IF;
  PERFORM economy._tell_checked(i.ids, i.guilds, i.initiators, i.targets, i.amounts, r.failed_on, r.available, r.used,
                                r.throttled_until, r.daily_limit);
  IF v_exhausted IS NOT NULL THEN
    PERFORM economy._tell_denied(v_exhausted, 'transfer_checks_failed');
    denied := denied + cardinality(v_exhausted);
  END IF;

  -- An early try that found what was known leaves no trace.
  UPDATE economy.pending_transfers AS p
     SET status = k.status,
         checks = coalesce(economy._checks(k.failed_on), p.checks),
         retry_count = k.retry_count,
         updated_at = p_at
    FROM unnest(i.ids, v.statuses, r.failed_on, i.failed_before, v.retry_counts, i.early)
         AS k(transfer_id, status, failed_on, failed_before, retry_count, early)
   WHERE p.transfer_id = k.transfer_id
     AND p.status IN ('pending', 'checking')
     AND (NOT k.early OR k.failed_on <> k.failed_before);
END $$;

-- Checking starts with the insert, whoever inserts.
CREATE FUNCTION economy._begin_checking() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  v_ids uuid[];
  v_guilds bigint[];
  v_initiators bigint[];
  v_used record;
BEGIN
  SELECT array_agg(transfer_id), array_agg(guild_id), array_agg(initiator_id) INTO v_ids, v_guilds, v_initiators
    FROM inserted;
  IF v_ids IS NULL THEN RETURN NULL; END IF;
  PERFORM economy._lock_accounts(v_guilds, v_initiators);
  SELECT i.idempotency_key, i.initiator_id INTO v_used
    FROM inserted AS i
   WHERE i.idempotency_key IS NOT NULL
     AND (SELECT true
            FROM economy.transactions AS t
           WHERE t.guild_id = i.guild_id AND t.debit_id = i.initiator_id AND t.idempotency_key = i.idempotency_key
             AND t.kind = 'transfer');
  IF FOUND THEN
    RAISE EXCEPTION 'idempotency key % of member % was used for a synchronous transfer', v_used.idempotency_key,
                    v_used.initiator_id
      USING ERRCODE = 'unique_violation';
  END IF;
  PERFORM economy._check_transfers(v_ids, true, clock_timestamp());
  PERFORM pg_notify('economy_work', '');  -- a node should look; many of these in one transaction are one
  RETURN NULL;
END $$;
CREATE TRIGGER pending_transfers_check AFTER INSERT ON economy.pending_transfers
  REFERENCING NEW TABLE AS inserted
  FOR EACH STATEMENT EXECUTE FUNCTION economy._begin_checking();

-- Locks whoever takes part: the payers of what is to be checked, both sides of what is to be executed. All of them in
-- one statement, so that there is one order. Gives back the time after that.
CREATE FUNCTION economy._lock_parties(p_checks uuid[], p_approved uuid[]) RETURNS timestamptz
LANGUAGE plpgsql AS $$
DECLARE
  v_guilds bigint[];
  v_members bigint[];
BEGIN
  SELECT array_agg(guild_id), array_agg(target_id) INTO v_guilds, v_members
    FROM economy.pending_transfers
   WHERE transfer_id = ANY (p_approved);
  PERFORM economy._open_accounts(v_guilds, v_members);
  SELECT v_guilds || array_agg(guild_id), v_members || array_agg(initiator_id) INTO v_guilds, v_members
    FROM economy.pending_transfers
   WHERE transfer_id = ANY (p_checks || p_approved);
  PERFORM economy._lock_accounts(v_guilds, v_members);
  RETURN clock_timestamp();
END $$;

-- Executes approved transfers. Who calls holds their work rows and the locks of all parties.
CREATE FUNCTION economy._complete(p_ids uuid[], p_at timestamptz, OUT completed integer, OUT woken integer)
LANGUAGE plpgsql AS $$
DECLARE
  i record;
BEGIN
  SELECT array_agg(transfer_id) AS ids, array_agg(guild_id) AS guilds, array_agg(initiator_id) AS initiators,
         array_agg(target_id) AS targets, array_agg(amount) AS amounts, array_agg(reason) AS reasons
    INTO i
    FROM (SELECT p.*
            FROM unnest(p_ids) AS k(transfer_id)
            JOIN economy.pending_transfers AS p USING (transfer_id)
           WHERE p.status = 'approved'
           ORDER BY p.seq) AS t;
  woken := economy._post('transfer', i.ids, i.guilds, i.initiators, i.targets, i.amounts, i.reasons, NULL, NULL, NULL,
                         p_at);
  DELETE FROM economy.transfer_work WHERE transfer_id = ANY (i.ids);
  UPDATE economy.pending_transfers
     SET status = 'completed',
         updated_at = p_at
   WHERE transfer_id = ANY (i.ids);
  GET DIAGNOSTICS completed = ROW_COUNT;
END $$;

-- How money moves: always as a set. Functions whose name begins with _ are the parts; who calls one must hold the locks
-- that its comment asks for. READ COMMITTED is what makes them right: each statement after a lock sees what was
-- committed before the lock was granted.
--
-- Joins are from a list to a table by its key, never between two lists: to the planner lists are short, and it would
-- compare each with each. transfer_work is not joined at all: it is empty whenever somebody counts it, and the planner
-- would read all of it. There, and where a row may be missing, `= ANY` or a scalar subquery leave no way but the index.

-- A transfer on its way through a set. Sets are arrays of these: one array costs less than one for each column.
CREATE TYPE economy._item AS (
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

-- Locks whoever takes part: the payers of `p_payers`, both sides of `p_both`. Whoever has no account gets one: what is not
-- there cannot be locked, and could appear, with money, before it is looked at. Accounts are opened before any is locked, and all are locked by one statement: so there is one order, and two
-- sessions never wait for each other. Gives back the time after that, by which everything is judged.
CREATE FUNCTION economy._lock_parties(p_payers economy._item[], p_both economy._item[]) RETURNS timestamptz
LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO economy.accounts (guild_id, member_id)
  SELECT k.guild_id, k.member_id
    FROM (SELECT guild_id, initiator_id AS member_id FROM unnest(p_payers)
           UNION
          SELECT guild_id, initiator_id FROM unnest(p_both)
           UNION
          SELECT guild_id, target_id FROM unnest(p_both)) AS k
   WHERE k.guild_id > 0
     AND k.member_id > 0
     AND (SELECT true FROM economy.accounts AS a
           WHERE a.guild_id = k.guild_id AND a.member_id = k.member_id) IS NULL
   ORDER BY k.guild_id, k.member_id
      ON CONFLICT DO NOTHING;
  PERFORM
     FROM (SELECT guild_id, initiator_id AS member_id FROM unnest(p_payers)
            UNION
           SELECT guild_id, initiator_id FROM unnest(p_both)
            UNION
           SELECT guild_id, target_id FROM unnest(p_both)) AS k
     JOIN economy.accounts AS a ON a.guild_id = k.guild_id AND a.member_id = k.member_id
    ORDER BY a.guild_id, a.member_id
      FOR NO KEY UPDATE OF a;  -- an insert that refers to an account need not wait for it
  RETURN clock_timestamp();
END $$;

-- Checks a set against its payers and reserves what passes, with the day's allowance; the cooldown begins. (Of the
-- synchronous mode, p_fresh NULL, nothing is written: _post follows in the same transaction.) Greedy: in the order
-- given, where each payer's items come together, and what fails takes nothing. With a cooldown a member's first that
-- passes is therefore its last.
-- In the pool a failed try counts as a retry, unless it is the first (p_fresh) or comes before its
-- time: such early tries count nothing, and after 16 of a payer's have failed its further ones are not made, so that
-- whoever can cause them can only cost so much. The last retry that fails rejects.
-- Who calls holds the payers' locks and has taken `p_at` after it got them. One verdict for each item, in order.
CREATE FUNCTION economy._reserve(p_items economy._item[], p_fresh boolean, p_at timestamptz) RETURNS economy._verdict[]
LANGUAGE plpgsql AS $$
DECLARE
  i record;
  v_guild bigint;
  v_payer bigint;
  v_available bigint;
  v_used bigint;
  v_until timestamptz;
  v_early_failures integer;
  v_early boolean;
  v_failed smallint;
  v_retries integer;
  v_status text;
  v_retry_at timestamptz;
  v_due_at timestamptz;
  v_verdicts economy._verdict[];
BEGIN
  FOR i IN
    SELECT k.guild_id, k.initiator_id, k.amount, k.retry_count, k.expires_at, k.next_attempt_at, k.failed_before, s.*
      FROM unnest(p_items) WITH ORDINALITY AS k
     CROSS JOIN LATERAL economy._standing(k.guild_id, k.initiator_id, p_at) AS s
     ORDER BY k.ordinality
  LOOP
    IF v_payer IS DISTINCT FROM i.initiator_id OR v_guild IS DISTINCT FROM i.guild_id THEN
      v_guild := i.guild_id;
      v_payer := i.initiator_id;
      v_available := i.available;
      v_used := i.used;
      v_until := i.throttled_until;
      v_early_failures := 0;
    END IF;
    v_early := coalesce(i.next_attempt_at > p_at, false);
    IF i.expires_at < p_at THEN
      v_failed := 8;
    ELSIF v_early AND v_early_failures >= 16 THEN
      v_failed := NULL;
    ELSE
      v_failed := CASE WHEN economy._rule_balance(v_available, i.amount) THEN 0 ELSE 1 END
                + CASE WHEN economy._rule_cooldown(i.kind, v_until, p_at) THEN 0 ELSE 2 END
                + CASE WHEN economy._rule_daily_limit(i.kind, v_used, i.daily_limit, i.amount) THEN 0 ELSE 4 END;
    END IF;
    v_retries := i.retry_count + CASE WHEN p_fresh OR v_early THEN 0 ELSE 1 END;
    v_retry_at := i.next_attempt_at;
    v_due_at := p_at;
    IF v_failed = 0 THEN
      v_status := 'approved';
    ELSIF v_failed = 8 OR NOT v_early AND v_retries >= i.max_retries THEN
      v_status := 'rejected';
    ELSE
      v_status := 'checking';
      IF NOT v_early THEN v_retry_at := p_at + economy._backoff(v_retries); END IF;
      v_due_at := least(v_retry_at, CASE v_failed WHEN 2 THEN v_until
                                                  WHEN 4 THEN economy._day_ends(p_at)
                                                  WHEN 6 THEN greatest(v_until, economy._day_ends(p_at))
                                    END);
      IF v_early THEN v_early_failures := v_early_failures + 1; END IF;
    END IF;
    v_verdicts := v_verdicts || ROW(v_failed, v_available, v_used, v_until, i.daily_limit, v_status, v_retries,
                                    coalesce(v_retry_at, p_at), v_due_at,
                                    NOT v_early OR v_failed <> i.failed_before)::economy._verdict;
    IF v_failed = 0 THEN
      v_available := v_available - i.amount;
      v_used := economy._add_used(v_used, i.amount);
      v_until := p_at + make_interval(secs => i.cooldown_seconds);
    END IF;
  END LOOP;

  IF p_fresh IS NULL THEN RETURN v_verdicts; END IF;  -- to be moved at once
  UPDATE economy.accounts AS a
     SET reserved = a.reserved + d.total,
         day = CASE WHEN a.kind = 'government' THEN a.day ELSE (p_at AT TIME ZONE 'UTC')::date END,
         day_used = CASE WHEN a.kind = 'government' THEN a.day_used
                         ELSE economy._add_used(economy._used_on(a.day, a.day_used, p_at), d.total) END,
         last_transfer_at = CASE WHEN a.kind = 'government' THEN a.last_transfer_at ELSE p_at END
    FROM (SELECT k.guild_id, k.initiator_id, sum(k.amount)::bigint AS total
            FROM ROWS FROM (unnest(p_items), unnest(v_verdicts)) AS k
           WHERE k.failed_on = 0
           GROUP BY k.guild_id, k.initiator_id) AS d
   WHERE a.guild_id = d.guild_id
     AND a.member_id = d.initiator_id;
  RETURN v_verdicts;
END $$;

-- Makes due what waits for a balance that is there now: the first 16 of each payer that failed on it, in order, and of
-- those the ones it suffices for. Who calls holds the accounts' locks: a check either was before and is seen here, or
-- comes after and sees the balance. A row that is locked has somebody looking at it already.
CREATE FUNCTION economy._wake_credited(p_items economy._item[], p_at timestamptz) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
  v_worth uuid[];
  v_free uuid[];
BEGIN
  SELECT array_agg(w.transfer_id) INTO v_worth
    FROM (SELECT DISTINCT guild_id, target_id FROM unnest(p_items)) AS k
   CROSS JOIN LATERAL (SELECT w.transfer_id, w.amount, w.due_at
                         FROM economy.transfer_work AS w
                        WHERE w.guild_id = k.guild_id
                          AND w.initiator_id = k.target_id
                          AND NOT w.approved
                          AND w.failed_on & 1 = 1
                        ORDER BY w.seq
                        LIMIT 16) AS w
   WHERE w.due_at > p_at
     AND w.amount <= (SELECT a.balance - a.reserved
                        FROM economy.accounts AS a
                       WHERE a.guild_id = k.guild_id AND a.member_id = k.target_id);
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

-- Moves money: ledger rows in the order of their places, each with the balances it left; accounts netted; the outbox
-- told. What the pool has reserved is released here; what was not reserved (p_reserved false) takes its allowance and
-- starts the cooldown here. Minting and burning come here too, from or to member 0. Who calls holds the locks of all
-- parties. Gives back how many waiting transfers became due by it.
CREATE FUNCTION economy._post(p_kind text, p_reserved boolean, p_items economy._item[], p_actor text, p_at timestamptz)
RETURNS integer
LANGUAGE plpgsql AS $$
BEGIN
  WITH leg AS MATERIALIZED (
    SELECT k.place, s.side, k.guild_id, CASE WHEN s.side = 0 THEN k.initiator_id ELSE k.target_id END AS member_id,
           CASE WHEN s.side = 0 THEN -k.amount ELSE k.amount END AS delta,
           CASE WHEN s.side = 0 AND p_kind = 'transfer' THEN k.amount ELSE 0 END AS spent,
           k.transfer_id, k.target_id, k.amount, k.reason, k.metadata, k.idempotency_key
      FROM unnest(p_items) AS k
     CROSS JOIN generate_series(0, 1) AS s(side)
  ),
  netted AS (
    UPDATE economy.accounts AS a
       SET balance = a.balance + d.delta,
           reserved = CASE WHEN p_reserved THEN a.reserved - d.spent ELSE a.reserved END,
           day = CASE WHEN p_reserved OR d.spent = 0 OR a.kind = 'government' THEN a.day
                      ELSE (p_at AT TIME ZONE 'UTC')::date END,
           day_used = CASE WHEN p_reserved OR d.spent = 0 OR a.kind = 'government' THEN a.day_used
                           ELSE economy._add_used(economy._used_on(a.day, a.day_used, p_at), d.spent) END,
           last_transfer_at = CASE WHEN p_reserved OR d.spent = 0 OR a.kind = 'government' THEN a.last_transfer_at
                                   ELSE p_at END
      FROM (SELECT guild_id, member_id, sum(delta)::bigint AS delta, sum(spent)::bigint AS spent
              FROM leg
             GROUP BY guild_id, member_id) AS d
     WHERE a.guild_id = d.guild_id
       AND a.member_id = d.member_id
    RETURNING a.guild_id, a.member_id, a.balance - d.delta AS before
  ),
  running AS (  -- what an account had stands in its line as if it were its first movement
    SELECT l.*, sum(l.delta) OVER (PARTITION BY l.guild_id, l.member_id ORDER BY l.place NULLS FIRST)::bigint AS after
      FROM (SELECT * FROM leg
             UNION ALL
            SELECT NULL, NULL, guild_id, member_id, before, NULL, NULL, NULL, NULL, NULL, NULL, NULL FROM netted) AS l
  ),
  posted AS (
    INSERT INTO economy.transactions (transfer_id, kind, guild_id, debit_id, credit_id, amount, debit_after,
                                      credit_after, reason, metadata, actor, idempotency_key, created_at)
    SELECT b.transfer_id, p_kind, b.guild_id, b.member_id, b.target_id, b.amount, b.after, b.credit_after, b.reason,
           b.metadata, p_actor, b.idempotency_key, p_at
      FROM (SELECT r.*, lead(r.after) OVER (ORDER BY r.place, r.side) AS credit_after
              FROM running AS r
             WHERE r.place IS NOT NULL) AS b
     WHERE b.side = 0
     ORDER BY b.place
    RETURNING id, transfer_id, guild_id, debit_id, credit_id, amount
  )
  INSERT INTO economy.outbox (type, subject, data)
  SELECT 'TransferCompleted', 'transfer/' || transfer_id,
         economy._outbox_data(transfer_id, guild_id, debit_id, credit_id, amount, ', "ledgerId": "' || id::text || '"')
    FROM posted
   WHERE p_kind = 'transfer';
  RETURN economy._wake_credited(p_items, p_at);
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

-- The checks of a set of transfers, first ones (p_fresh) and retries alike: approves, lets wait, or rejects, and tells.
-- Who calls holds the payers' locks and, unless the transfers were inserted by the same statement, their work rows;
-- the items are in order of payer and place.
CREATE FUNCTION economy._check_transfers(p_items economy._item[], p_fresh boolean, p_at timestamptz,
                                         OUT approved integer, OUT waiting integer, OUT denied integer)
LANGUAGE plpgsql AS $$
DECLARE
  v economy._verdict[];
  v_told integer;
  v_failed uuid[];
  v_expired uuid[];
BEGIN
  v := economy._reserve(p_items, p_fresh, p_at);
  IF NOT p_fresh THEN
    FOR n IN 1 .. cardinality(p_items) LOOP
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
    SELECT k.* FROM ROWS FROM (unnest(p_items), unnest(v)) AS k
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
  v_at timestamptz;
  v_used record;
BEGIN
  SELECT array_agg(ROW(seq, transfer_id, guild_id, initiator_id, target_id, amount, NULL, NULL, idempotency_key,
                       retry_count, expires_at, NULL, NULL)::economy._item)
    INTO v_items
    FROM (SELECT * FROM inserted ORDER BY guild_id, initiator_id, seq) AS i;
  IF v_items IS NULL THEN RETURN NULL; END IF;
  v_at := economy._lock_parties(v_items, '{}');
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
  PERFORM economy._check_transfers(v_items, true, v_at);
  PERFORM pg_notify('economy_work', '');  -- a node should look; many of these in one transaction are one
  RETURN NULL;
END $$;
CREATE TRIGGER pending_transfers_check AFTER INSERT ON economy.pending_transfers
  REFERENCING NEW TABLE AS inserted
  FOR EACH STATEMENT EXECUTE FUNCTION economy._begin_checking();

-- Open transfers as items, in order of payer and place. Only what is in the given state: who calls holds their work
-- rows, so it stays so.
CREATE FUNCTION economy._items(p_ids uuid[], p_approved boolean) RETURNS economy._item[]
LANGUAGE plpgsql AS $$
DECLARE
  v_items economy._item[];
BEGIN
  SELECT array_agg(ROW(t.seq, t.transfer_id, t.guild_id, t.initiator_id, t.target_id, t.amount, t.reason, NULL, NULL,
                       t.retry_count, t.expires_at, t.next_attempt_at, t.failed_on)::economy._item)
    INTO v_items
    FROM (SELECT p.*, w.next_attempt_at, w.failed_on
            FROM unnest(p_ids) AS k(transfer_id)
            JOIN economy.pending_transfers AS p USING (transfer_id)
            LEFT JOIN LATERAL (SELECT w.next_attempt_at, w.failed_on
                                 FROM economy.transfer_work AS w
                                WHERE w.transfer_id = p.transfer_id AND NOT p_approved
                                LIMIT 1) AS w ON true
           WHERE CASE WHEN p_approved THEN p.status = 'approved' ELSE p.status IN ('pending', 'checking') END
           ORDER BY p.guild_id, p.initiator_id, p.seq) AS t;
  RETURN coalesce(v_items, '{}');
END $$;

-- Executes approved transfers. Who calls holds their work rows and the locks of all parties. Gives back how many
-- waiting ones became due by it.
CREATE FUNCTION economy._complete(p_items economy._item[], p_at timestamptz) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
  v_woken integer := economy._post('transfer', true, p_items, NULL, p_at);
BEGIN
  DELETE FROM economy.transfer_work WHERE transfer_id = ANY (ARRAY(SELECT k.transfer_id FROM unnest(p_items) AS k));
  UPDATE economy.pending_transfers
     SET status = 'completed',
         updated_at = p_at
   WHERE transfer_id = ANY (ARRAY(SELECT k.transfer_id FROM unnest(p_items) AS k));
  RETURN v_woken;
END $$;

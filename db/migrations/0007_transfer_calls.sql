-- What a node calls. Arrays have one element for each item, in the caller's order, and so have the answers. Business
-- outcomes are answers, never errors: an error means that nothing was done, and 40001 and 40P01 mean try again.

-- What a caller's arrays say, as items in its order; those that make no sense (no amount, no such id, to oneself) have
-- no step.
CREATE FUNCTION economy._items_of(p_step text, p_transfer_ids uuid[], p_guild_ids bigint[], p_initiator_ids bigint[],
                                  p_target_ids bigint[], p_amounts bigint[], p_reasons text[], p_metadata text[],
                                  p_idempotency_keys text[]) RETURNS economy._item[]
LANGUAGE plpgsql AS $$
DECLARE
  v_items economy._item[];
BEGIN
  SELECT array_agg(ROW(CASE WHEN k.guild_id > 0 AND k.initiator_id > 0 AND k.target_id > 0 AND k.amount > 0
                                 AND k.initiator_id <> k.target_id
                            THEN p_step
                       END,
                       k.place, coalesce(k.transfer_id, gen_random_uuid()), k.guild_id, k.initiator_id, k.target_id,
                       k.amount, k.reason, coalesce(k.metadata::jsonb, '{}'), k.idempotency_key, 0, NULL, NULL,
                       NULL)::economy._item)
    INTO v_items
    FROM unnest(p_transfer_ids, p_guild_ids, p_initiator_ids, p_target_ids, p_amounts, p_reasons, p_metadata,
                p_idempotency_keys) WITH ORDINALITY
         AS k(transfer_id, guild_id, initiator_id, target_id, amount, reason, metadata, idempotency_key, place);
  RETURN coalesce(v_items, '{}');
END $$;

CREATE FUNCTION economy._any_key(p_idempotency_keys text[]) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$ SELECT cardinality(array_remove(p_idempotency_keys, NULL)) > 0 $$;

-- Which items are new, where there are keys. Who calls holds the payers' locks, which is what makes the answer last.
--   outcome   new · repeat (the same as an earlier item of this set, `first`) · existing · conflict (the key was used
--             for something else) · invalid
--   known_id  of the transfer that has the key
CREATE TYPE economy._class AS (outcome text, known_id uuid, first bigint);

CREATE FUNCTION economy._classify(p_items economy._item[]) RETURNS economy._class[]
LANGUAGE plpgsql AS $$
DECLARE
  v_classes economy._class[];
BEGIN
  SELECT array_agg(ROW(c.outcome, c.known_id, c.first)::economy._class)
    INTO v_classes
    FROM (
  SELECT CASE WHEN i.step IS NULL THEN 'invalid'
              WHEN i.idempotency_key IS NULL THEN 'new'
              WHEN known.same THEN 'existing'
              WHEN known.transfer_id IS NOT NULL THEN 'conflict'
              WHEN i.first = i.place THEN 'new'
              WHEN (i.target_id, i.amount, i.reason, i.metadata)
                   IS NOT DISTINCT FROM (i.first_target, i.first_amount, i.first_reason, i.first_metadata) THEN 'repeat'
              ELSE 'conflict'
         END AS outcome,
         known.transfer_id AS known_id,
         CASE WHEN i.idempotency_key IS NULL THEN i.place ELSE i.first END AS first
    FROM (SELECT k.*,
                 first_value(place) OVER same_key AS first,
                 first_value(target_id) OVER same_key AS first_target,
                 first_value(amount) OVER same_key AS first_amount,
                 first_value(reason) OVER same_key AS first_reason,
                 first_value(metadata) OVER same_key AS first_metadata
            FROM unnest(p_items) AS k
          WINDOW same_key AS (PARTITION BY k.step, k.guild_id, k.initiator_id, k.idempotency_key ORDER BY k.place)
         ) AS i
    LEFT JOIN LATERAL (
           SELECT p.transfer_id,
                  (p.target_id, p.amount, p.reason, p.metadata)
                  IS NOT DISTINCT FROM (i.target_id, i.amount, i.reason, i.metadata) AS same
             FROM economy.pending_transfers AS p
            WHERE p.guild_id = i.guild_id AND p.initiator_id = i.initiator_id
              AND p.idempotency_key = i.idempotency_key
            UNION ALL
           SELECT t.transfer_id,
                  (t.credit_id, t.amount, t.reason, t.metadata)
                  IS NOT DISTINCT FROM (i.target_id, i.amount, i.reason, i.metadata)
             FROM economy.transactions AS t
            WHERE t.guild_id = i.guild_id AND t.debit_id = i.initiator_id AND t.idempotency_key = i.idempotency_key
              AND t.kind = 'transfer'
            LIMIT 1) AS known ON true
   ORDER BY i.place) AS c;
  RETURN v_classes;
END $$;

-- Without what is not new.
CREATE FUNCTION economy._only_new(p_items economy._item[], p_classes economy._class[]) RETURNS economy._item[]
LANGUAGE plpgsql AS $$
DECLARE
  v_items economy._item[];
BEGIN
  SELECT array_agg(ROW(CASE WHEN k.outcome = 'new' THEN k.step END, k.place, k.transfer_id, k.guild_id, k.initiator_id,
                       k.target_id, k.amount, k.reason, k.metadata, k.idempotency_key, k.retry_count, k.expires_at,
                       k.next_attempt_at, k.failed_before)::economy._item)
    INTO v_items
    FROM ROWS FROM (unnest(p_items), unnest(p_classes)) AS k;
  RETURN v_items;
END $$;

-- Creates a set of transfers in the pool, checked when this returns.
--   p_transfer_ids   NULL elements: made here
--   p_metadata       JSON texts, NULL: {}
--   p_expires_hours  NULL elements: the guild's default
--   p_patient        false: hardly waits for locks (_kept), and what somebody keeps is `kept`
-- Answers: outcome (created · existing · conflict · invalid · kept), transfer_id (NULL when invalid or kept; of a
-- conflict, whose key it is), status.
CREATE FUNCTION economy.fn_create_pending_transfers(
  p_transfer_ids uuid[], p_guild_ids bigint[], p_initiator_ids bigint[], p_target_ids bigint[], p_amounts bigint[],
  p_reasons text[], p_metadata text[], p_expires_hours integer[], p_idempotency_keys text[],
  p_patient boolean DEFAULT true)
RETURNS TABLE (outcome text, transfer_id uuid, status text)
LANGUAGE plpgsql AS $$
DECLARE
  v_items economy._item[] := economy._items_of('check', p_transfer_ids, p_guild_ids, p_initiator_ids, p_target_ids,
                                               p_amounts, p_reasons, p_metadata, p_idempotency_keys);
  v_classes economy._class[];
  v_kept boolean[];
BEGIN
  IF NOT p_patient THEN
    v_kept := economy._kept(v_items);
    v_items := economy._without(v_items, v_kept);
  END IF;
  IF economy._any_key(p_idempotency_keys) THEN
    PERFORM economy._lock_parties(v_items);  -- the payer's lock keeps a key from being used twice
    v_classes := economy._classify(v_items);
    v_items := economy._only_new(v_items, v_classes);
  END IF;
  INSERT INTO economy.pending_transfers (transfer_id, guild_id, initiator_id, target_id, amount, reason, metadata,
                                         expires_at, idempotency_key)
  SELECT k.transfer_id, k.guild_id, k.initiator_id, k.target_id, k.amount, k.reason, k.metadata,
         clock_timestamp() + make_interval(
           hours => coalesce(p_expires_hours[k.place],
                             (SELECT s.default_expiry_hours FROM economy._settings(k.guild_id) AS s))),
         k.idempotency_key
    FROM unnest(v_items) AS k
   WHERE k.step IS NOT NULL
   ORDER BY k.place;
  RETURN QUERY
    SELECT CASE WHEN k.step IS NOT NULL THEN 'created'
                WHEN v_kept[k.place] THEN 'kept'
                WHEN k.outcome = 'repeat' THEN 'existing'
                ELSE coalesce(k.outcome, 'invalid')
           END,
           k.id,
           coalesce((SELECT p.status::text FROM economy.pending_transfers AS p WHERE p.transfer_id = k.id),
                    (SELECT 'completed' FROM economy.transactions AS t WHERE t.transfer_id = k.id))
      FROM (SELECT k.step, k.outcome, k.place,
                   CASE WHEN k.step IS NOT NULL THEN k.transfer_id
                        WHEN k.outcome <> 'invalid' THEN coalesce(k.known_id, v_items[k.first].transfer_id)
                   END AS id
              FROM ROWS FROM (unnest(v_items), unnest(v_classes)) AS k) AS k
     ORDER BY k.place;
END $$;

-- Transfers at once, or says why not; each item as if it were alone, one after the other. Notifies nobody: `woken` (the
-- same in every row) says whether waiting transfers became due, for the caller to tell the nodes after the commit.
-- Answers: outcome and what belongs to it:
--   completed             transfer_id, status, ledger_id, initiator_balance, target_balance, created_at
--   existing              the same, of the transfer that has the key; one in the pool has a status and no ledger_id yet
--   insufficient_balance  available (balance less what is reserved)
--   cooldown              throttled_until
--   daily_limit           used_today, daily_limit
--   conflict              transfer_id whose key it is; none when that came in the same set and was refused
--   invalid
--   kept                  when p_patient is false, which hardly waits for locks: somebody keeps one of the accounts
CREATE FUNCTION economy.fn_transfer_now(
  p_transfer_ids uuid[], p_guild_ids bigint[], p_initiator_ids bigint[], p_target_ids bigint[], p_amounts bigint[],
  p_reasons text[], p_metadata text[], p_idempotency_keys text[], p_patient boolean DEFAULT true)
RETURNS TABLE (outcome text, transfer_id uuid, status text, ledger_id bigint, initiator_balance bigint,
               target_balance bigint, created_at timestamptz, available bigint, throttled_until timestamptz,
               used_today bigint, daily_limit bigint, woken integer)
LANGUAGE plpgsql AS $$
DECLARE
  v_items economy._item[] := economy._items_of('now', p_transfer_ids, p_guild_ids, p_initiator_ids, p_target_ids,
                                               p_amounts, p_reasons, p_metadata, p_idempotency_keys);
  v_parties economy._parties;
  v_classes economy._class[];
  v_kept boolean[];
  r economy._settlement;
BEGIN
  IF NOT p_patient THEN
    v_kept := economy._kept(v_items);
    v_items := economy._without(v_items, v_kept);
  END IF;
  v_parties := economy._lock_parties(v_items);
  IF economy._any_key(p_idempotency_keys) THEN
    v_classes := economy._classify(v_items);
    v_items := economy._only_new(v_items, v_classes);
  END IF;
  r := economy._settle(v_items, v_parties, NULL, NULL);
  RETURN QUERY
    SELECT CASE WHEN v_kept[k.ordinality] THEN 'kept'
                WHEN k.failed_on IS NULL THEN k.class
                WHEN k.failed_on = 0 THEN CASE k.class WHEN 'repeat' THEN 'existing' ELSE 'completed' END
                WHEN k.failed_on & 1 = 1 THEN 'insufficient_balance'
                WHEN k.failed_on & 2 = 2 THEN 'cooldown'
                ELSE 'daily_limit'
           END,
           CASE WHEN k.class = 'conflict' AND k.first_passed THEN coalesce(k.known_id, v_items[k.first].transfer_id)
                WHEN k.failed_on = 0 THEN v_items[k.first].transfer_id
                ELSE k.known_id
           END,
           CASE WHEN k.failed_on = 0 OR t.id IS NOT NULL THEN 'completed'
                WHEN k.class = 'existing'
                THEN (SELECT p.status::text FROM economy.pending_transfers AS p WHERE p.transfer_id = k.known_id)
           END,
           CASE WHEN k.failed_on = 0 THEN (r.ledger_ids)[k.first] ELSE t.id END,
           CASE WHEN k.failed_on = 0 THEN (r.debit_after)[k.first] ELSE t.debit_after END,
           CASE WHEN k.failed_on = 0 THEN (r.credit_after)[k.first] ELSE t.credit_after END,
           CASE WHEN k.failed_on = 0 THEN v_parties.at ELSE t.created_at END,
           CASE WHEN k.failed_on & 1 = 1 THEN (k.verdict).available END,
           CASE WHEN k.failed_on & 3 = 2 THEN (k.verdict).throttled_until END,
           CASE WHEN k.failed_on = 4 THEN (k.verdict).used END,
           CASE WHEN k.failed_on = 4 THEN (k.verdict).daily_limit END,
           r.woken
      FROM (SELECT k.*, (k.verdict).failed_on = 0 AS first_passed,
                   CASE WHEN k.class IN ('new', 'repeat') THEN (k.verdict).failed_on END AS failed_on
              FROM (SELECT k.ordinality, k.known_id, coalesce(k.first, k.ordinality) AS first,
                           coalesce(k.outcome, CASE WHEN k.step IS NULL THEN 'invalid' ELSE 'new' END) AS class,
                           (r.verdicts)[coalesce(k.first, k.ordinality)] AS verdict
                      FROM ROWS FROM (unnest(v_items), unnest(v_classes)) WITH ORDINALITY AS k) AS k) AS k
      LEFT JOIN economy.transactions AS t ON t.transfer_id = CASE WHEN k.class = 'existing' THEN k.known_id END
     ORDER BY k.ordinality;
END $$;

-- Takes due work and does it, in one transaction: completes what is approved, checks again what waits. Lanes keep a
-- guild's transfers in one pair of hands: they are done in order however many nodes there are, and no two nodes wait
-- for each other's accounts. Every lane with due work gets its share, so that one guild with much of it does not keep
-- the others waiting.
--   p_only     these and no others, to find the one that makes a set fail
--   p_patient  false: hardly waits for locks (_kept); what somebody keeps is put off for 2 s
-- Answers: how many of each; more: call again at once; busy: somebody else has a lane with due work; next_due_at: of
-- what was not due yet when this began, so it may be past already.
CREATE FUNCTION economy.fn_process_due(p_limit integer, p_only uuid[] DEFAULT NULL, p_patient boolean DEFAULT true,
                                       OUT claimed integer, OUT completed integer, OUT approved integer,
                                       OUT waiting integer, OUT denied integer, OUT put_off integer, OUT more boolean,
                                       OUT busy boolean, OUT next_due_at timestamptz)
LANGUAGE plpgsql AS $$
DECLARE
  v_begun_at timestamptz := clock_timestamp();
  v_lanes smallint[];  -- where something is due, the oldest first
  v_lane smallint;
  v_left integer;      -- lanes that have not had their turn
  v_share integer;
  v_checks uuid[] := '{}';
  v_approved uuid[] := '{}';
  v_items economy._item[];
  v_kept boolean[];
  v_parties economy._parties;
  r economy._settlement;
  c record;
BEGIN
  IF (p_limit > 0) IS NOT TRUE THEN
    RAISE EXCEPTION 'nothing can be done with a limit of %', coalesce(p_limit::text, 'NULL')
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  claimed := 0;
  completed := 0;
  approved := 0;
  waiting := 0;
  denied := 0;
  put_off := 0;
  more := false;
  busy := false;
  -- From lane to lane by the index: most are empty.
  WITH RECURSIVE oldest AS (
    (SELECT w.lane, w.due_at FROM economy.transfer_work AS w ORDER BY w.lane, w.due_at LIMIT 1)
     UNION ALL
    SELECT next.lane, next.due_at
      FROM oldest AS o
     CROSS JOIN LATERAL (SELECT w.lane, w.due_at
                           FROM economy.transfer_work AS w
                          WHERE w.lane > o.lane
                          ORDER BY w.lane, w.due_at
                          LIMIT 1) AS next
  )
  SELECT array_agg(o.lane ORDER BY o.due_at) FILTER (WHERE o.due_at <= v_begun_at),
         min(o.due_at) FILTER (WHERE o.due_at > v_begun_at)
    INTO v_lanes, next_due_at
    FROM oldest AS o;
  IF v_lanes IS NULL THEN RETURN; END IF;

  v_left := cardinality(v_lanes);
  FOREACH v_lane IN ARRAY v_lanes LOOP
    v_share := CASE WHEN p_only IS NULL THEN (p_limit - claimed + v_left - 1) / v_left ELSE p_limit - claimed END;
    v_left := v_left - 1;
    IF NOT pg_try_advisory_xact_lock(economy._lane_class(), v_lane) THEN
      busy := true;
      CONTINUE;
    END IF;
    SELECT array_agg(w.transfer_id) FILTER (WHERE w.approved) AS approved,
           array_agg(w.transfer_id) FILTER (WHERE NOT w.approved) AS checks,
           count(*) AS n
      INTO c
      FROM (SELECT w.transfer_id, w.approved
              FROM economy.transfer_work AS w
             WHERE w.lane = v_lane
               AND w.due_at <= v_begun_at
               AND (p_only IS NULL OR w.transfer_id = ANY (p_only))
             ORDER BY w.due_at, w.seq
             LIMIT v_share
               FOR UPDATE SKIP LOCKED) AS w;
    v_approved := v_approved || c.approved;
    v_checks := v_checks || c.checks;
    claimed := claimed + c.n;
    more := more OR c.n = v_share;
    EXIT WHEN claimed >= p_limit;
  END LOOP;

  IF claimed > 0 THEN
    -- What is completed first may give those that are checked next what they lack.
    v_items := economy._items(v_approved, 'complete');
    IF v_checks <> '{}' THEN v_items := v_items || economy._items(v_checks, 'check'); END IF;
    IF NOT p_patient THEN
      v_kept := economy._kept(v_items);
      UPDATE economy.transfer_work AS w
         SET due_at = clock_timestamp() + interval '2 s'
        FROM ROWS FROM (unnest(v_items), unnest(v_kept)) AS k(step, place, transfer_id, guild_id, initiator_id, target_id,
             amount, reason, metadata, idempotency_key, retry_count, expires_at, next_attempt_at, failed_before, kept)
       WHERE k.kept
         AND w.transfer_id = k.transfer_id;
      GET DIAGNOSTICS put_off = ROW_COUNT;
      v_items := economy._without(v_items, v_kept);
    END IF;
    v_parties := economy._lock_parties(v_items);
    r := economy._settle(v_items, v_parties, false, NULL);
    SELECT array_agg(k.transfer_id) FILTER (WHERE k.step = 'complete') AS ids,
           count(*) FILTER (WHERE k.step = 'complete') AS completed,
           count(*) FILTER (WHERE k.step = 'check') AS checked
      INTO c
      FROM unnest(v_items) AS k;
    completed := c.completed;
    IF completed > 0 THEN PERFORM economy._show_completed(c.ids, v_parties.at); END IF;
    IF c.checked > 0 THEN
      SELECT d.approved, d.waiting, d.denied INTO approved, waiting, denied
        FROM economy._show_checked(v_items, r.verdicts, false, v_parties.at) AS d;
    END IF;
    more := more OR r.woken > 0 OR approved > 0;
  END IF;
  IF NOT more THEN
    SELECT least(next_due_at, min(next.due_at)) INTO next_due_at
      FROM unnest(v_lanes) AS l(lane)
     CROSS JOIN LATERAL (SELECT w.due_at
                           FROM economy.transfer_work AS w
                          WHERE w.lane = l.lane
                            AND w.due_at > v_begun_at
                          ORDER BY w.due_at
                          LIMIT 1) AS next;
  END IF;
END $$;

-- Rejects what has waited too long. Answers how many; as many as p_limit means: call again.
CREATE FUNCTION economy.fn_expire_transfers(p_limit integer) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
  v_at timestamptz := clock_timestamp();
  v_ids uuid[];
BEGIN
  SELECT array_agg(w.transfer_id) INTO v_ids
    FROM (SELECT w.transfer_id
            FROM economy.transfer_work AS w
           WHERE NOT w.approved
             AND w.expires_at < v_at
           ORDER BY w.expires_at
           LIMIT p_limit
             FOR UPDATE SKIP LOCKED) AS w;
  RETURN CASE WHEN v_ids IS NULL THEN 0 ELSE economy._deny(v_ids, 'transfer_checks_expired', v_at) END;
END $$;

-- Cancels a transfer that is not approved yet. Answers whether it did, and the status afterwards (NULL: no such one).
CREATE FUNCTION economy.fn_cancel_transfer(p_transfer_id uuid, OUT cancelled boolean, OUT status text)
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM FROM economy.transfer_work AS w WHERE w.transfer_id = p_transfer_id FOR UPDATE;
  cancelled := economy._deny(ARRAY[p_transfer_id], 'transfer_cancelled', clock_timestamp()) = 1;
  SELECT p.status INTO status FROM economy.pending_transfers AS p WHERE p.transfer_id = p_transfer_id;
END $$;

-- Looks at it again later, for the one in a set that fails for a reason nobody foresaw: it must not hold up the rest.
CREATE FUNCTION economy.fn_defer_transfer(p_transfer_id uuid, p_seconds double precision) RETURNS boolean
LANGUAGE sql VOLATILE AS $$
  WITH put_off AS (
    UPDATE economy.transfer_work
       SET due_at = clock_timestamp() + make_interval(secs => p_seconds)
     WHERE transfer_id = p_transfer_id
    RETURNING 1
  )
  SELECT EXISTS (SELECT FROM put_off)
$$;

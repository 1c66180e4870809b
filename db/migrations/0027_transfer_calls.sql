-- What nodes and operators call to create, carry out and fail transfers, on the steps of 0024. Arrays have one element for
-- each item, in the caller's order, and so have the answers. Business outcomes are answers, never errors: an error means
-- that nothing was done, and 40001 and 40P01 mean try again.

-- ── Creating in the pool ──────────────────────────────────────────────────────────────────────────────────────────

DROP FUNCTION economy.fn_create_pending_transfers(uuid[], bigint[], bigint[], bigint[], bigint[], text[], text[],
                                                  integer[], text[], boolean);
-- Creates a set of transfers in the pool, checked when this returns.
--   p_transfer_ids   NULL elements: made here
--   p_metadata       JSON texts, NULL: {}
--   p_expires_hours  NULL elements: the guild's default
--   p_max_retries    NULL: the guild's, as are NULL elements; -1: until it expires
--   p_patient        false: hardly waits for locks (_free_accounts), and what another session keeps is `kept`
-- Answers: outcome (created · existing · conflict · invalid · kept), transfer_id (NULL when invalid or kept; of a
-- conflict, whose key it is), status.
CREATE FUNCTION economy.fn_create_pending_transfers(
  p_transfer_ids uuid[], p_guild_ids bigint[], p_initiator_ids bigint[], p_target_ids bigint[], p_amounts bigint[],
  p_reasons text[], p_metadata text[], p_expires_hours integer[], p_idempotency_keys text[],
  p_patient boolean DEFAULT true, p_max_retries integer[] DEFAULT NULL)
RETURNS TABLE (outcome text, transfer_id uuid, status text)
LANGUAGE plpgsql AS $$
DECLARE
  v_outcomes text[];
  v_ids uuid[];
  v_guilds bigint[];
  v_payers bigint[];
  v economy._places;
  k economy._classes;
BEGIN
  SELECT array_agg(CASE WHEN i.ok THEN 'new' ELSE 'invalid' END ORDER BY i.n),
         array_agg(coalesce(i.transfer_id, gen_random_uuid()) ORDER BY i.n)
    INTO v_outcomes, v_ids
    FROM (SELECT i.*, economy._makes_sense(i.guild_id, i.payer_id, i.target_id, i.amount) AS ok
            FROM unnest(p_transfer_ids, p_guild_ids, p_initiator_ids, p_target_ids, p_amounts) WITH ORDINALITY
                 AS i(transfer_id, guild_id, payer_id, target_id, amount, n)) AS i;
  IF NOT p_patient OR economy._any_key(p_idempotency_keys) THEN
    SELECT array_agg(i.guild_id ORDER BY i.n), array_agg(CASE WHEN i.outcome = 'new' THEN i.payer_id END ORDER BY i.n)
      INTO v_guilds, v_payers
      FROM unnest(v_outcomes, p_guild_ids, p_initiator_ids) WITH ORDINALITY AS i(outcome, guild_id, payer_id, n);
    v := economy._places_of(v_guilds, v_payers, array_fill(NULL::bigint, ARRAY[cardinality(v_payers)]));
  END IF;
  IF NOT p_patient THEN
    v := economy._only_free(v);
    SELECT array_agg(CASE WHEN i.payer = 0 THEN 'kept' ELSE i.outcome END ORDER BY i.n)
      INTO v_outcomes
      FROM unnest(v_outcomes, v.payers) WITH ORDINALITY AS i(outcome, payer, n);
  END IF;
  IF economy._any_key(p_idempotency_keys) THEN
    PERFORM economy._lock_parties(v);  -- the payer's lock keeps a key from being used twice
    k := economy._classify(v_outcomes, p_guild_ids, p_initiator_ids, p_target_ids, p_amounts, p_reasons, p_metadata,
                           p_idempotency_keys);
    v_outcomes := k.outcomes;
  END IF;
  INSERT INTO economy.pending_transfers (transfer_id, guild_id, initiator_id, target_id, amount, reason, metadata,
                                         expires_at, idempotency_key, max_retries)
  SELECT i.transfer_id, i.guild_id, i.payer_id, i.target_id, i.amount, i.reason, coalesce(i.metadata::jsonb, '{}'),
         economy._clock() + make_interval(
           hours => coalesce(i.hours, (SELECT s.default_expiry_hours FROM economy._settings(i.guild_id) AS s))),
         i.idempotency_key, i.max_retries
    FROM unnest(v_outcomes, v_ids, p_guild_ids, p_initiator_ids, p_target_ids, p_amounts, p_reasons, p_metadata,
                p_expires_hours, p_idempotency_keys, p_max_retries) WITH ORDINALITY
         AS i(outcome, transfer_id, guild_id, payer_id, target_id, amount, reason, metadata, hours, idempotency_key,
              max_retries, n)
   WHERE i.outcome = 'new'
   ORDER BY i.n;
  RETURN QUERY
    SELECT CASE i.outcome WHEN 'new' THEN 'created' WHEN 'repeat' THEN 'existing' ELSE i.outcome END,
           i.id,
           coalesce((SELECT p.status::text FROM economy.pending_transfers AS p WHERE p.transfer_id = i.id),
                    (SELECT 'completed' FROM economy.transactions AS t WHERE t.transfer_id = i.id))
      FROM (SELECT i.n, i.outcome,
                   CASE WHEN i.outcome = 'new' THEN i.transfer_id
                        WHEN i.outcome NOT IN ('invalid', 'kept') THEN coalesce(i.known_id, v_ids[i.first])
                   END AS id
              FROM unnest(v_outcomes, v_ids, k.known_ids, k.firsts) WITH ORDINALITY
                   AS i(outcome, transfer_id, known_id, first, n)) AS i
     ORDER BY i.n;
END $$;

-- ── Due work ──────────────────────────────────────────────────────────────────────────────────────────────────────

-- What a call of fn_process_due has taken.
CREATE TYPE economy._claim AS (
  lanes     smallint[],  -- where something is due, the oldest first; NULL: nowhere
  approved  uuid[],      -- to be completed
  waiting   uuid[],      -- to be checked again
  more      boolean,     -- a lane may have more than its share
  lane_busy boolean,     -- another session works on a lane with due work
  rows_busy boolean,     -- other sessions have locked all due work of a lane
  next_at   timestamptz  -- when the first of the other lanes is due
);

-- The sessions that work on a lane: a row lock names its transaction, and the transaction its session.
CREATE FUNCTION economy.fn_lane_holders() RETURNS TABLE (pid integer)
LANGUAGE sql STABLE AS $$
  SELECT DISTINCT l.pid
    FROM economy.transfer_lanes AS t
    JOIN pg_locks AS l ON l.locktype = 'transactionid' AND l.transactionid = t.xmax AND l.granted
$$;
DROP FUNCTION economy._lane_class();

-- Locks the work rows of what is due, at most p_limit, from the lanes in the order of their oldest. Every lane with due
-- work gets its share, so that one guild with much of it does not keep the others waiting. Locked rows are skipped.
CREATE FUNCTION economy._claim_due(p_limit integer, p_only uuid[], p_hold_lanes boolean, p_at timestamptz)
RETURNS economy._claim
LANGUAGE plpgsql AS $$
DECLARE
  v economy._claim;
  v_claimed integer := 0;
  v_lane smallint;
  v_left integer;  -- lanes that have not had their share
  v_share integer;
  c record;
BEGIN
  v.approved := '{}';
  v.waiting := '{}';
  v.more := false;
  v.lane_busy := false;
  v.rows_busy := false;
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
  SELECT array_agg(o.lane ORDER BY o.due_at) FILTER (WHERE o.due_at <= p_at),
         min(o.due_at) FILTER (WHERE o.due_at > p_at)
    INTO v.lanes, v.next_at
    FROM oldest AS o;
  IF v.lanes IS NULL THEN RETURN v; END IF;
  v_left := cardinality(v.lanes);
  FOREACH v_lane IN ARRAY v.lanes LOOP
    v_share := CASE WHEN p_only IS NULL THEN (p_limit - v_claimed + v_left - 1) / v_left ELSE p_limit - v_claimed END;
    v_left := v_left - 1;
    IF p_hold_lanes THEN
      PERFORM FROM economy.transfer_lanes AS l WHERE l.lane = v_lane FOR NO KEY UPDATE SKIP LOCKED;
      IF NOT FOUND THEN
        v.lane_busy := true;
        CONTINUE;
      END IF;
    END IF;
    SELECT array_agg(w.transfer_id) FILTER (WHERE w.approved) AS approved,
           array_agg(w.transfer_id) FILTER (WHERE NOT w.approved) AS waiting,
           count(*)::integer AS n
      INTO c
      FROM (SELECT w.transfer_id, w.approved
              FROM economy.transfer_work AS w
             WHERE w.lane = v_lane
               AND w.due_at <= p_at
               AND (p_only IS NULL OR w.transfer_id = ANY (p_only))
             ORDER BY w.due_at, w.seq
             LIMIT v_share
               FOR UPDATE SKIP LOCKED) AS w;
    v.approved := v.approved || c.approved;
    v.waiting := v.waiting || c.waiting;
    v.more := v.more OR c.n = v_share;
    v.rows_busy := v.rows_busy OR c.n = 0 AND p_only IS NULL;
    v_claimed := v_claimed + c.n;
    EXIT WHEN v_claimed >= p_limit;
  END LOOP;
  RETURN v;
END $$;

-- Of claimed transfers: the parties whose locks completing and checking them needs.
CREATE FUNCTION economy._places_of_claim(p_ids uuid[], p_approved integer) RETURNS economy._places
LANGUAGE plpgsql STABLE AS $$
DECLARE
  v_guilds bigint[];
  v_payers bigint[];
  v_targets bigint[];
BEGIN
  SELECT array_agg(p.guild_id ORDER BY k.n), array_agg(p.initiator_id ORDER BY k.n),
         array_agg(CASE WHEN k.n <= p_approved THEN p.target_id END ORDER BY k.n)
    INTO v_guilds, v_payers, v_targets
    FROM unnest(p_ids) WITH ORDINALITY AS k(transfer_id, n)
    JOIN economy.pending_transfers AS p USING (transfer_id);
  RETURN economy._places_of(v_guilds, v_payers, v_targets);
END $$;

-- Takes due work and does it, in one transaction: completes what is approved, checks again what waits. Lanes keep a
-- guild's transfers with one node at a time: they are done in order however many nodes there are, and no two nodes wait
-- for each other's accounts.
--   p_only        these and no others, to find the one that makes a set fail
--   p_patient     false: hardly waits for locks (_free_accounts); what another session keeps is put off for 2 s
--   p_hold_lanes  as nodes do: no two of them work on a lane. Otherwise the locks of rows are all that is taken, and a
--                 transaction that stays open holds up only what it has claimed
-- Answers: how many of each; more: call again at once; lane_busy: another session works on a lane with due work; busy:
-- that, or other sessions have locked due work or what a reminder is about; next_due_at: of what was not due yet when this
-- began, so it may be past already.
DROP FUNCTION economy.fn_process_due(integer, uuid[], boolean);
CREATE FUNCTION economy.fn_process_due(p_limit integer, p_only uuid[] DEFAULT NULL, p_patient boolean DEFAULT true,
                                       p_hold_lanes boolean DEFAULT false, OUT claimed integer, OUT completed integer,
                                       OUT approved integer, OUT waiting integer, OUT denied integer,
                                       OUT put_off integer, OUT more boolean, OUT busy boolean,
                                       OUT lane_busy boolean, OUT next_due_at timestamptz)
LANGUAGE plpgsql AS $$
DECLARE
  v_begun_at timestamptz := economy._clock();
  v_again_at timestamptz;
  v economy._claim;
  v_ids uuid[];
  v_places economy._places;
  v_payers integer[];
  v_targets integer[];
  v_put_off uuid[] := ARRAY[]::uuid[];
  v_woken integer := 0;
  v_moved integer := 0;
BEGIN
  IF (p_limit > 0) IS NOT TRUE THEN
    RAISE EXCEPTION 'nothing can be done with a limit of %', coalesce(p_limit::text, 'NULL')
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  completed := 0;
  approved := 0;
  waiting := 0;
  denied := 0;
  put_off := 0;
  v_again_at := economy._follow_reminders(v_begun_at);
  v := economy._claim_due(p_limit, p_only, p_hold_lanes, v_begun_at);
  claimed := cardinality(v.approved) + cardinality(v.waiting);
  more := v.more;
  lane_busy := v.lane_busy;
  busy := lane_busy OR v.rows_busy OR coalesce(v_again_at = v_begun_at, false);
  next_due_at := least(v.next_at, nullif(v_again_at, v_begun_at));

  IF NOT p_patient AND claimed > 0 THEN
    v_ids := v.approved || v.waiting;
    v_places := economy._only_free(economy._places_of_claim(v_ids, cardinality(v.approved)));
    v_payers := v_places.payers;
    v_targets := v_places.targets;
    FOR n IN 1 .. cardinality(v_ids) LOOP
      IF v_payers[n] = 0 OR v_targets[n] = 0 THEN v_put_off := v_put_off || v_ids[n]; END IF;
    END LOOP;
    UPDATE economy.transfer_work SET due_at = economy._clock() + interval '2 s' WHERE transfer_id = ANY (v_put_off);
    GET DIAGNOSTICS put_off = ROW_COUNT;
    v.approved := ARRAY(SELECT id FROM unnest(v.approved) AS a(id) WHERE id <> ALL (v_put_off));
    v.waiting := ARRAY(SELECT id FROM unnest(v.waiting) AS w(id) WHERE id <> ALL (v_put_off));
  ELSIF cardinality(v.approved) > 0 AND cardinality(v.waiting) > 0 THEN
    -- Both steps lock their accounts. Lock all of them first, in one order.
    PERFORM economy._lock_parties(economy._places_of_claim(v.approved || v.waiting, cardinality(v.approved)));
  END IF;
  -- What is completed first may give those that are checked next what they lack.
  IF cardinality(v.approved) > 0 THEN
    SELECT c.completed, c.woken INTO completed, v_woken FROM economy._complete(v.approved) AS c;
  END IF;
  IF cardinality(v.waiting) > 0 THEN
    SELECT c.approved, c.waiting, c.denied, c.moved INTO approved, waiting, denied, v_moved
      FROM economy._check_again(v.waiting) AS c;
  END IF;
  more := more OR v_woken > 0 OR approved > 0 OR v_moved > 0;

  IF NOT more THEN
    SELECT least(next_due_at, min(next.due_at)) INTO next_due_at
      FROM unnest(v.lanes) AS l(lane)
     CROSS JOIN LATERAL (SELECT w.due_at
                           FROM economy.transfer_work AS w
                          WHERE w.lane = l.lane
                            AND w.due_at > v_begun_at
                          ORDER BY w.due_at
                          LIMIT 1) AS next;
  END IF;
END $$;

-- ── One transfer, by hand ─────────────────────────────────────────────────────────────────────────────────────────

-- Tries a waiting transfer now, which counts as a retry only if one is due. Whether it is approved.
CREATE OR REPLACE FUNCTION economy._check_and_approve_transfer(p_transfer_id uuid) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
  v_approved integer;
  v_moved integer;
BEGIN
  PERFORM FROM economy.transfer_work AS w WHERE w.transfer_id = p_transfer_id AND NOT w.approved FOR UPDATE;
  IF NOT FOUND THEN RETURN false; END IF;
  SELECT c.approved, c.moved INTO v_approved, v_moved FROM economy._check_again(ARRAY[p_transfer_id]) AS c;
  IF v_approved = 1 OR v_moved > 0 THEN PERFORM pg_notify('economy_work', ''); END IF;
  RETURN v_approved = 1;
END $$;

-- Takes a transfer a step further, with all that the step means: `approved` if the checks pass now, `completed` with
-- the money moved, `rejected` as cancelled. Whether it did; what the machine does not allow is false.
CREATE OR REPLACE FUNCTION economy.fn_update_pending_transfer_status(p_transfer_id uuid, p_new_status text)
RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  CASE p_new_status
    WHEN 'approved' THEN RETURN economy._check_and_approve_transfer(p_transfer_id);
    WHEN 'rejected' THEN RETURN (SELECT c.cancelled FROM economy.fn_cancel_transfer(p_transfer_id) AS c);
    WHEN 'completed' THEN
      PERFORM FROM economy.transfer_work AS w WHERE w.transfer_id = p_transfer_id AND w.approved FOR UPDATE;
      IF NOT FOUND THEN RETURN false; END IF;
      PERFORM economy._complete(ARRAY[p_transfer_id]);
      PERFORM pg_notify('economy_work', '');  -- transfers that waited for the money may be due
      RETURN true;
    ELSE RETURN false;  -- `pending` and `checking` are where a transfer is put, not where it can be sent
  END CASE;
END $$;

-- Rejects an approved transfer: gives back what was reserved and, on the day of its approval, the allowance. The
-- cooldown stays. What waits for either becomes due. Requires: the work row, of an approved transfer, is locked.
CREATE FUNCTION economy._fail(p_work economy.transfer_work) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  v economy._places := economy._places_of(ARRAY[p_work.guild_id], ARRAY[p_work.initiator_id], ARRAY[NULL::bigint]);
  v_locked economy._locked := economy._lock_parties(v);
  a economy.accounts;
BEGIN
  UPDATE economy.accounts AS x
     SET reserved = x.reserved - p_work.amount,
         day_used = CASE WHEN x.day = p_work.counted_on THEN greatest(x.day_used - p_work.amount, 0) ELSE x.day_used END
   WHERE x.guild_id = p_work.guild_id
     AND x.member_id = p_work.initiator_id
  RETURNING * INTO a;
  DELETE FROM economy.transfer_work WHERE transfer_id = p_work.transfer_id;
  UPDATE economy.pending_transfers
     SET status = 'rejected',
         updated_at = v_locked.at
   WHERE transfer_id = p_work.transfer_id;
  PERFORM economy._tell_denied(ARRAY[p_work.transfer_id], 'transfer_failed');
  PERFORM economy._wake_credited(v.guild_ids, v.member_ids, ARRAY[true], v_locked.awaits, ARRAY[a.balance],
                                 ARRAY[a.reserved], v_locked.at);
  PERFORM economy._wake_throttled(p_work.guild_id, p_work.initiator_id);
  PERFORM pg_notify('economy_work', '');
END $$;

-- ── Operators ─────────────────────────────────────────────────────────────────────────────────────────────────────

-- Minting and burning: the same movement in opposite directions. A key that was used gets the answer of that time.
--   outcome  completed · existing · conflict · invalid · supply_overflow · insufficient_balance (available says more)
CREATE OR REPLACE FUNCTION economy._issue(p_kind text, p_guild_id bigint, p_member_id bigint, p_amount bigint,
                                          p_reason text, p_actor text, p_idempotency_key text,
                                          OUT outcome text, OUT transfer_id uuid, OUT ledger_id bigint,
                                          OUT balance bigint, OUT available bigint)
LANGUAGE plpgsql AS $$
DECLARE
  -- The guild's system account is member 0, so it is the first of the two.
  v_guilds bigint[] := ARRAY[p_guild_id, p_guild_id];
  v_members bigint[] := ARRAY[0, p_member_id];
  v_payer integer := CASE p_kind WHEN 'mint' THEN 1 ELSE 2 END;
  v_target integer := 3 - v_payer;
  v_change bigint := CASE p_kind WHEN 'mint' THEN p_amount ELSE -p_amount END;
  v_balances bigint[];
  a economy._locked;
  t economy.transactions;
BEGIN
  IF (p_guild_id > 0 AND p_member_id > 0 AND p_amount > 0) IS NOT TRUE THEN
    outcome := 'invalid';
    RETURN;
  END IF;
  PERFORM economy._need_record(p_reason, p_actor);
  IF octet_length(p_idempotency_key) NOT BETWEEN 1 AND 128 THEN
    RAISE EXCEPTION 'an idempotency key has 1 to 128 bytes' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  INSERT INTO economy.accounts (guild_id, member_id, kind)
  VALUES (p_guild_id, 0, 'system'), (p_guild_id, p_member_id, 'member')
      ON CONFLICT DO NOTHING;
  a := economy._lock_accounts(v_guilds, v_members);
  v_balances := a.balances;
  available := v_balances[2] - (a.reserved)[2];
  SELECT * INTO t
    FROM economy.transactions AS x
   WHERE x.guild_id = p_guild_id AND x.debit_id = v_members[v_payer] AND x.idempotency_key = p_idempotency_key
     AND x.kind = p_kind;
  IF FOUND THEN
    outcome := CASE WHEN (t.credit_id, t.amount, t.reason)
                         IS NOT DISTINCT FROM (v_members[v_target], p_amount, p_reason)
                    THEN 'existing' ELSE 'conflict' END;
  ELSIF p_kind = 'mint' AND p_amount > 9223372036854775807 + v_balances[1] THEN
    outcome := 'supply_overflow';
    RETURN;
  ELSIF p_kind = 'burn' AND NOT economy._rule_balance(available, p_amount) THEN
    outcome := 'insufficient_balance';
    RETURN;
  ELSE
    outcome := 'completed';
    v_balances := ARRAY[v_balances[1] - v_change, v_balances[2] + v_change];
    available := available + v_change;
    t.transfer_id := gen_random_uuid();
    t.id := nextval('economy.transactions_id_seq');
    t.debit_after := v_balances[v_payer];
    t.credit_after := v_balances[v_target];
    PERFORM economy._write_accounts(a.places, ARRAY[true, true], v_balances, a.reserved, a.used, ARRAY[false, false],
                                    a.awaits, a.at);
    PERFORM economy._post(p_kind, v_guilds, v_members, ARRAY[v_payer], ARRAY[v_target], ARRAY[p_amount],
                          ARRAY[t.transfer_id], ARRAY[t.id], ARRAY[t.debit_after], ARRAY[t.credit_after], NULL,
                          ARRAY[p_reason], NULL, ARRAY[p_idempotency_key], p_actor, a.at);
    INSERT INTO economy.operations (guild_id, member_id, action, reason, actor, detail)
    VALUES (p_guild_id, p_member_id, p_kind, p_reason, p_actor,
            jsonb_build_object('amount', p_amount::text, 'ledgerId', t.id::text));
    IF p_kind = 'mint'
       AND economy._wake_credited(v_guilds, v_members, ARRAY[false, true], a.awaits, v_balances, a.reserved, a.at) > 0 THEN
      PERFORM pg_notify('economy_work', '');
    END IF;
  END IF;
  transfer_id := t.transfer_id;
  ledger_id := t.id;
  balance := CASE p_kind WHEN 'mint' THEN t.credit_after ELSE t.debit_after END;
END $$;

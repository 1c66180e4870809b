-- Synchronous transfers, on the steps of 0024: a set is decided in memory, one item after the other, and then written.

-- ── Synchronous transfers ─────────────────────────────────────────────────────────────────────────────────────────

-- What rules and accounting make of a set of synchronous transfers, before anything is written.
CREATE TYPE economy._moves AS (
  outcomes        text[],
  details         jsonb[],    -- of what is refused: the numbers behind it
  ledger_ids      bigint[],   -- of what moves, as are the balances that it leaves
  payer_balances  bigint[],
  target_balances bigint[],
  counted_on      date[],
  touched         boolean[],  -- of each party, as is the rest
  balances        bigint[],
  used            bigint[],
  spent           boolean[],  -- counts against the day and the cooldown
  credited        boolean[]
);

-- Takes the items that are `new` one after the other, each as if it were alone. What passes starts the cooldown and takes
-- of the day's allowance; what fails takes nothing. Writes nothing.
CREATE FUNCTION economy._decide_now(p_outcomes text[], p_guild_ids bigint[], p_payers integer[], p_targets integer[],
                                    p_amounts bigint[], a economy._locked) RETURNS economy._moves
LANGUAGE plpgsql AS $$
DECLARE
  v economy._moves;
  s economy.guild_settings;
  v_details jsonb[] := array_fill(NULL::jsonb, ARRAY[cardinality(p_outcomes)]);
  v_ledger_ids bigint[] := array_fill(NULL::bigint, ARRAY[cardinality(p_outcomes)]);
  v_payer_balances bigint[] := v_ledger_ids;
  v_target_balances bigint[] := v_ledger_ids;
  v_counted_on date[] := array_fill(NULL::date, ARRAY[cardinality(p_outcomes)]);
  v_kinds text[] := a.kinds;
  v_balances bigint[] := a.balances;
  v_reserved bigint[] := a.reserved;
  v_used bigint[] := a.used;
  v_last timestamptz[] := a.last_at;
  v_touched boolean[] := array_fill(false, ARRAY[cardinality(a.kinds)]);
  v_spent boolean[] := v_touched;
  v_credited boolean[] := v_touched;
  v_at timestamptz := a.at;
  v_today date := (a.at AT TIME ZONE 'UTC')::date;
  v_amount bigint;
  v_until timestamptz;
  v_failed smallint;
  p integer;
  t integer;
BEGIN
  FOR n IN 1 .. cardinality(p_outcomes) LOOP
    CONTINUE WHEN p_outcomes[n] <> 'new';
    p := p_payers[n];
    t := p_targets[n];
    v_amount := p_amounts[n];
    IF s.guild_id IS DISTINCT FROM p_guild_ids[p] THEN
      SELECT * INTO s FROM economy._settings(p_guild_ids[p]);
      s.guild_id := p_guild_ids[p];
    END IF;
    v_until := economy._throttled_until(v_last[p], s.cooldown_seconds);
    v_failed := economy._failed_rules(v_kinds[p], v_balances[p] - v_reserved[p], v_until, v_used[p], s.daily_limit,
                                      v_amount, v_at);
    IF v_failed = 0 THEN
      p_outcomes[n] := 'completed';
      IF v_kinds[p] <> 'government' THEN
        v_used[p] := economy._add_used(v_used[p], v_amount);
        v_last[p] := v_at;
        v_spent[p] := true;
        v_counted_on[n] := v_today;
      END IF;
      v_balances[p] := v_balances[p] - v_amount;
      v_balances[t] := v_balances[t] + v_amount;
      v_touched[p] := true;
      v_touched[t] := true;
      v_credited[t] := true;
      v_ledger_ids[n] := nextval('economy.transactions_id_seq');
      v_payer_balances[n] := v_balances[p];
      v_target_balances[n] := v_balances[t];
    ELSIF v_failed & 1 = 1 THEN
      p_outcomes[n] := 'insufficient_balance';
      v_details[n] := jsonb_build_object('available', v_balances[p] - v_reserved[p]);
    ELSIF v_failed & 2 = 2 THEN
      p_outcomes[n] := 'cooldown';
      v_details[n] := jsonb_build_object('throttled_until', economy._iso(v_until));
    ELSE
      p_outcomes[n] := 'daily_limit';
      v_details[n] := jsonb_build_object('used_today', v_used[p], 'daily_limit', s.daily_limit);
    END IF;
  END LOOP;
  v.outcomes := p_outcomes;
  v.details := v_details;
  v.ledger_ids := v_ledger_ids;
  v.payer_balances := v_payer_balances;
  v.target_balances := v_target_balances;
  v.counted_on := v_counted_on;
  v.touched := v_touched;
  v.balances := v_balances;
  v.used := v_used;
  v.spent := v_spent;
  v.credited := v_credited;
  RETURN v;
END $$;

-- Which items can be tried, `new`, and why the others cannot: `kept` (their party is not free: place 0) or `invalid`.
CREATE FUNCTION economy._admissible(p_guild_ids bigint[], p_payers integer[], p_targets integer[], p_amounts bigint[],
                                    p_transfer_ids uuid[], p_reasons text[], p_metadata text[],
                                    p_idempotency_keys text[], a economy._locked) RETURNS text[]
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  v_outcomes text[] := array_fill('new'::text, ARRAY[cardinality(p_amounts)]);
  v_kinds text[] := a.kinds;
BEGIN
  FOR n IN 1 .. cardinality(p_amounts) LOOP
    IF p_payers[n] = 0 OR p_targets[n] = 0 THEN
      v_outcomes[n] := 'kept';
    ELSIF (p_payers[n] <> p_targets[n] AND p_guild_ids[p_payers[n]] = p_guild_ids[p_targets[n]] AND p_amounts[n] > 0
           AND v_kinds[p_payers[n]] <> 'system' AND v_kinds[p_targets[n]] <> 'system') IS NOT TRUE THEN
      v_outcomes[n] := 'invalid';
    ELSIF NOT economy._texts_fit(p_reasons[n], p_metadata[n], p_idempotency_keys[n]) THEN
      RAISE EXCEPTION 'the texts of transfer % are too long', p_transfer_ids[n]
        USING ERRCODE = 'check_violation',
              HINT = 'A reason has at most 500 characters, a key 1 to 128 bytes; metadata is an object of at most 8192 '
                     'bytes and 16 levels.';
    END IF;
  END LOOP;
  RETURN v_outcomes;
END $$;

-- What a transfer that was made before was answered, or would be.
CREATE FUNCTION economy._known_answer(p_transfer_id uuid) RETURNS jsonb
LANGUAGE sql STABLE AS $$
  SELECT coalesce((SELECT jsonb_build_object('transfer_id', t.transfer_id, 'status', 'completed', 'ledger_id', t.id,
                                             'initiator_balance', t.debit_after, 'target_balance', t.credit_after,
                                             'created_at', economy._iso(t.created_at))
                     FROM economy.transactions AS t
                    WHERE t.transfer_id = p_transfer_id),
                  (SELECT jsonb_build_object('transfer_id', p.transfer_id, 'status', p.status)
                     FROM economy.pending_transfers AS p
                    WHERE p.transfer_id = p_transfer_id))
$$;

-- Answers the items whose key belongs to another transfer: one made before, or an earlier one of this set (`firsts`).
-- Only after the set is written, so that the transfers of this set are found too.
CREATE FUNCTION economy._answer_known(m economy._moves, k economy._classes, p_transfer_ids uuid[])
RETURNS economy._moves
LANGUAGE plpgsql STABLE AS $$
DECLARE
  v_first integer;
  v_first_completed boolean;
BEGIN
  FOR n IN 1 .. cardinality(m.outcomes) LOOP
    CONTINUE WHEN m.outcomes[n] NOT IN ('repeat', 'existing', 'conflict');
    v_first := (k.firsts)[n];
    v_first_completed := m.outcomes[v_first] = 'completed';
    IF m.outcomes[n] = 'conflict' THEN
      m.details[n] := jsonb_build_object(
        'transfer_id', coalesce((k.known_ids)[n], CASE WHEN v_first_completed THEN p_transfer_ids[v_first] END));
    ELSIF m.outcomes[n] = 'existing' OR v_first_completed THEN
      m.outcomes[n] := 'existing';
      m.details[n] := economy._known_answer(coalesce((k.known_ids)[n], p_transfer_ids[v_first]));
    ELSE
      m.outcomes[n] := m.outcomes[v_first];  -- the same request was just refused
      m.details[n] := m.details[v_first];
    END IF;
  END LOOP;
  RETURN m;
END $$;

-- Transfers at once, or says why not; each item as if it were alone, one after the other. This is what nodes call. The
-- caller has found the parties: each account once, in order of guild and member, and for each item the places of its
-- payer and its target among them, from 1 (NULL: the item makes no sense).
--   p_metadata  JSON texts; NULL: {}
--   p_patient   false: hardly waits for locks (_free_accounts)
--   p_new_ids   the caller has just generated the ids at random. Otherwise they are claimed (_claim_ids), and an id that
--               was used raises unique_violation
-- Answers, for each item: its outcome, and what belongs to it. Details are a JSON object, or NULL where there is nothing.
--   completed             ledger id and balances; it was created at `at`
--   existing              details: transfer_id, status, and ledger_id, initiator_balance, target_balance, created_at once it
--                         is completed
--   insufficient_balance  details: available (balance less what is reserved)
--   cooldown              details: throttled_until
--   daily_limit           details: used_today, daily_limit
--   conflict              details: transfer_id, whose key it is; null when that came in the same set and was refused
--   invalid
--   kept                  when p_patient is false: another session keeps one of the accounts
--   no_account            of all items: an account is missing and nothing was done. Open the accounts (fn_open_accounts)
--                         and call again: opening them here, while others are locked, could deadlock
-- woken: how many waiting transfers became due. This and the events are for the caller to announce after the commit:
-- commits that notify wait for each other (0029).
CREATE FUNCTION economy.fn_transfer_set(
  p_guild_ids bigint[], p_member_ids bigint[], p_payers integer[], p_targets integer[], p_amounts bigint[],
  p_transfer_ids uuid[], p_reasons text[], p_metadata text[], p_idempotency_keys text[], p_patient boolean,
  p_new_ids boolean,
  OUT outcomes text[], OUT details jsonb[], OUT ledger_ids bigint[], OUT payer_balances bigint[],
  OUT target_balances bigint[], OUT at timestamptz, OUT woken integer)
LANGUAGE plpgsql AS $$
DECLARE
  v_any_key boolean := economy._any_key(p_idempotency_keys);
  v_guilds bigint[];  -- of each item, as are the next two
  v_payers bigint[];
  v_targets bigint[];
  f economy._places;
  a economy._locked;
  k economy._classes;
  m economy._moves;
BEGIN
  IF NOT p_patient THEN
    f := economy._only_free(ROW(p_guild_ids, p_member_ids, p_payers, p_targets)::economy._places);
    p_guild_ids := f.guild_ids;
    p_member_ids := f.member_ids;
    p_payers := f.payers;
    p_targets := f.targets;
  END IF;
  woken := 0;
  a := economy._lock_accounts(p_guild_ids, p_member_ids);
  IF cardinality(a.places) <> cardinality(p_member_ids) THEN
    outcomes := array_fill('no_account'::text, ARRAY[cardinality(p_amounts)]);
    RETURN;
  END IF;
  at := a.at;
  outcomes := economy._admissible(p_guild_ids, p_payers, p_targets, p_amounts, p_transfer_ids, p_reasons, p_metadata,
                                  p_idempotency_keys, a);
  IF v_any_key THEN
    SELECT array_agg(p_guild_ids[i.payer] ORDER BY i.n), array_agg(p_member_ids[i.payer] ORDER BY i.n),
           array_agg(p_member_ids[i.target] ORDER BY i.n)
      INTO v_guilds, v_payers, v_targets
      FROM unnest(p_payers, p_targets) WITH ORDINALITY AS i(payer, target, n);
    k := economy._classify(outcomes, v_guilds, v_payers, v_targets, p_amounts, p_reasons, p_metadata, p_idempotency_keys);
    outcomes := k.outcomes;
  END IF;
  IF NOT p_new_ids THEN PERFORM economy._use_ids(p_transfer_ids, outcomes); END IF;
  m := economy._decide_now(outcomes, p_guild_ids, p_payers, p_targets, p_amounts, a);
  IF true = ANY (m.touched) THEN
    PERFORM set_config('fencepost.hints', 'off', true);
    PERFORM economy._write_accounts(a.places, m.touched, m.balances, a.reserved, m.used, m.spent, a.awaits, at);
    PERFORM economy._post('transfer', p_guild_ids, p_member_ids, p_payers, p_targets, p_amounts, p_transfer_ids,
                          m.ledger_ids, m.payer_balances, m.target_balances, m.counted_on, p_reasons, p_metadata,
                          p_idempotency_keys, NULL, at);
    IF true = ANY (a.awaits) THEN
      woken := economy._wake_credited(p_guild_ids, p_member_ids, m.credited, a.awaits, m.balances, a.reserved, at);
    END IF;
  END IF;
  IF v_any_key THEN m := economy._answer_known(m, k, p_transfer_ids); END IF;
  outcomes := m.outcomes;
  details := m.details;
  ledger_ids := m.ledger_ids;
  payer_balances := m.payer_balances;
  target_balances := m.target_balances;
END $$;

-- Opens the accounts that fn_transfer_set did not find.
CREATE FUNCTION economy.fn_open_accounts(p_guild_ids bigint[], p_member_ids bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM economy._open_accounts(p_guild_ids, p_member_ids);
END $$;

-- The same for callers that have no parties and places, in rows. NULL ids are made here.
CREATE FUNCTION economy.fn_transfer_now(
  p_transfer_ids uuid[], p_guild_ids bigint[], p_initiator_ids bigint[], p_target_ids bigint[], p_amounts bigint[],
  p_reasons text[], p_metadata text[], p_idempotency_keys text[], p_patient boolean DEFAULT true)
RETURNS TABLE (outcome text, transfer_id uuid, status text, ledger_id bigint, initiator_balance bigint,
               target_balance bigint, created_at timestamptz, available bigint, throttled_until timestamptz,
               used_today bigint, daily_limit bigint, woken integer)
LANGUAGE plpgsql AS $$
DECLARE
  v economy._places;
  r record;
  v_new_ids boolean := array_remove(p_transfer_ids, NULL) = '{}';
  v_hints text := coalesce(current_setting('fencepost.hints', true), '');
BEGIN
  p_patient := coalesce(p_patient, true);
  -- By position: the arrays of a caller may have other lengths and bounds.
  SELECT array_agg(coalesce(k.transfer_id, gen_random_uuid()) ORDER BY k.n), array_agg(k.amount ORDER BY k.n),
         array_agg(k.reason ORDER BY k.n), array_agg(k.metadata ORDER BY k.n),
         array_agg(k.idempotency_key ORDER BY k.n), array_agg(k.guild_id ORDER BY k.n),
         array_agg(CASE WHEN k.ok THEN k.payer_id END ORDER BY k.n),
         array_agg(CASE WHEN k.ok THEN k.target_id END ORDER BY k.n)
    INTO p_transfer_ids, p_amounts, p_reasons, p_metadata, p_idempotency_keys, p_guild_ids, p_initiator_ids, p_target_ids
    FROM (SELECT k.*, economy._makes_sense(k.guild_id, k.payer_id, k.target_id, k.amount) AS ok
            FROM unnest(p_transfer_ids, p_guild_ids, p_initiator_ids, p_target_ids, p_amounts, p_reasons, p_metadata,
                        p_idempotency_keys) WITH ORDINALITY
                 AS k(transfer_id, guild_id, payer_id, target_id, amount, reason, metadata, idempotency_key, n)) AS k;
  IF p_amounts IS NULL THEN RETURN; END IF;
  v := economy._places_of(p_guild_ids, p_initiator_ids, p_target_ids);
  IF p_patient THEN PERFORM economy._open_accounts(v.guild_ids, v.member_ids); END IF;
  SELECT * INTO r
    FROM economy.fn_transfer_set(v.guild_ids, v.member_ids, v.payers, v.targets, p_amounts, p_transfer_ids, p_reasons,
                                 p_metadata, p_idempotency_keys, p_patient, v_new_ids);
  PERFORM set_config('fencepost.hints', v_hints, true);
  IF 'completed' = ANY (r.outcomes) THEN PERFORM pg_notify('event_log', ''); END IF;
  IF r.woken > 0 THEN PERFORM pg_notify('economy_work', ''); END IF;
  RETURN QUERY
    SELECT k.outcome,
           CASE k.outcome WHEN 'completed' THEN k.id ELSE (k.details ->> 'transfer_id')::uuid END,
           CASE k.outcome WHEN 'completed' THEN k.outcome ELSE k.details ->> 'status' END,
           coalesce(k.ledger_id, (k.details ->> 'ledger_id')::bigint),
           coalesce(k.payer_balance, (k.details ->> 'initiator_balance')::bigint),
           coalesce(k.target_balance, (k.details ->> 'target_balance')::bigint),
           CASE k.outcome WHEN 'completed' THEN r.at ELSE (k.details ->> 'created_at')::timestamptz END,
           (k.details ->> 'available')::bigint,
           (k.details ->> 'throttled_until')::timestamptz,
           (k.details ->> 'used_today')::bigint,
           (k.details ->> 'daily_limit')::bigint,
           r.woken
      FROM unnest(r.outcomes, p_transfer_ids, r.ledger_ids, r.payer_balances, r.target_balances, r.details) WITH ORDINALITY
           AS k(outcome, id, ledger_id, payer_balance, target_balance, details, n)
     ORDER BY k.n;
END $$;

-- What people call: the functions of the pool by their names, operators' actions, and the audit.

-- ── The pool, one transfer at a time ──────────────────────────────────────────────────────────────────────────────

-- What an operator has to say for a record that is kept.
CREATE FUNCTION economy._need_record(p_reason text, p_actor text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  IF (length(p_reason) BETWEEN 1 AND 500 AND length(p_actor) BETWEEN 1 AND 200) IS NOT TRUE THEN
    RAISE EXCEPTION 'operators say why (1 to 500 characters) and who they are (1 to 200)'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
END $$;

-- Gives back the transfer's id; of the one that was made before, when the key has been used for the same. Raises
-- unique_violation when it was used for something else, check_violation when the terms make no sense.
CREATE FUNCTION economy.fn_create_pending_transfer(
  p_guild_id bigint, p_initiator_id bigint, p_target_id bigint, p_amount bigint, p_metadata jsonb DEFAULT '{}',
  p_expires_hours integer DEFAULT NULL, p_reason text DEFAULT NULL, p_idempotency_key text DEFAULT NULL)
RETURNS uuid
LANGUAGE plpgsql AS $$
DECLARE
  r record;
BEGIN
  IF p_expires_hours NOT BETWEEN 1 AND 8760 THEN
    RAISE EXCEPTION 'a transfer expires after 1 to 8760 hours, not after %', p_expires_hours
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  SELECT * INTO r
    FROM economy.fn_create_pending_transfers(
           ARRAY[NULL::uuid], ARRAY[p_guild_id], ARRAY[p_initiator_id], ARRAY[p_target_id], ARRAY[p_amount],
           ARRAY[p_reason], ARRAY[p_metadata::text], ARRAY[p_expires_hours], ARRAY[p_idempotency_key]);
  CASE r.outcome
    WHEN 'conflict' THEN
      RAISE EXCEPTION 'idempotency key % of member % was used for another transfer', p_idempotency_key, p_initiator_id
        USING ERRCODE = 'unique_violation';
    WHEN 'invalid' THEN
      RAISE EXCEPTION 'not a transfer: % from member % to member % of guild %', p_amount, p_initiator_id, p_target_id,
                      p_guild_id
        USING ERRCODE = 'check_violation';
    ELSE RETURN r.transfer_id;
  END CASE;
END $$;

CREATE VIEW economy.transfer_status AS
SELECT p.transfer_id, p.guild_id, p.initiator_id, p.target_id, p.amount, p.status::text, p.checks, p.retry_count,
       p.expires_at, p.metadata, p.created_at, p.updated_at, p.reason, p.idempotency_key, p.seq,
       w.next_attempt_at, w.due_at,
       (SELECT d.reason
          FROM economy.transfer_denials AS d
         WHERE d.guild_id = p.guild_id AND d.seq = p.seq) AS denied_reason,
       (SELECT t.id FROM economy.transactions AS t WHERE t.transfer_id = p.transfer_id) AS ledger_id
  FROM economy.pending_transfers AS p
  LEFT JOIN LATERAL (SELECT w.next_attempt_at, w.due_at
                       FROM economy.transfer_work AS w
                      WHERE w.transfer_id = p.transfer_id
                      LIMIT 1) AS w ON true;

-- No row: no such transfer.
CREATE FUNCTION economy.fn_get_pending_transfer(p_transfer_id uuid) RETURNS SETOF economy.transfer_status
LANGUAGE sql STABLE AS $$
  SELECT * FROM economy.transfer_status WHERE transfer_id = p_transfer_id
$$;

-- Newest first. Those that wait and those that were rejected are few among many and are found by what is kept beside
-- them; completed are most, and found by reading on until there are enough. p_before: only those with a smaller seq, to
-- page without an offset that costs more with each page.
CREATE FUNCTION economy.fn_list_pending_transfers(
  p_guild_id bigint, p_status text DEFAULT NULL, p_limit integer DEFAULT 100, p_offset integer DEFAULT 0,
  p_before bigint DEFAULT NULL)
RETURNS SETOF economy.transfer_status
LANGUAGE plpgsql STABLE AS $$
DECLARE
  v_seqs bigint[];
  v_before bigint := coalesce(p_before, 9223372036854775807);
BEGIN
  IF p_status NOT IN ('pending', 'checking', 'approved', 'completed', 'rejected') THEN
    RAISE EXCEPTION 'no transfer is ever %', p_status USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF p_status = 'rejected' THEN
    SELECT array_agg(l.seq) INTO v_seqs
      FROM (SELECT d.seq FROM economy.transfer_denials AS d
             WHERE d.guild_id = p_guild_id AND d.seq < v_before
             ORDER BY d.seq DESC LIMIT p_limit OFFSET p_offset) AS l;
  ELSIF p_status = 'checking' THEN
    SELECT array_agg(l.seq) INTO v_seqs
      FROM (SELECT w.seq FROM economy.transfer_work AS w
             WHERE w.guild_id = p_guild_id AND w.seq < v_before AND NOT w.approved
             ORDER BY w.seq DESC LIMIT p_limit OFFSET p_offset) AS l;
  ELSIF p_status = 'approved' THEN
    SELECT array_agg(l.seq) INTO v_seqs
      FROM (SELECT w.seq FROM economy.transfer_work AS w
             WHERE w.lane = economy._lane(p_guild_id) AND w.guild_id = p_guild_id AND w.seq < v_before AND w.approved
             ORDER BY w.seq DESC LIMIT p_limit OFFSET p_offset) AS l;
  ELSIF p_status = 'pending' THEN
    RETURN;  -- nobody sees one: checking begins with the insert
  ELSE
    SELECT array_agg(l.seq) INTO v_seqs
      FROM (SELECT p.seq FROM economy.pending_transfers AS p
             WHERE p.guild_id = p_guild_id AND p.seq < v_before AND (p_status IS NULL OR p.status = p_status)
             ORDER BY p.seq DESC LIMIT p_limit OFFSET p_offset) AS l;
  END IF;
  RETURN QUERY
    SELECT s.*
      FROM economy.transfer_status AS s
     WHERE s.guild_id = p_guild_id AND s.seq = ANY (v_seqs)
     ORDER BY s.seq DESC;
END $$;

-- The three checks as they stand at this moment, each told as transfer_check_result: 1 passed, 0 failed, NULL when the
-- transfer does not wait for checks. They change nothing.
CREATE FUNCTION economy.fn_check_transfer_balance(p_transfer_id uuid) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
  r record;
BEGIN
  SELECT p.*, s.available, economy._rule_balance(s.available, p.amount) AS passed INTO r
    FROM economy.pending_transfers AS p
   CROSS JOIN LATERAL economy._standing(p.guild_id, p.initiator_id, clock_timestamp()) AS s
   WHERE p.transfer_id = p_transfer_id AND p.status IN ('pending', 'checking');
  IF NOT FOUND THEN RETURN NULL; END IF;
  PERFORM pg_notify('economy_events', economy._balance_event(r.passed, r.transfer_id, r.guild_id, r.initiator_id,
                                                             r.available, r.amount));
  RETURN r.passed::integer;
END $$;

CREATE FUNCTION economy.fn_check_transfer_cooldown(p_transfer_id uuid) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
  r record;
BEGIN
  SELECT p.*, s.throttled_until, economy._rule_cooldown(s.kind, s.throttled_until, clock_timestamp()) AS passed INTO r
    FROM economy.pending_transfers AS p
   CROSS JOIN LATERAL economy._standing(p.guild_id, p.initiator_id, clock_timestamp()) AS s
   WHERE p.transfer_id = p_transfer_id AND p.status IN ('pending', 'checking');
  IF NOT FOUND THEN RETURN NULL; END IF;
  PERFORM pg_notify('economy_events', economy._cooldown_event(r.passed, r.transfer_id, r.guild_id, r.initiator_id,
                                                              r.throttled_until));
  RETURN r.passed::integer;
END $$;

CREATE FUNCTION economy.fn_check_transfer_daily_limit(p_transfer_id uuid) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
  r record;
BEGIN
  SELECT p.*, s.used, s.daily_limit, economy._rule_daily_limit(s.kind, s.used, s.daily_limit, p.amount) AS passed INTO r
    FROM economy.pending_transfers AS p
   CROSS JOIN LATERAL economy._standing(p.guild_id, p.initiator_id, clock_timestamp()) AS s
   WHERE p.transfer_id = p_transfer_id AND p.status IN ('pending', 'checking');
  IF NOT FOUND THEN RETURN NULL; END IF;
  PERFORM pg_notify('economy_events', economy._daily_limit_event(r.passed, r.transfer_id, r.guild_id, r.initiator_id,
                                                                 r.used, r.amount, r.daily_limit));
  RETURN r.passed::integer;
END $$;

-- Tries a waiting transfer now, which counts as a retry only if one is due. Whether it is approved.
CREATE FUNCTION economy._check_and_approve_transfer(p_transfer_id uuid) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
  v_items economy._item[];
  v_parties economy._parties;
  v_approved integer;
BEGIN
  PERFORM FROM economy.transfer_work AS w WHERE w.transfer_id = p_transfer_id AND NOT w.approved FOR UPDATE;
  IF NOT FOUND THEN RETURN false; END IF;
  v_items := economy._items(ARRAY[p_transfer_id], 'check');
  v_parties := economy._lock_parties(v_items);
  SELECT c.approved INTO v_approved
    FROM economy._show_checked(v_items, (economy._settle(v_items, v_parties, false, NULL)).verdicts, false,
                               v_parties.at) AS c;
  IF v_approved = 1 THEN PERFORM pg_notify('economy_work', ''); END IF;
  RETURN v_approved = 1;
END $$;

-- Takes a transfer a step further, with all that the step means: `approved` if the checks pass now, `completed` with
-- the money moved, `rejected` as cancelled. Whether it did; what the machine does not allow is false.
CREATE FUNCTION economy.fn_update_pending_transfer_status(p_transfer_id uuid, p_new_status text) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
  v_items economy._item[];
  v_parties economy._parties;
BEGIN
  CASE p_new_status
    WHEN 'approved' THEN RETURN economy._check_and_approve_transfer(p_transfer_id);
    WHEN 'rejected' THEN RETURN (SELECT c.cancelled FROM economy.fn_cancel_transfer(p_transfer_id) AS c);
    WHEN 'completed' THEN
      PERFORM FROM economy.transfer_work AS w WHERE w.transfer_id = p_transfer_id AND w.approved FOR UPDATE;
      IF NOT FOUND THEN RETURN false; END IF;
      v_items := economy._items(ARRAY[p_transfer_id], 'complete');
      v_parties := economy._lock_parties(v_items);
      PERFORM economy._settle(v_items, v_parties, NULL, NULL);
      PERFORM economy._show_completed(ARRAY[p_transfer_id], v_parties.at);
      PERFORM pg_notify('economy_work', '');  -- those who waited for the money may be due
      RETURN true;
    ELSE RETURN false;  -- `pending` and `checking` are where a transfer is put, not where it can be sent
  END CASE;
END $$;

-- How the pool does, for metrics and the doctor. The oldest are the first that were created.
CREATE FUNCTION economy.fn_pool_state(
  OUT waiting bigint, OUT approved bigint, OUT retries_due bigint, OUT due bigint, OUT oldest_waiting_at timestamptz,
  OUT oldest_due_at timestamptz, OUT oldest_approved_id uuid, OUT oldest_approved_at timestamptz)
LANGUAGE plpgsql STABLE AS $$
DECLARE
  v_first_waiting bigint;
  v_first_approved bigint;
BEGIN
  SELECT count(*) FILTER (WHERE NOT w.approved), count(*) FILTER (WHERE w.approved),
         count(*) FILTER (WHERE NOT w.approved AND w.due_at <= clock_timestamp()),
         count(*) FILTER (WHERE w.due_at <= clock_timestamp()),
         min(w.due_at) FILTER (WHERE w.due_at <= clock_timestamp()),
         min(w.seq) FILTER (WHERE NOT w.approved), min(w.seq) FILTER (WHERE w.approved)
    INTO waiting, approved, retries_due, due, oldest_due_at, v_first_waiting, v_first_approved
    FROM economy.transfer_work AS w;
  SELECT p.created_at INTO oldest_waiting_at
    FROM economy.transfer_work AS w
    JOIN economy.pending_transfers AS p USING (transfer_id)
   WHERE w.seq = v_first_waiting;
  SELECT p.transfer_id, p.updated_at INTO oldest_approved_id, oldest_approved_at
    FROM economy.transfer_work AS w
    JOIN economy.pending_transfers AS p USING (transfer_id)
   WHERE w.seq = v_first_approved;
END $$;

-- ── Operators ─────────────────────────────────────────────────────────────────────────────────────────────────────

-- Minting and burning: the same movement in opposite directions. Who asks with a key that was used gets the answer of
-- that time.
--   outcome  completed · existing · conflict · invalid · supply_overflow · insufficient_balance (available says more)
CREATE FUNCTION economy._issue(p_kind text, p_guild_id bigint, p_member_id bigint, p_amount bigint, p_reason text,
                               p_actor text, p_idempotency_key text,
                               OUT outcome text, OUT transfer_id uuid, OUT ledger_id bigint, OUT balance bigint,
                               OUT available bigint)
LANGUAGE plpgsql AS $$
DECLARE
  v_debit bigint := CASE p_kind WHEN 'mint' THEN 0 ELSE p_member_id END;
  v_credit bigint := CASE p_kind WHEN 'mint' THEN p_member_id ELSE 0 END;
  v_items economy._item[] := ARRAY[ROW(p_kind, 1, gen_random_uuid(), p_guild_id, v_debit, v_credit, p_amount, p_reason,
                                       NULL, p_idempotency_key, NULL, NULL, NULL, NULL)::economy._item];
  v_parties economy._parties;
  v_system bigint;
  r economy._settlement;
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
  v_parties := economy._lock_parties(v_items);
  SELECT * INTO t
    FROM economy.transactions AS x
   WHERE x.guild_id = p_guild_id AND x.debit_id = v_debit AND x.idempotency_key = p_idempotency_key
     AND x.kind = p_kind;
  IF FOUND THEN
    outcome := CASE WHEN (t.credit_id, t.amount, t.reason) IS NOT DISTINCT FROM (v_credit, p_amount, p_reason)
                    THEN 'existing' ELSE 'conflict' END;
  ELSE
    SELECT a.balance INTO v_system FROM economy.accounts AS a WHERE a.guild_id = p_guild_id AND a.member_id = 0;
    SELECT s.available INTO available FROM economy._standing(p_guild_id, p_member_id, clock_timestamp()) AS s;
    IF p_kind = 'mint' AND p_amount > 9223372036854775807 + v_system THEN
      outcome := 'supply_overflow';
      RETURN;
    ELSIF p_kind = 'burn' AND NOT economy._rule_balance(available, p_amount) THEN
      outcome := 'insufficient_balance';
      RETURN;
    END IF;
    r := economy._settle(v_items, v_parties, NULL, p_actor);
    SELECT * INTO t FROM economy.transactions AS x WHERE x.transfer_id = v_items[1].transfer_id;
    INSERT INTO economy.operations (guild_id, member_id, action, reason, actor, detail)
    VALUES (p_guild_id, p_member_id, p_kind, p_reason, p_actor,
            jsonb_build_object('amount', p_amount::text, 'ledgerId', t.id::text));
    IF r.woken > 0 THEN PERFORM pg_notify('economy_work', ''); END IF;
    outcome := 'completed';
  END IF;
  transfer_id := t.transfer_id;
  ledger_id := t.id;
  balance := CASE p_kind WHEN 'mint' THEN t.credit_after ELSE t.debit_after END;
  SELECT s.available INTO available FROM economy._standing(p_guild_id, p_member_id, clock_timestamp()) AS s;
END $$;

CREATE FUNCTION economy.fn_mint(
  p_guild_id bigint, p_member_id bigint, p_amount bigint, p_reason text, p_actor text,
  p_idempotency_key text DEFAULT NULL,
  OUT outcome text, OUT transfer_id uuid, OUT ledger_id bigint, OUT balance bigint, OUT available bigint)
LANGUAGE sql VOLATILE AS $$
  SELECT * FROM economy._issue('mint', p_guild_id, p_member_id, p_amount, p_reason, p_actor, p_idempotency_key)
$$;

CREATE FUNCTION economy.fn_burn(
  p_guild_id bigint, p_member_id bigint, p_amount bigint, p_reason text, p_actor text,
  p_idempotency_key text DEFAULT NULL,
  OUT outcome text, OUT transfer_id uuid, OUT ledger_id bigint, OUT balance bigint, OUT available bigint)
LANGUAGE sql VOLATILE AS $$
  SELECT * FROM economy._issue('burn', p_guild_id, p_member_id, p_amount, p_reason, p_actor, p_idempotency_key)
$$;

-- Makes due what failed on cooldown or limit, now that they may come out otherwise: the first 16 of each payer in
-- order, and 10,000 at most; the rest come by their own time. A row that is locked is being checked, or was inserted a
-- moment ago, and comes back by itself.
CREATE FUNCTION economy._wake_throttled(p_guild_id bigint, p_member_id bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  v_at timestamptz := clock_timestamp();
  v_first uuid[];
  v_free uuid[];
BEGIN
  SELECT array_agg(w.transfer_id) INTO v_first
    FROM (SELECT w.transfer_id
            FROM (SELECT w.transfer_id, w.due_at, row_number() OVER (PARTITION BY w.initiator_id ORDER BY w.seq) AS n
                    FROM economy.transfer_work AS w
                   WHERE w.guild_id = p_guild_id
                     AND (p_member_id IS NULL OR w.initiator_id = p_member_id)
                     AND NOT w.approved
                     AND w.failed_on & 6 <> 0) AS w
           WHERE w.n <= 16
             AND w.due_at > v_at
           LIMIT 10000) AS w;
  IF v_first IS NULL THEN RETURN; END IF;
  SELECT array_agg(w.transfer_id) INTO v_free
    FROM (SELECT transfer_id FROM economy.transfer_work WHERE transfer_id = ANY (v_first) FOR UPDATE SKIP LOCKED) AS w;
  UPDATE economy.transfer_work SET due_at = v_at WHERE transfer_id = ANY (v_free);
  PERFORM pg_notify('economy_work', '');
END $$;

-- Changes the settings of a guild that `p_changes` names by column, e.g. {"daily_limit": null, "cooldown_seconds": 0};
-- a key that is no setting raises. Cooldowns that are running get their new length. Answers the settings.
CREATE FUNCTION economy.fn_set_settings(p_guild_id bigint, p_changes jsonb, p_reason text, p_actor text)
RETURNS economy.guild_settings
LANGUAGE plpgsql AS $$
DECLARE
  s economy.guild_settings;
  v_before economy.guild_settings;
  v_unknown text;
BEGIN
  IF (p_guild_id > 0 AND jsonb_typeof(p_changes) = 'object') IS NOT TRUE THEN
    RAISE EXCEPTION 'expected a guild and an object of its settings' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  PERFORM economy._need_record(p_reason, p_actor);
  SELECT key INTO v_unknown
    FROM jsonb_object_keys(p_changes) AS k(key)
   WHERE key NOT IN ('daily_limit', 'cooldown_seconds', 'default_expiry_hours', 'max_retries');
  IF FOUND THEN
    RAISE EXCEPTION 'guilds have no setting %', v_unknown USING ERRCODE = 'invalid_parameter_value';
  END IF;
  INSERT INTO economy.guild_settings (guild_id, daily_limit, cooldown_seconds, default_expiry_hours, max_retries)
  SELECT p_guild_id, d.daily_limit, d.cooldown_seconds, d.default_expiry_hours, d.max_retries
    FROM economy._settings(p_guild_id) AS d
      ON CONFLICT DO NOTHING;
  SELECT * INTO s FROM economy.guild_settings WHERE guild_id = p_guild_id FOR NO KEY UPDATE;
  v_before := s;
  s := jsonb_populate_record(s, p_changes);
  UPDATE economy.guild_settings
     SET daily_limit = s.daily_limit,
         cooldown_seconds = s.cooldown_seconds,
         default_expiry_hours = s.default_expiry_hours,
         max_retries = s.max_retries,
         updated_at = clock_timestamp()
   WHERE guild_id = p_guild_id
  RETURNING * INTO s;
  INSERT INTO economy.operations (guild_id, action, reason, actor, detail)
  VALUES (p_guild_id, 'set_settings', p_reason, p_actor, p_changes);
  IF (s.daily_limit, s.cooldown_seconds) IS DISTINCT FROM (v_before.daily_limit, v_before.cooldown_seconds) THEN
    -- A node's check that is under way goes by the old settings: it ends first, and the next begins after us.
    PERFORM pg_advisory_xact_lock(economy._lane_class(), economy._lane(p_guild_id));
    PERFORM economy._wake_throttled(p_guild_id, NULL);
  END IF;
  RETURN s;
END $$;

-- member or government. Opens the account if there is none.
CREATE FUNCTION economy.fn_set_account_kind(p_guild_id bigint, p_member_id bigint, p_kind text, p_reason text,
                                            p_actor text) RETURNS economy.accounts
LANGUAGE plpgsql AS $$
DECLARE
  a economy.accounts;
BEGIN
  IF (p_guild_id > 0 AND p_member_id > 0 AND p_kind IN ('member', 'government')) IS NOT TRUE THEN
    RAISE EXCEPTION 'a member of a guild is made member or government, not %', coalesce(p_kind, 'NULL')
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  PERFORM economy._need_record(p_reason, p_actor);
  INSERT INTO economy.accounts (guild_id, member_id) VALUES (p_guild_id, p_member_id) ON CONFLICT DO NOTHING;
  UPDATE economy.accounts
     SET kind = p_kind
   WHERE guild_id = p_guild_id AND member_id = p_member_id
  RETURNING * INTO a;
  INSERT INTO economy.operations (guild_id, member_id, action, reason, actor, detail)
  VALUES (p_guild_id, p_member_id, 'set_account_kind', p_reason, p_actor, jsonb_build_object('kind', p_kind));
  PERFORM economy._wake_throttled(p_guild_id, p_member_id);
  RETURN a;
END $$;

-- What a member may do at this moment. No row: no account.
CREATE FUNCTION economy.fn_get_account(
  p_guild_id bigint, p_member_id bigint,
  OUT kind text, OUT balance bigint, OUT reserved bigint, OUT used_today bigint, OUT daily_limit bigint,
  OUT throttled_until timestamptz)
RETURNS SETOF record
LANGUAGE sql STABLE AS $$
  SELECT a.kind, a.balance, a.reserved, s.used,
         CASE WHEN a.kind = 'member' THEN s.daily_limit END,
         CASE WHEN NOT economy._rule_cooldown(a.kind, s.throttled_until, clock_timestamp()) THEN s.throttled_until END
    FROM economy.accounts AS a
   CROSS JOIN LATERAL economy._standing(a.guild_id, a.member_id, clock_timestamp()) AS s
   WHERE a.guild_id = p_guild_id AND a.member_id = p_member_id
$$;

-- ── The audit ─────────────────────────────────────────────────────────────────────────────────────────────────────

-- What must be true whatever happened, on live data: one statement sees one moment. `wrong` counts what is not as it
-- should be, `example` names one of them.
CREATE FUNCTION economy.fn_audit() RETURNS TABLE (check_name text, wrong bigint, example text)
LANGUAGE sql STABLE AS $$
  WITH entry AS (
    SELECT e.guild_id, e.member_id, sum(e.amount) AS total FROM economy.entries AS e GROUP BY e.guild_id, e.member_id
  ),
  approved AS (
    SELECT p.guild_id, p.initiator_id, sum(p.amount) AS total
      FROM economy.pending_transfers AS p
      JOIN economy.transfer_work AS w USING (transfer_id)
     WHERE p.status = 'approved'
     GROUP BY p.guild_id, p.initiator_id
  )
  SELECT 'supply_balances', count(*), min(format('guild %s: %s', g.guild_id, g.total))
    FROM (SELECT guild_id, sum(balance) AS total FROM economy.accounts GROUP BY guild_id) AS g
   WHERE g.total <> 0
   UNION ALL
  SELECT 'balances_are_their_entries', count(*),
         min(format('guild %s, member %s: balance %s, entries %s', guild_id, member_id, a.balance, e.total))
    FROM economy.accounts AS a
    FULL JOIN entry AS e USING (guild_id, member_id)
   WHERE coalesce(a.balance, 0) <> coalesce(e.total, 0)
   UNION ALL
  SELECT 'reserved_is_approved', count(*),
         min(format('guild %s, member %s: reserved %s, approved %s', a.guild_id, a.member_id, a.reserved, r.total))
    FROM economy.accounts AS a
    FULL JOIN approved AS r ON r.guild_id = a.guild_id AND r.initiator_id = a.member_id
   WHERE coalesce(a.reserved, 0) <> coalesce(r.total, 0)
   UNION ALL
  SELECT 'completed_has_its_ledger_row', count(*), min(p.transfer_id::text)
    FROM economy.pending_transfers AS p
    LEFT JOIN economy.transactions AS t USING (transfer_id)
   WHERE p.status = 'completed'
     AND (t.kind, t.guild_id, t.debit_id, t.credit_id, t.amount)
         IS DISTINCT FROM ('transfer', p.guild_id, p.initiator_id, p.target_id, p.amount)
   UNION ALL
  SELECT 'nothing_else_has_a_ledger_row', count(*), min(p.transfer_id::text)
    FROM economy.pending_transfers AS p
    JOIN economy.transactions AS t USING (transfer_id)
   WHERE p.status <> 'completed'
   UNION ALL
  SELECT 'open_transfers_have_work', count(*), min(transfer_id::text)
    FROM economy.pending_transfers AS p
    FULL JOIN economy.transfer_work AS w USING (transfer_id)
   WHERE w.approved IS DISTINCT FROM CASE p.status WHEN 'approved' THEN true WHEN 'checking' THEN false END
   UNION ALL
  SELECT 'denials_are_of_rejected', count(*), min(coalesce(p.transfer_id, d.transfer_id)::text)
    FROM (SELECT guild_id, seq, transfer_id, status
            FROM economy.pending_transfers WHERE status = 'rejected') AS p
    FULL JOIN economy.transfer_denials AS d ON d.guild_id = p.guild_id AND d.seq = p.seq
   WHERE p.transfer_id IS DISTINCT FROM d.transfer_id
$$;

-- Who may do what in the economy, and an audit that proves more of what they did.
--
-- What people call (fn_*) and what tables call (triggers) runs with the rights of the owner, and finds names by a
-- search_path of its own, so that a caller needs no right on a table and cannot slip in a function or a table. The parts
-- (_*) stay as they are: a SET clause would keep them from being inlined, and only the owner may call one.

-- ── Who did it ────────────────────────────────────────────────────────────────────────────────────────────────────

-- session_role: the role that logged in, beside the actor that it gave. NULL: before this column was there.
ALTER TABLE economy.operations ADD COLUMN session_role text NULL;
ALTER TABLE economy.operations ALTER COLUMN session_role SET DEFAULT session_user;

-- What a rejection leaves behind, whatever the reason. Requires: the transfers are rejected already.
CREATE OR REPLACE FUNCTION economy._tell_denied(p_ids uuid[], p_reason text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO economy.transfer_denials (guild_id, seq, transfer_id, reason, denied_at)
  SELECT guild_id, seq, transfer_id, p_reason, updated_at
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

-- ── The audit ─────────────────────────────────────────────────────────────────────────────────────────────────────

-- The day until which the ledger does not always say of whose allowance a transfer took: that of this migration.
DO $$
DECLARE
  v_today date := (clock_timestamp() AT TIME ZONE 'UTC')::date;
BEGIN
  EXECUTE format('CREATE FUNCTION economy._counted_since() RETURNS date LANGUAGE sql IMMUTABLE AS $f$ SELECT date %L $f$',
                 to_char(CASE WHEN EXISTS (SELECT FROM economy.transactions) OR EXISTS (SELECT FROM economy.transfer_work)
                              THEN v_today ELSE v_today - 1 END, 'YYYY-MM-DD'));
END $$;

-- Reads all of it. One statement, so all of one moment.
CREATE OR REPLACE FUNCTION economy.fn_audit() RETURNS TABLE (check_name text, wrong bigint, example text)
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
  ),
  counted AS (  -- what took of an allowance and has not failed, of the day that its account shows, or of a later one
    SELECT a.guild_id, a.member_id, sum(c.amount) FILTER (WHERE c.counted_on = a.day) AS total,
           max(c.counted_on) AS last_day
      FROM (SELECT t.guild_id, t.debit_id AS member_id, t.counted_on, t.amount FROM economy.transactions AS t
             UNION ALL
            SELECT w.guild_id, w.initiator_id, w.counted_on, w.amount FROM economy.transfer_work AS w) AS c
      JOIN economy.accounts AS a USING (guild_id, member_id)
     WHERE c.counted_on > economy._counted_since()
     GROUP BY a.guild_id, a.member_id
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
  SELECT 'running_balances_follow', count(*),
         min(format('ledger row %s, member %s of guild %s: %s after %s and %s', e.transaction_id, e.member_id, e.guild_id,
                    e.balance_after, e.balance_before, e.amount))
    FROM (SELECT e.*, lag(e.balance_after, 1, 0::bigint)
                        OVER (PARTITION BY e.guild_id, e.member_id ORDER BY e.transaction_id) AS balance_before
            FROM economy.entries AS e) AS e
   WHERE e.balance_after <> e.balance_before::numeric + e.amount
   UNION ALL
  SELECT 'reserved_is_approved', count(*),
         min(format('guild %s, member %s: reserved %s, approved %s', a.guild_id, a.member_id, a.reserved, r.total))
    FROM economy.accounts AS a
    FULL JOIN approved AS r ON r.guild_id = a.guild_id AND r.initiator_id = a.member_id
   WHERE coalesce(a.reserved, 0) <> coalesce(r.total, 0)
   UNION ALL
  SELECT 'days_use_is_what_was_approved', count(*),
         min(format('guild %s, member %s: %s used on %s, approved %s, last on %s', a.guild_id, a.member_id, a.day_used, a.day,
                    coalesce(c.total, 0), c.last_day))
    FROM economy.accounts AS a
    LEFT JOIN counted AS c USING (guild_id, member_id)
   WHERE a.day > economy._counted_since()
     AND a.day_used <> coalesce(c.total, 0)
     AND coalesce(c.total, 0) < 9223372036854775807  -- a day that reached this stayed there
     AND a.day_used < 9223372036854775807
      OR c.last_day > coalesce(a.day, '-infinity')
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
     -- Failed because its id was another transfer's, from before ids were claimed.
     AND NOT (p.status = 'rejected'
              AND (t.guild_id, t.debit_id) IS DISTINCT FROM (p.guild_id, p.initiator_id)
              AND (SELECT d.reason FROM economy.transfer_denials AS d WHERE d.guild_id = p.guild_id AND d.seq = p.seq)
                  = 'transfer_failed')
   UNION ALL
  SELECT 'open_transfers_have_work', count(*), min(transfer_id::text)
    FROM economy.pending_transfers AS p
    FULL JOIN economy.transfer_work AS w USING (transfer_id)
   WHERE w.approved IS DISTINCT FROM CASE p.status WHEN 'approved' THEN true WHEN 'checking' THEN false END
   UNION ALL
  SELECT 'credits_look_for_waiting_transfers', count(*), min(w.transfer_id::text)
    FROM economy.transfer_work AS w
    LEFT JOIN economy.accounts AS a ON a.guild_id = w.guild_id AND a.member_id = w.initiator_id
   WHERE NOT w.approved
     AND w.failed_on & 1 = 1
     AND a.awaits_money IS NOT TRUE
   UNION ALL
  SELECT 'finished_transfers_rest', count(*), min(p.transfer_id::text)
    FROM economy.pending_transfers AS p
    LEFT JOIN economy.transactions AS t USING (transfer_id)
    LEFT JOIN economy.transfer_denials AS d ON d.guild_id = p.guild_id AND d.seq = p.seq
   WHERE p.status = 'completed' AND p.updated_at <> t.created_at
      OR p.status = 'rejected' AND p.updated_at > d.denied_at
   UNION ALL
  SELECT 'denials_are_of_rejected', count(*), min(coalesce(p.transfer_id, d.transfer_id)::text)
    FROM (SELECT guild_id, seq, transfer_id, status
            FROM economy.pending_transfers WHERE status = 'rejected') AS p
    FULL JOIN economy.transfer_denials AS d ON d.guild_id = p.guild_id AND d.seq = p.seq
   WHERE p.transfer_id IS DISTINCT FROM d.transfer_id
   UNION ALL
  SELECT 'failed_by_hand_is_rejected', count(*), min(p.transfer_id::text)
    FROM economy.operations AS o
    JOIN economy.pending_transfers AS p ON p.transfer_id = (o.detail ->> 'transferId')::uuid
    LEFT JOIN economy.transfer_denials AS d ON d.guild_id = p.guild_id AND d.seq = p.seq
   WHERE o.action = 'fail'
     AND (p.status, d.reason) IS DISTINCT FROM ('rejected', 'transfer_failed')
   UNION ALL
  SELECT 'supply_has_its_operations', count(*),
         min(coalesce('ledger row ' || t.id, 'operation ' || o.operation_id))
    FROM (SELECT * FROM economy.transactions WHERE kind <> 'transfer') AS t
    FULL JOIN (SELECT o.*, count(*) OVER (PARTITION BY o.detail ->> 'ledgerId') AS copies
                 FROM economy.operations AS o WHERE o.action IN ('mint', 'burn')) AS o
           ON (o.detail ->> 'ledgerId')::bigint = t.id
   WHERE o.copies > 1
      OR (t.kind, t.guild_id, t.debit_id + t.credit_id, t.amount, t.reason, t.actor)
         IS DISTINCT FROM
         (o.action, o.guild_id, o.member_id, (o.detail ->> 'amount')::bigint, o.reason, o.actor)
$$;

-- It looks at its arguments only.
ALTER FUNCTION economy._need_record(text, text) IMMUTABLE;

-- ── Rights ────────────────────────────────────────────────────────────────────────────────────────────────────────

-- With a transfer goes what is kept beside it. Runs as the owner now, so it serves no other table.
CREATE OR REPLACE FUNCTION economy._forget_denials() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_RELID <> 'economy.pending_transfers'::regclass THEN
    RAISE EXCEPTION 'only transfers have denials' USING ERRCODE = 'insufficient_privilege';
  END IF;
  DELETE FROM economy.transfer_denials AS d
   USING gone
   WHERE d.guild_id = gone.guild_id AND d.seq = gone.seq;
  RETURN NULL;
END $$;

-- Who may call what. A node may do all of it.
CREATE FUNCTION economy._calls_of(p_role text) RETURNS text[]
LANGUAGE sql IMMUTABLE AS $$
  SELECT ARRAY['fn_create_pending_transfer', 'fn_create_pending_transfers', 'fn_transfer_now', 'fn_get_pending_transfer',
               'fn_list_pending_transfers', 'fn_get_account', 'fn_get_settings', 'fn_check_transfer_balance',
               'fn_check_transfer_cooldown', 'fn_check_transfer_daily_limit', 'fn_cancel_transfer']
         || CASE WHEN p_role <> 'fencepost_economy_user'
                 THEN ARRAY['fn_mint', 'fn_burn', 'fn_set_settings', 'fn_set_account_kind', 'fn_fail_transfer',
                            'fn_audit', 'fn_pool_state'] END
         || CASE WHEN p_role = 'fencepost_economy_node'
                 THEN ARRAY['fn_transfer_set', 'fn_open_accounts', 'fn_process_due', 'fn_expire_transfers',
                            'fn_defer_transfer', 'fn_execution_refused', 'fn_update_pending_transfer_status',
                            'fn_lane_holders'] END
$$;

-- Grants a role the calls of one of the three.
CREATE FUNCTION economy._grant_calls(p_role text, p_as text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  f regprocedure;
BEGIN
  FOR f IN
    SELECT p.oid::regprocedure
      FROM pg_proc AS p
     WHERE p.pronamespace = 'economy'::regnamespace AND p.proname = ANY (economy._calls_of(p_as))
  LOOP
    EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I', f, p_role);
  END LOOP;
END $$;

-- Makes a role that may not log in. Roles belong to the cluster: one that exists, or that another database's migration
-- makes at the same moment, is as good. Whether it exists now.
CREATE FUNCTION economy._need_role(p_role text) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = p_role) THEN
    EXECUTE format('CREATE ROLE %I NOLOGIN', p_role);
  END IF;
  RETURN true;
EXCEPTION
  WHEN duplicate_object OR unique_violation THEN RETURN true;
  WHEN insufficient_privilege THEN
    RAISE NOTICE 'role % is not there, and % may not create roles', p_role, current_user
      USING HINT = 'CREATE ROLE ' || p_role || ' NOLOGIN, then SELECT economy._grant_rights()';
    RETURN false;
END $$;

-- Puts the rights in order: the last statement of each migration that makes or replaces a function, since replacing one
-- takes its attributes away. Also for a database administrator, who has made the roles later. Functions of other owners
-- are left alone.
CREATE FUNCTION economy._grant_rights() RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  f record;
  r text;
BEGIN
  FOR f IN
    SELECT p.oid::regprocedure AS id,
           p.proname = ANY (economy._calls_of('fencepost_economy_node')
                            || ARRAY['_admit', '_begin_checking', '_forget_denials', '_refuse', '_verify_statuses'])
           AS is_entry
      FROM pg_proc AS p
     WHERE p.pronamespace = 'economy'::regnamespace
       AND p.prokind = 'f'
       AND pg_has_role(p.proowner, 'USAGE')
  LOOP
    EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', f.id);
    IF f.is_entry THEN
      EXECUTE format('ALTER FUNCTION %s SECURITY DEFINER SET search_path = pg_catalog, pg_temp', f.id);
    END IF;
  END LOOP;

  FOREACH r IN ARRAY ARRAY['fencepost_economy_user', 'fencepost_economy_operator', 'fencepost_economy_node'] LOOP
    CONTINUE WHEN NOT economy._need_role(r);
    EXECUTE format('GRANT USAGE ON SCHEMA economy TO %I', r);
    EXECUTE format('GRANT SELECT ON economy.pending_transfers, economy.transfer_status, economy.transfer_denials, '
                   'economy.accounts, economy.transactions, economy.entries, economy.guild_settings TO %I', r);
    IF r <> 'fencepost_economy_user' THEN EXECUTE format('GRANT SELECT ON economy.operations TO %I', r); END IF;
    IF r = 'fencepost_economy_node' THEN
      EXECUTE format('GRANT SELECT ON economy.transfer_work TO %I', r);
    ELSE
      EXECUTE format('GRANT INSERT (transfer_id, guild_id, initiator_id, target_id, amount, expires_at, metadata, reason, '
                     'idempotency_key, max_retries) ON economy.pending_transfers TO %I', r);
    END IF;
    PERFORM economy._grant_calls(r, r);
  END LOOP;
END $$;

SELECT economy._grant_rights();

-- Roles that were granted the tables, as the docs said before, called all functions. They go on calling what a node calls;
-- the parts (_*) are closed to them. (They can write balances too: fencepost doctor names them.)
DO $$
DECLARE
  r text;
BEGIN
  FOR r IN
    SELECT pg_get_userbyid(a.grantee)
      FROM pg_class AS c
     CROSS JOIN aclexplode(c.relacl) AS a
     WHERE c.oid = 'economy.accounts'::regclass
       AND a.privilege_type = 'UPDATE'
       AND a.grantee NOT IN (0, c.relowner)
  LOOP
    PERFORM economy._grant_calls(r, 'fencepost_economy_node');
  END LOOP;
END $$;

-- Functions that the owner adds later are closed, too. PostgreSQL knows this default only for all schemas of a role, so the
-- others that exist get it back. An owner whose defaults were changed by hand keeps them.
DO $$
DECLARE
  r text;
BEGIN
  IF EXISTS (SELECT FROM pg_default_acl WHERE defaclrole = current_user::regrole AND defaclobjtype = 'f') THEN RETURN; END IF;
  ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
  FOR r IN
    SELECT nspname FROM pg_namespace WHERE nspname NOT IN ('economy', 'information_schema') AND nspname !~ '^pg_'
  LOOP
    EXECUTE format('ALTER DEFAULT PRIVILEGES IN SCHEMA %I GRANT EXECUTE ON FUNCTIONS TO PUBLIC', r);
  END LOOP;
END $$;

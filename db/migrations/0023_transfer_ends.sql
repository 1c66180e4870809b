-- No transfer is ever stuck: an id is one transfer in both modes and for all payers, what cannot be carried out is
-- rejected, what was skipped because of a lock is looked at when the lock is gone, and no transaction outside a node
-- holds a lane.
--
-- Lock order: lanes (try only), transfer_reminders (skip locked), transfer_work, accounts by (guild_id, member_id), the
-- work rows of transfers that begin, the rest. What is new here never waits out of that order:
--   * Reminders are inserted without a unique key and taken with SKIP LOCKED.
--   * Failing a transfer locks its work row, then its payer, as checking one does.
--   * An id that a caller chose is claimed after the accounts, where the pool inserts its work rows too. Two sets that
--     claim the same ids in opposite orders deadlock; PostgreSQL ends one, and its repetition is a unique_violation.

-- The time by which everything is judged. Inlined wherever it is called. A test replaces it with a clock of its own.
CREATE FUNCTION economy._clock() RETURNS timestamptz
LANGUAGE sql VOLATILE AS $$ SELECT clock_timestamp() $$;

-- ── Tables ────────────────────────────────────────────────────────────────────────────────────────────────────────

-- execute_tries: executions that ended in an integrity error. counted_on: once approved, the UTC day whose allowance it
-- used; NULL where it used none (government accounts). parked: waits for the cooldown behind 16 others of its payer (0026).
ALTER TABLE economy.transfer_work
  ADD COLUMN execute_tries smallint NOT NULL DEFAULT 0,
  ADD COLUMN counted_on    date     NULL,
  ADD COLUMN parked        boolean  NOT NULL DEFAULT false;
CREATE INDEX transfer_work_cooling ON economy.transfer_work (guild_id, initiator_id, seq)
  WHERE NOT approved AND failed_on = 2;
UPDATE economy.transfer_work AS w
   SET counted_on = (p.updated_at AT TIME ZONE 'UTC')::date
  FROM economy.pending_transfers AS p
 WHERE w.approved
   AND p.transfer_id = w.transfer_id
   AND (SELECT a.kind FROM economy.accounts AS a
         WHERE a.guild_id = p.guild_id AND a.member_id = p.initiator_id) = 'member';

-- max_retries: NULL: the guild's; -1: until it expires. A guild's NULL means until it expires.
-- The new constraint allows what the old one did, except times that no list can show, so no row is looked at again.
ALTER TABLE economy.guild_settings ALTER COLUMN max_retries DROP NOT NULL;
ALTER TABLE economy.pending_transfers
  ADD COLUMN max_retries integer NULL,
  DROP CONSTRAINT pending_transfers_can_be_told,
  ADD CONSTRAINT pending_transfers_can_be_told
    CHECK (jsonb_typeof(checks) = 'object' AND retry_count BETWEEN 0 AND 1000000 AND max_retries BETWEEN -1 AND 1000
           AND expires_at >= '1970-01-01' AND expires_at < '9999-01-01'
           AND created_at >= '1970-01-01' AND created_at < '9999-01-01'
           AND updated_at >= '1970-01-01' AND updated_at < '9999-01-01') NOT VALID;

ALTER TABLE economy.transfer_denials
  DROP CONSTRAINT transfer_denials_reason_check,
  ADD CONSTRAINT transfer_denials_reason_check
    CHECK (reason IN ('transfer_checks_failed', 'transfer_checks_expired', 'transfer_cancelled', 'transfer_failed'))
    NOT VALID;
ALTER TABLE economy.operations
  DROP CONSTRAINT operations_action_check,
  ADD CONSTRAINT operations_action_check
    CHECK (action IN ('mint', 'burn', 'set_settings', 'set_account_kind', 'fail')) NOT VALID;

-- The lanes. A node that works on a lane locks its row. No other role has a right here, so no other role can hold a lane: an
-- advisory lock could be taken by any role.
CREATE TABLE economy.transfer_lanes (lane smallint PRIMARY KEY);
INSERT INTO economy.transfer_lanes (lane) SELECT generate_series(0, 63);

-- What is to be looked at again when another transaction is over. Empty nearly always.
--   transfer_id                   its work row was locked when it should have become due
--   guild_id                      its settings changed: transactions that read the old ones may still be running.
--                                 begun_before: the end of those that had begun, once a node has seen this row
--   guild_id, after_member/_seq   more transfers wait there than one transaction makes due: go on after these
CREATE TABLE economy.transfer_reminders (
  reminder_id  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  transfer_id  uuid   NULL,
  guild_id     bigint NULL,
  begun_before xid8   NULL,
  after_member bigint NULL,
  after_seq    bigint NULL,
  CHECK ((transfer_id IS NULL) <> (guild_id IS NULL) AND (after_member IS NULL) = (after_seq IS NULL))
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX transfer_reminders_transfer ON economy.transfer_reminders (transfer_id) WHERE transfer_id IS NOT NULL;
CREATE INDEX transfer_reminders_guild ON economy.transfer_reminders (guild_id, reminder_id) WHERE guild_id IS NOT NULL;

-- ── The status machine ────────────────────────────────────────────────────────────────────────────────────────────
--   pending → checking → approved → completed
--      └────────┴───────────┴────→ rejected

DROP TRIGGER pending_transfers_terms ON economy.pending_transfers;
CREATE TRIGGER pending_transfers_terms BEFORE UPDATE ON economy.pending_transfers
  FOR EACH ROW WHEN ((OLD.transfer_id, OLD.seq, OLD.guild_id, OLD.initiator_id, OLD.target_id, OLD.amount, OLD.reason,
                      OLD.idempotency_key, OLD.expires_at, OLD.max_retries, OLD.created_at, OLD.metadata)
                     IS DISTINCT FROM
                     (NEW.transfer_id, NEW.seq, NEW.guild_id, NEW.initiator_id, NEW.target_id, NEW.amount, NEW.reason,
                      NEW.idempotency_key, NEW.expires_at, NEW.max_retries, NEW.created_at, NEW.metadata))
  EXECUTE FUNCTION economy._refuse('the terms of a transfer never change');

DROP TRIGGER pending_transfers_machine ON economy.pending_transfers;
CREATE TRIGGER pending_transfers_machine BEFORE UPDATE ON economy.pending_transfers
  FOR EACH ROW WHEN (NOT CASE OLD.status WHEN 'pending'  THEN NEW.status IN ('checking', 'approved', 'rejected')
                                         WHEN 'checking' THEN NEW.status IN ('checking', 'approved', 'rejected')
                                         WHEN 'approved' THEN NEW.status IN ('completed', 'rejected')
                                         ELSE false
                         END)
  EXECUTE FUNCTION economy._refuse('not a step of the status machine: completed and rejected are for ever');

-- ── Ids ───────────────────────────────────────────────────────────────────────────────────────────────────────────

-- Claims ids that a caller chose: waits for a transaction that is just using one of them in the other mode, and makes
-- later ones wait for this transaction. The unique key that both modes share is that of transfer_work: the pool inserts
-- there anyway, the synchronous mode inserts and deletes. Ids that a node generates need no claim. Callers hold the
-- accounts' locks, and look afterwards whether the ids were used: a statement that begins now sees it.
CREATE FUNCTION economy._claim_ids(p_ids uuid[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  v_claimed uuid[];
BEGIN
  WITH claimed AS (
    INSERT INTO economy.transfer_work (transfer_id, seq, guild_id, initiator_id, amount, lane, approved, failed_on,
                                       due_at, next_attempt_at, expires_at)
    SELECT k.transfer_id, 0, 0, 0, 0, 0, true, 0, '9000-01-01', '9000-01-01', '9000-01-01'
      FROM unnest(p_ids) AS k(transfer_id)
     ORDER BY k.transfer_id
        ON CONFLICT DO NOTHING
    RETURNING transfer_id
  )
  SELECT array_agg(c.transfer_id) INTO v_claimed FROM claimed AS c;
  DELETE FROM economy.transfer_work WHERE transfer_id = ANY (v_claimed);
END $$;

-- ── What waits becomes due ────────────────────────────────────────────────────────────────────────────────────────

-- Reminds of those that are not among p_free.
CREATE FUNCTION economy._remind_of_locked(p_ids uuid[], p_free uuid[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  IF cardinality(p_free) = cardinality(p_ids) THEN RETURN; END IF;
  INSERT INTO economy.transfer_reminders (transfer_id)
  SELECT k.transfer_id
    FROM unnest(p_ids) AS k(transfer_id)
   WHERE k.transfer_id <> ALL (p_free)
     AND NOT EXISTS (SELECT FROM economy.transfer_reminders AS r WHERE r.transfer_id = k.transfer_id);
END $$;

-- Makes waiting transfers due. One whose work row is locked gets a reminder instead: its transaction may be checking it
-- by what was true before, or may be rolled back without having looked. Answers how many, so that the nodes are told.
CREATE FUNCTION economy._make_due(p_ids uuid[], p_at timestamptz) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
  v_free uuid[];
BEGIN
  SELECT coalesce(array_agg(w.transfer_id), '{}') INTO v_free
    FROM (SELECT transfer_id FROM economy.transfer_work WHERE transfer_id = ANY (p_ids) FOR UPDATE SKIP LOCKED) AS w;
  UPDATE economy.transfer_work SET due_at = least(due_at, p_at) WHERE transfer_id = ANY (v_free);
  PERFORM economy._remind_of_locked(p_ids, v_free);
  RETURN cardinality(p_ids);
END $$;

-- Makes due what failed on cooldown or limit, now that it may pass: all of the guild (p_member_id NULL) or of a member,
-- at most 10,000 in one transaction, by payer and seq from after the given ones. The rest by a reminder. Answers how many.
DROP FUNCTION economy._wake_throttled(bigint, bigint);
CREATE FUNCTION economy._wake_throttled(p_guild_id bigint, p_member_id bigint, p_after_member bigint DEFAULT 0,
                                        p_after_seq bigint DEFAULT 0) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
  v_at timestamptz := economy._clock();
  v_ids uuid[];
  v_members bigint[];
  v_seqs bigint[];
BEGIN
  SELECT array_agg(w.transfer_id), array_agg(w.initiator_id), array_agg(w.seq) INTO v_ids, v_members, v_seqs
    FROM (SELECT w.transfer_id, w.initiator_id, w.seq
            FROM economy.transfer_work AS w
           WHERE w.guild_id = p_guild_id
             AND (p_member_id IS NULL OR w.initiator_id = p_member_id)
             -- For the index: a generic plan cannot use the line above.
             AND (w.initiator_id, w.seq) > (greatest(p_after_member, p_member_id - 1), p_after_seq)
             AND w.initiator_id <= coalesce(p_member_id, 9223372036854775807)
             AND NOT w.approved
             AND w.failed_on & 6 <> 0
             AND w.due_at > v_at
           ORDER BY w.initiator_id, w.seq
           LIMIT 10000) AS w;
  IF v_ids IS NULL THEN RETURN 0; END IF;
  IF cardinality(v_ids) = 10000 THEN
    INSERT INTO economy.transfer_reminders (guild_id, after_member, after_seq)
    VALUES (p_guild_id, v_members[10000], v_seqs[10000]);
  END IF;
  PERFORM economy._make_due(v_ids, v_at);
  PERFORM pg_notify('economy_work', '');
  RETURN cardinality(v_ids);
END $$;

-- Makes due what was locked before and is not locked any more.
CREATE FUNCTION economy._follow_transfer_reminders(p_at timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  v_reminders bigint[];
  v_ids uuid[];
  v_free uuid[];
  v_left uuid[];
BEGIN
  SELECT array_agg(t.reminder_id), array_agg(t.transfer_id) INTO v_reminders, v_ids
    FROM (SELECT * FROM economy.transfer_reminders
           WHERE transfer_id IS NOT NULL
           ORDER BY transfer_id
           LIMIT 10000
             FOR UPDATE SKIP LOCKED) AS t;
  IF v_ids IS NULL THEN RETURN; END IF;
  SELECT array_agg(w.transfer_id) INTO v_free
    FROM (SELECT transfer_id FROM economy.transfer_work WHERE transfer_id = ANY (v_ids) FOR UPDATE SKIP LOCKED) AS w;
  SELECT array_agg(w.transfer_id) INTO v_left
    FROM economy.transfer_work AS w
   WHERE w.transfer_id = ANY (v_ids)
     AND w.transfer_id <> ALL (coalesce(v_free, '{}'));
  UPDATE economy.transfer_work SET due_at = least(due_at, p_at) WHERE transfer_id = ANY (v_free);
  DELETE FROM economy.transfer_reminders
   WHERE reminder_id = ANY (v_reminders)
     AND transfer_id <> ALL (coalesce(v_left, '{}'));
END $$;

-- Makes due what waits in guilds whose settings changed, once all transactions are over that may have read the old ones.
-- All reminders of a guild are followed at once, and at most some 10,000 transfers in one transaction.
CREATE FUNCTION economy._follow_guild_reminders() RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  v_woken integer := 0;
  r record;
BEGIN
  UPDATE economy.transfer_reminders
     SET begun_before = pg_snapshot_xmax(pg_current_snapshot())
   WHERE EXISTS (SELECT FROM pg_snapshot_xip(pg_current_snapshot()))
     AND reminder_id IN (SELECT t.reminder_id
                           FROM economy.transfer_reminders AS t
                          WHERE t.guild_id IS NOT NULL
                            AND t.after_seq IS NULL
                            AND t.begun_before IS NULL
                          ORDER BY t.guild_id, t.reminder_id
                          LIMIT 1000
                            FOR UPDATE SKIP LOCKED);
  FOR r IN
    SELECT t.guild_id, array_agg(t.reminder_id) AS ids,
           bool_or(t.after_seq IS NULL) AS from_the_start,
           (array_agg(t.after_member ORDER BY t.after_member, t.after_seq))[1] AS after_member,
           (array_agg(t.after_seq ORDER BY t.after_member, t.after_seq))[1] AS after_seq
      FROM (SELECT * FROM economy.transfer_reminders
             WHERE guild_id IS NOT NULL
               -- The snapshot that shows the reminder shows who was running then.
               AND (after_seq IS NOT NULL
                    OR begun_before <= pg_snapshot_xmin(pg_current_snapshot())
                    OR begun_before IS NULL AND NOT EXISTS (SELECT FROM pg_snapshot_xip(pg_current_snapshot())))
             ORDER BY guild_id, reminder_id
             LIMIT 1000
               FOR UPDATE SKIP LOCKED) AS t
     GROUP BY t.guild_id
     ORDER BY t.guild_id
  LOOP
    DELETE FROM economy.transfer_reminders WHERE reminder_id = ANY (r.ids);
    v_woken := v_woken + CASE WHEN r.from_the_start THEN economy._wake_throttled(r.guild_id, NULL)
                              ELSE economy._wake_throttled(r.guild_id, NULL, r.after_member, r.after_seq)
                         END;
    EXIT WHEN v_woken >= 10000;
  END LOOP;
END $$;

-- Follows the reminders. again_at: when to ask again; NULL: nothing is left.
CREATE FUNCTION economy._follow_reminders(p_at timestamptz, OUT again_at timestamptz)
LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM economy.transfer_reminders) THEN RETURN; END IF;
  PERFORM economy._follow_transfer_reminders(p_at);
  PERFORM economy._follow_guild_reminders();
  SELECT CASE WHEN bool_or(t.transfer_id IS NOT NULL OR t.after_seq IS NOT NULL
                           OR t.begun_before <= pg_snapshot_xmin(pg_current_snapshot())) THEN p_at
              WHEN count(*) > 0 THEN p_at + interval '1 s'
         END
    INTO again_at
    FROM economy.transfer_reminders AS t;
END $$;

-- ── How sets go ───────────────────────────────────────────────────────────────────────────────────────────────────

CREATE OR REPLACE FUNCTION economy._admit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.status <> 'pending' OR NEW.retry_count <> 0 OR NEW.checks <> '{}' THEN
    RAISE EXCEPTION 'a transfer begins as pending, unchecked and untried'
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  NEW.expires_at := economy._clock() + make_interval(
    hours => (SELECT default_expiry_hours FROM economy._settings(NEW.guild_id)));
  RETURN NEW;
END $$;

-- ── What a node calls ─────────────────────────────────────────────────────────────────────────────────────────────

-- Rejects what has waited too long. Answers how many; as many as p_limit means: call again.
CREATE OR REPLACE FUNCTION economy.fn_expire_transfers(p_limit integer) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
  v_at timestamptz := economy._clock();
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
CREATE OR REPLACE FUNCTION economy.fn_cancel_transfer(p_transfer_id uuid, OUT cancelled boolean, OUT status text)
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM FROM economy.transfer_work AS w WHERE w.transfer_id = p_transfer_id FOR UPDATE;
  cancelled := economy._deny(ARRAY[p_transfer_id], 'transfer_cancelled', economy._clock()) = 1;
  SELECT p.status::text INTO status FROM economy.pending_transfers AS p WHERE p.transfer_id = p_transfer_id;
END $$;

-- Looks at it again later, for the one in a set that fails for a reason that was not foreseen: it must not hold up the
-- rest.
CREATE OR REPLACE FUNCTION economy.fn_defer_transfer(p_transfer_id uuid, p_seconds double precision) RETURNS boolean
LANGUAGE sql VOLATILE AS $$
  WITH put_off AS (
    UPDATE economy.transfer_work
       SET due_at = economy._clock() + make_interval(secs => p_seconds)
     WHERE transfer_id = p_transfer_id
    RETURNING 1
  )
  SELECT EXISTS (SELECT FROM put_off)
$$;

-- ── What cannot be carried out ────────────────────────────────────────────────────────────────────────────────────

-- After an execution that PostgreSQL refused with an integrity error (SQLSTATE class 23), which no repetition cures by
-- itself: tries again after p_seconds, and fails the transfer at the tenth. Whether it failed; false too when it is not
-- approved any more.
CREATE FUNCTION economy.fn_execution_refused(p_transfer_id uuid, p_seconds double precision) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
  w economy.transfer_work;
BEGIN
  SELECT * INTO w FROM economy.transfer_work WHERE transfer_id = p_transfer_id FOR UPDATE;
  IF w.approved AND w.execute_tries >= 9 THEN
    PERFORM economy._fail(w);
    RETURN true;
  END IF;
  UPDATE economy.transfer_work
     SET execute_tries = execute_tries + approved::integer,
         due_at = economy._clock() + make_interval(secs => p_seconds)
   WHERE transfer_id = p_transfer_id;
  RETURN false;
END $$;

-- Fails an approved transfer by hand. Answers whether it did, and the status afterwards (NULL: no such transfer).
CREATE FUNCTION economy.fn_fail_transfer(p_transfer_id uuid, p_reason text, p_actor text,
                                         OUT failed boolean, OUT status text)
LANGUAGE plpgsql AS $$
DECLARE
  w economy.transfer_work;
BEGIN
  PERFORM economy._need_record(p_reason, p_actor);
  SELECT * INTO w FROM economy.transfer_work AS x WHERE x.transfer_id = p_transfer_id AND x.approved FOR UPDATE;
  failed := FOUND;
  IF failed THEN
    PERFORM economy._fail(w);
    INSERT INTO economy.operations (guild_id, member_id, action, reason, actor, detail)
    VALUES (w.guild_id, w.initiator_id, 'fail', p_reason, p_actor,
            jsonb_build_object('transferId', w.transfer_id, 'amount', w.amount::text));
  END IF;
  SELECT p.status::text INTO status FROM economy.pending_transfers AS p WHERE p.transfer_id = p_transfer_id;
END $$;

-- ── What people call ──────────────────────────────────────────────────────────────────────────────────────────────

DROP FUNCTION economy.fn_create_pending_transfer(bigint, bigint, bigint, bigint, jsonb, integer, text, text);
-- Gives back the transfer's id; of the one that was made before, when the key has been used for the same. Raises
-- unique_violation when it was used for something else, check_violation when the terms make no sense. p_max_retries:
-- NULL: the guild's; -1: until it expires.
CREATE FUNCTION economy.fn_create_pending_transfer(
  p_guild_id bigint, p_initiator_id bigint, p_target_id bigint, p_amount bigint, p_metadata jsonb DEFAULT '{}',
  p_expires_hours integer DEFAULT NULL, p_reason text DEFAULT NULL, p_idempotency_key text DEFAULT NULL,
  p_max_retries integer DEFAULT NULL)
RETURNS uuid
LANGUAGE plpgsql AS $$
DECLARE
  r record;
BEGIN
  IF p_expires_hours NOT BETWEEN 1 AND 8760 THEN
    RAISE EXCEPTION 'a transfer expires after 1 to 8760 hours, not after %', p_expires_hours
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF p_max_retries NOT BETWEEN -1 AND 1000 THEN
    RAISE EXCEPTION 'a transfer is retried 0 to 1000 times, or -1: until it expires; not %', p_max_retries
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  SELECT * INTO r
    FROM economy.fn_create_pending_transfers(
           ARRAY[NULL::uuid], ARRAY[p_guild_id], ARRAY[p_initiator_id], ARRAY[p_target_id], ARRAY[p_amount],
           ARRAY[p_reason], ARRAY[p_metadata::text], ARRAY[p_expires_hours], ARRAY[p_idempotency_key],
           p_max_retries => ARRAY[p_max_retries]);
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

-- A ledger row belongs to a completed transfer: where ids collided before, it may be another payer's. retry_limit: the
-- request's, or else the guild's; NULL: until it expires. By tables only: who reads a view needs EXECUTE on what it calls.
CREATE OR REPLACE VIEW economy.transfer_status AS
SELECT p.transfer_id, p.guild_id, p.initiator_id, p.target_id, p.amount, p.status::text, p.checks, p.retry_count,
       p.expires_at, p.metadata, p.created_at, p.updated_at, p.reason, p.idempotency_key, p.seq,
       w.next_attempt_at, w.due_at,
       (SELECT d.reason
          FROM economy.transfer_denials AS d
         WHERE d.guild_id = p.guild_id AND d.seq = p.seq) AS denied_reason,
       (SELECT t.id
          FROM economy.transactions AS t
         WHERE t.transfer_id = p.transfer_id AND p.status = 'completed') AS ledger_id,
       p.max_retries,
       CASE WHEN p.max_retries IS NULL
            THEN (SELECT s.max_retries
                    FROM economy.guild_settings AS s
                   WHERE s.guild_id = coalesce((SELECT g.guild_id FROM economy.guild_settings AS g
                                                 WHERE g.guild_id = p.guild_id), 0))
            WHEN p.max_retries >= 0 THEN p.max_retries
       END AS retry_limit
  FROM economy.pending_transfers AS p
  LEFT JOIN LATERAL (SELECT w.next_attempt_at, w.due_at
                       FROM economy.transfer_work AS w
                      WHERE w.transfer_id = p.transfer_id
                      LIMIT 1) AS w ON true;

-- What applies in a guild: its own settings, or else the defaults.
CREATE FUNCTION economy.fn_get_settings(
  p_guild_id bigint,
  OUT guild_id bigint, OUT daily_limit bigint, OUT cooldown_seconds integer, OUT default_expiry_hours integer,
  OUT max_retries integer)
LANGUAGE sql STABLE AS $$
  SELECT p_guild_id, s.daily_limit, s.cooldown_seconds, s.default_expiry_hours, s.max_retries
    FROM economy._settings(p_guild_id) AS s
$$;

-- Changes the settings of a guild that `p_changes` names by column, e.g. {"daily_limit": null, "cooldown_seconds": 0};
-- a key that is no setting raises. Cooldowns that are running get their new length. Answers the settings. Takes no lock
-- that a set of another guild waits for; checks that are under way go by the old settings, and a reminder sees to them.
CREATE OR REPLACE FUNCTION economy.fn_set_settings(p_guild_id bigint, p_changes jsonb, p_reason text, p_actor text)
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
         updated_at = economy._clock()
   WHERE guild_id = p_guild_id
  RETURNING * INTO s;
  INSERT INTO economy.operations (guild_id, action, reason, actor, detail)
  VALUES (p_guild_id, 'set_settings', p_reason, p_actor, p_changes);
  IF (s.daily_limit, s.cooldown_seconds) IS DISTINCT FROM (v_before.daily_limit, v_before.cooldown_seconds) THEN
    INSERT INTO economy.transfer_reminders (guild_id) VALUES (p_guild_id);
    PERFORM economy._wake_throttled(p_guild_id, NULL);
  END IF;
  RETURN s;
END $$;

-- What a member may do at this moment. No row: no account.
CREATE OR REPLACE FUNCTION economy.fn_get_account(
  p_guild_id bigint, p_member_id bigint,
  OUT kind text, OUT balance bigint, OUT reserved bigint, OUT used_today bigint, OUT daily_limit bigint,
  OUT throttled_until timestamptz)
RETURNS SETOF record
LANGUAGE sql STABLE AS $$
  SELECT a.kind, a.balance, a.reserved, s.used,
         CASE WHEN a.kind = 'member' THEN s.daily_limit END,
         CASE WHEN NOT economy._rule_cooldown(a.kind, s.throttled_until, economy._clock()) THEN s.throttled_until END
    FROM economy.accounts AS a
   CROSS JOIN LATERAL economy._standing(a.guild_id, a.member_id, economy._clock()) AS s
   WHERE a.guild_id = p_guild_id AND a.member_id = p_member_id
$$;

-- The three checks as they stand at this moment, each told as transfer_check_result: 1 passed, 0 failed, NULL when the
-- transfer does not wait for checks. They change nothing.
CREATE OR REPLACE FUNCTION economy.fn_check_transfer_balance(p_transfer_id uuid) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
  r record;
BEGIN
  SELECT p.*, s.available, economy._rule_balance(s.available, p.amount) AS passed INTO r
    FROM economy.pending_transfers AS p
   CROSS JOIN LATERAL economy._standing(p.guild_id, p.initiator_id, economy._clock()) AS s
   WHERE p.transfer_id = p_transfer_id AND p.status IN ('pending', 'checking');
  IF NOT FOUND THEN RETURN NULL; END IF;
  PERFORM pg_notify('economy_events', economy._balance_event(r.passed, r.transfer_id, r.guild_id, r.initiator_id,
                                                             r.available, r.amount));
  RETURN r.passed::integer;
END $$;

CREATE OR REPLACE FUNCTION economy.fn_check_transfer_cooldown(p_transfer_id uuid) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
  r record;
BEGIN
  SELECT p.*, s.throttled_until, economy._rule_cooldown(s.kind, s.throttled_until, economy._clock()) AS passed INTO r
    FROM economy.pending_transfers AS p
   CROSS JOIN LATERAL economy._standing(p.guild_id, p.initiator_id, economy._clock()) AS s
   WHERE p.transfer_id = p_transfer_id AND p.status IN ('pending', 'checking');
  IF NOT FOUND THEN RETURN NULL; END IF;
  PERFORM pg_notify('economy_events', economy._cooldown_event(r.passed, r.transfer_id, r.guild_id, r.initiator_id,
                                                              r.throttled_until));
  RETURN r.passed::integer;
END $$;

CREATE OR REPLACE FUNCTION economy.fn_check_transfer_daily_limit(p_transfer_id uuid) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
  r record;
BEGIN
  SELECT p.*, s.used, s.daily_limit, economy._rule_daily_limit(s.kind, s.used, s.daily_limit, p.amount) AS passed INTO r
    FROM economy.pending_transfers AS p
   CROSS JOIN LATERAL economy._standing(p.guild_id, p.initiator_id, economy._clock()) AS s
   WHERE p.transfer_id = p_transfer_id AND p.status IN ('pending', 'checking');
  IF NOT FOUND THEN RETURN NULL; END IF;
  PERFORM pg_notify('economy_events', economy._daily_limit_event(r.passed, r.transfer_id, r.guild_id, r.initiator_id,
                                                                 r.used, r.amount, r.daily_limit));
  RETURN r.passed::integer;
END $$;

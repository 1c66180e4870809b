-- One append-only log of what happened. A row is a step of a subject, an event for consumers, or both: a step and the
-- event that reports it are one row. The views `history` and `outbox` show the two sides. No rule reads this table.
--
-- Nodes of the version before still write the old tables: their transactions end first, and their next ones fail.
LOCK TABLE step_history, outbox_event IN ACCESS EXCLUSIVE MODE;

-- `seq` is taken while the row of the subject is locked, so rows of one subject are in the order of its steps. Across
-- subjects commits may overtake each other: a reader stops before what a running transaction could still add
-- (outbox::Settled). That requires `xid` to be assigned before `seq` is taken, which is why `xid` is the first column.
-- An identity and not a default: inserting then needs no right on the sequence, also through economy.outbox.
CREATE TABLE event (
  xid           xid8        NOT NULL DEFAULT pg_current_xact_id(),
  seq           bigint      GENERATED ALWAYS AS IDENTITY (SEQUENCE NAME event_seq),
  at            timestamptz NOT NULL DEFAULT clock_timestamp(),
  subject       text        NOT NULL,  -- 'tx/<txId>', 'transfer/<transferId>'
  type          text        NULL,      -- NULL: a step that is not announced to consumers
  from_state    text        NULL,      -- NULL in a step: the subject began here
  to_state      text        NULL,      -- NULL: an event without a step
  sub_state     text        NULL,
  node          text        NULL,
  fencing_token bigint      NULL,
  why           text        NULL,
  data          jsonb       NULL,
  PRIMARY KEY (seq, at),
  CONSTRAINT event_is_a_step_or_announced
    CHECK ((type IS NOT NULL OR to_state IS NOT NULL)
           AND (type IS NULL) = (data IS NULL)
           AND (to_state IS NULL) = (why IS NULL)
           AND CASE WHEN to_state IS NULL THEN from_state IS NULL AND sub_state IS NULL ELSE node IS NOT NULL END)
) PARTITION BY RANGE (at);
CREATE INDEX idx_event_subject ON event (subject, seq);

CREATE TRIGGER event_is_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON event
  FOR EACH STATEMENT EXECUTE FUNCTION economy._refuse('the log is append-only: old months are removed as a whole');

-- Every node reads how far the sequence is (outbox::Settled). The number reveals only how many rows there are.
GRANT SELECT ON SEQUENCE event_seq TO PUBLIC;

-- Makes the partition `event_YYYY_MM` of the month of `p_at`, in UTC, unless it exists. Attaching a finished table does
-- not lock out writers; CREATE TABLE … PARTITION OF would. Several sessions may call it at once.
CREATE FUNCTION event_add_month(p_at timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  v_from  timestamp := date_trunc('month', p_at AT TIME ZONE 'UTC');
  v_to    timestamp := v_from + interval '1 month';
  v_name  text      := 'event_' || to_char(v_from, 'YYYY_MM');
  v_owner text      := (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = 'event'::regclass);
BEGIN
  IF EXISTS (SELECT FROM pg_inherits WHERE inhparent = 'event'::regclass AND inhrelid = to_regclass(v_name)) THEN
    RETURN;
  END IF;
  -- The lock that ATTACH takes; it conflicts with itself, so the second session waits here.
  LOCK TABLE event IN SHARE UPDATE EXCLUSIVE MODE;
  IF EXISTS (SELECT FROM pg_inherits WHERE inhparent = 'event'::regclass AND inhrelid = to_regclass(v_name)) THEN
    RETURN;
  END IF;
  EXECUTE format('CREATE TABLE %I (LIKE event INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING INDEXES)', v_name);
  -- A member of the owner's role makes a table of its own, which another member could not remove later.
  IF v_owner <> current_user THEN
    EXECUTE format('ALTER TABLE %I OWNER TO %I', v_name, v_owner);
  END IF;
  EXECUTE format('ALTER TABLE event ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)',
                 v_name, v_from AT TIME ZONE 'UTC', v_to AT TIME ZONE 'UTC');
END $$;

-- The months of the old rows, this month, and the next three. There is no default partition: a row without a month is
-- refused at once, and a default partition would have to be scanned for every month that is added.
SELECT event_add_month(month)
  FROM (SELECT date_trunc('month', at, 'UTC') AS month FROM step_history
         UNION
        SELECT date_trunc('month', created_at, 'UTC') FROM outbox_event
         UNION
        SELECT (date_trunc('month', now() AT TIME ZONE 'UTC') + make_interval(months => n)) AT TIME ZONE 'UTC'
          FROM generate_series(0, 3) AS n) AS needed
 ORDER BY month;

-- Number the rows anew, above every old number: a cursor that a client took before begins again and skips nothing.
SELECT setval('event_seq', last)
  FROM (SELECT greatest((SELECT max(seq) FROM step_history), (SELECT max(seq) FROM outbox_event)) AS last) AS old
 WHERE last IS NOT NULL;

-- In order of time. `placed` is the latest time up to a row, so that a clock that was set back changes no order within
-- either table. A step stands before an event of the same time.
INSERT INTO event (at, subject, type, from_state, to_state, sub_state, node, fencing_token, why, data)
SELECT at, subject, type, from_state, to_state, sub_state, node, fencing_token, why, data
  FROM (SELECT max(at) OVER (ORDER BY seq) AS placed, 1 AS source, seq, at, 'tx/' || subject_id AS subject,
               NULL AS type, from_state, to_state, sub_state, node, fencing_token, why, NULL::jsonb AS data
          FROM step_history
         UNION ALL
        SELECT max(created_at) OVER (ORDER BY seq), 2, seq, created_at, subject,
               type, NULL, NULL, NULL, NULL, NULL, NULL, data
          FROM outbox_event) AS old
 ORDER BY placed, source, seq;

CREATE VIEW history AS
SELECT seq, at, subject, from_state, to_state, sub_state, node, fencing_token, why
  FROM event
 WHERE to_state IS NOT NULL;

CREATE VIEW outbox AS
SELECT seq, xid, at, subject, type, data
  FROM event
 WHERE type IS NOT NULL;

-- OR REPLACE keeps the rights that roles were granted. Such a role reaches the events of transfers only.
CREATE OR REPLACE VIEW economy.outbox AS
SELECT type, subject, data
  FROM event
 WHERE subject LIKE 'transfer/%'
  WITH LOCAL CHECK OPTION;

-- Roles keep what they were granted: on the log, what they had on both old tables; on a view, what they had on its
-- table.
DO $$
DECLARE
  v_grant record;
BEGIN
  FOR v_grant IN
    SELECT a.privilege_type AS privilege, g.name AS grantee, m.made
      FROM (VALUES ('outbox_event'::regclass, 'step_history'::regclass, 'event', '{SELECT,INSERT}'::text[]),
                   ('outbox_event', 'outbox_event', 'outbox', '{SELECT}'),
                   ('step_history', 'step_history', 'history', '{SELECT}')) AS m(old, beside, made, privileges)
      JOIN pg_class AS c ON c.oid = m.old
     CROSS JOIN aclexplode(c.relacl) AS a
     CROSS JOIN LATERAL (SELECT CASE a.grantee WHEN 0 THEN 'public' ELSE pg_get_userbyid(a.grantee) END) AS g(name)
     WHERE a.privilege_type = ANY (m.privileges)
       AND a.grantee <> c.relowner
       AND has_table_privilege(g.name, m.beside, a.privilege_type)
  LOOP
    EXECUTE format('GRANT %s ON %I TO %s', v_grant.privilege, v_grant.made,
                   CASE v_grant.grantee WHEN 'public' THEN 'PUBLIC' ELSE quote_ident(v_grant.grantee) END);
  END LOOP;
END $$;

DROP TABLE step_history, outbox_event;

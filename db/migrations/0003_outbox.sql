-- What happened, told once and in order.

-- An event is written in the transaction whose step it tells of. `seq` is taken while the row it speaks of is locked,
-- so events of one subject are in the order of its steps. Across subjects commits may overtake each other: a reader
-- stops before what a running transaction could still put in (outbox::Settled), or it would miss the slower one for
-- good. That needs `xid` to be assigned before `seq` is taken, which is why it comes first.
CREATE TABLE outbox_event (
  xid        xid8        NOT NULL DEFAULT pg_current_xact_id(),
  seq        bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  type       text        NOT NULL,
  subject    text        NOT NULL,  -- e.g. "tx/<txId>"
  data       jsonb       NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX idx_outbox_event_subject ON outbox_event (subject, seq);

-- Every step of every subject, for people and audits: kept when the events are long delivered and gone.
CREATE TABLE step_history (
  seq           bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  subject_id    uuid        NOT NULL,
  at            timestamptz NOT NULL DEFAULT clock_timestamp(),
  from_state    text        NULL,  -- NULL: it began here
  to_state      text        NOT NULL,
  sub_state     text        NULL,
  node          text        NOT NULL,
  fencing_token bigint      NULL,
  why           text        NOT NULL
);
CREATE INDEX idx_step_history_subject ON step_history (subject_id, seq);

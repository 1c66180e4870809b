-- Webhooks: receivers of events by HTTP (src/outbox/webhook). Each is a consumer `webhook/<id>` of event_consumer.

-- `scopes` and `restrictions` are those of the creator's key: the webhook gets no event that the creator could not read.
-- `secret` is stored as it is, because every delivery is signed with it: protect this table like a key file.
CREATE TABLE webhook (
  id               uuid        PRIMARY KEY,
  url              text        NOT NULL,
  description      text        NOT NULL DEFAULT '',
  filter           jsonb       NOT NULL DEFAULT '{}',
  batch            integer     NOT NULL DEFAULT 0 CHECK (batch BETWEEN 0 AND 1000),  -- 0: one event, not in a list
  scopes           text[]      NOT NULL,
  restrictions     jsonb       NOT NULL DEFAULT '{}',
  state            text        NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'paused', 'disabled')),
  disabled_reason  text        NULL,
  secret           bytea       NOT NULL,
  old_secret       bytea       NULL,
  old_secret_until timestamptz NULL,  -- deliveries carry a signature with the old secret, too, until then
  created_by       text        NOT NULL,
  created_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
  updated_at       timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Events that a receiver has not taken yet. They are stored before the consumer's position passes them. Events of one
-- `message` are sent in one request. The number of waiting rows of a webhook is bounded by `webhooks.backlog`.
CREATE TABLE webhook_backlog (
  webhook_id   uuid        NOT NULL REFERENCES webhook ON DELETE CASCADE,
  seq          bigint      NOT NULL,
  message      text        NOT NULL,
  type         text        NOT NULL,
  subject      text        NOT NULL,
  envelope     text        NOT NULL,
  state        text        NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'dead')),
  attempts     integer     NOT NULL DEFAULT 0,
  parked_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
  next_try_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
  last_status  integer     NULL,
  last_error   text        NULL,
  PRIMARY KEY (webhook_id, seq)
) WITH (fillfactor = 70);

-- The newest deliveries: 1,000 that succeeded and 1,000 that failed for each webhook, overwritten in turn.
CREATE TABLE webhook_delivery (
  webhook_id uuid        NOT NULL REFERENCES webhook ON DELETE CASCADE,
  succeeded  boolean     NOT NULL,
  slot       integer     NOT NULL CHECK (slot BETWEEN 0 AND 999),
  number     bigint      NOT NULL,  -- counts the deliveries that were logged; slot is number % 1000
  message    text        NOT NULL,
  seq        bigint      NOT NULL,  -- of the first event
  events     integer     NOT NULL,
  type       text        NOT NULL,  -- of the first event
  subject    text        NOT NULL,  -- of the first event
  attempt    integer     NOT NULL,
  at         timestamptz NOT NULL,
  status     integer     NULL,      -- NULL: there was no answer
  latency_ms integer     NOT NULL,
  error      text        NULL,
  PRIMARY KEY (webhook_id, succeeded, slot)
) WITH (fillfactor = 70);

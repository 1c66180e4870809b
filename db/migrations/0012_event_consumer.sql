-- Durable consumers of the log, such as webhooks and brokers, and the nodes that serve them (src/outbox/delivery).

-- One row for each consumer. `position` is the seq of the last event that the consumer has handled or skipped. It is
-- never the settled seq: after a crash PostgreSQL may hand out again a number that no committed row has.
--
-- A node serves the consumers that it has claimed. The claim ends at `claimed_until`, by the database's clock.
-- `claim_token` grows with each takeover; every write for a consumer compares owner, token and `claimed_until`, so a
-- node that lost its claim writes nothing. No index mentions a column that changes, and half of each page stays free:
-- all updates are HOT.
CREATE TABLE event_consumer (
  consumer      text        COLLATE "C" PRIMARY KEY CHECK (consumer ~ '^[a-z]{1,20}/[!-~]{1,100}$'),
  kind          text        COLLATE "C" NOT NULL GENERATED ALWAYS AS (split_part(consumer, '/', 1)) STORED,
  active        boolean     NOT NULL DEFAULT true,  -- false: paused or disabled; no node serves it
  revision      bigint      NOT NULL DEFAULT 0,     -- grows when the settings of the consumer change
  position      bigint      NOT NULL CHECK (position >= 0),
  position_at   timestamptz NOT NULL DEFAULT clock_timestamp(),  -- when the position was last written
  owner_node    text        NOT NULL DEFAULT '',
  claim_token   bigint      NOT NULL DEFAULT 0,
  claimed_until timestamptz NOT NULL DEFAULT '-infinity',
  failing_since timestamptz NULL,                   -- NULL: the last delivery succeeded
  last_error    text        NULL,
  created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
  updated_at    timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 50);

-- The nodes that serve consumers now, and of which kinds: they share the consumers of a kind evenly.
CREATE TABLE event_worker (
  node_id     text        COLLATE "C" PRIMARY KEY,
  kinds       text[]      NOT NULL,
  alive_until timestamptz NOT NULL
) WITH (fillfactor = 50);

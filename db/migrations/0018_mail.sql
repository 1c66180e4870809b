-- People's mail addresses, what they subscribe to, and every mail that is or was to be sent (src/notify).
--
-- Three tables hold mails: codes, changes of flows, and reports to operators. They share their last columns, and one
-- sender serves them. The row is the claim: it is committed before the mail leaves.
--
--   send_status  pending → success | failed (tried again at next_attempt_at) | dead | suppressed
--   claimed_until  set while an attempt is under way. A row whose claim has expired is due again: its node died.
--   claim_token    grows with each claim; the result of an attempt is written only under its own token.
--   maybe_sent     an earlier attempt ended without an answer: the receiver may have the mail.
-- A row is claimed only when a connection is about to be free for it, so that a claim means an attempt.
--
-- Lock order: users, then mails, user_emails, emails. An outcome locks its mail, and then the address that bounced.
-- Removing an address locks user_emails before its codes, so it locks the person first.

-- Several people may use one address. What differs between them is in user_emails.
CREATE TABLE emails (
  id             bigint       GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  email          varchar(200) COLLATE "C" NOT NULL UNIQUE CHECK (email ~ '^[!-~]{1,64}@[a-z0-9.-]+$'),
  is_deliverable boolean      NOT NULL DEFAULT true,  -- false: a mail server said that there is no such mailbox
  created_at     timestamptz  NOT NULL DEFAULT clock_timestamp(),
  updated_at     timestamptz  NOT NULL DEFAULT clock_timestamp()
);

-- Small, so that a page of subscriptions is compared with it faster than with the addresses themselves.
CREATE INDEX idx_emails_undeliverable ON emails (id) WHERE NOT is_deliverable;

CREATE TABLE user_emails (
  id               bigint       GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  user_id          bigint       NOT NULL REFERENCES users ON DELETE CASCADE,
  email_id         bigint       NOT NULL REFERENCES emails,
  remark           varchar(200) NULL,
  is_verified      boolean      NOT NULL DEFAULT false,
  last_verified_at timestamptz  NULL,
  created_at       timestamptz  NOT NULL DEFAULT clock_timestamp(),
  updated_at       timestamptz  NOT NULL DEFAULT clock_timestamp(),
  UNIQUE (user_id, email_id)
);
CREATE INDEX idx_user_emails_email ON user_emails (email_id);

-- Only the newest code of a person's address counts. `salt` is what the code is made from, with the secret of this
-- installation, and is removed when the mail has left.
CREATE TABLE email_verification_codes (
  id              bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  user_email_id   bigint      NOT NULL REFERENCES user_emails ON DELETE CASCADE,
  code_hash       bytea       NOT NULL CHECK (octet_length(code_hash) = 32),
  salt            bytea       NULL,
  expires_at      timestamptz NOT NULL,
  attempt_count   integer     NOT NULL DEFAULT 0 CHECK (attempt_count BETWEEN 0 AND 5),
  is_used         boolean     NOT NULL DEFAULT false,  -- it verified the address, or a newer one replaced it
  send_status     varchar(20) NOT NULL DEFAULT 'pending'
                  CHECK (send_status IN ('pending', 'success', 'failed', 'dead', 'suppressed')),
  error_message   text        NULL,
  retry_count     integer     NOT NULL DEFAULT 0,
  claim_token     bigint      NOT NULL DEFAULT 0,
  claimed_until   timestamptz NULL,
  maybe_sent      boolean     NOT NULL DEFAULT false,
  next_attempt_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
  sent_at         timestamptz NULL
) WITH (fillfactor = 80);
CREATE INDEX idx_email_verification_codes_user_email ON email_verification_codes (user_email_id);
CREATE INDEX idx_email_verification_codes_due ON email_verification_codes (next_attempt_at)
  WHERE send_status IN ('pending', 'failed');

-- Which codes were asked for in the last day. Separate from the codes: removing an address must not reset its limits.
CREATE TABLE email_code_request (
  id       bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  user_id  bigint      NOT NULL REFERENCES users ON DELETE CASCADE,
  email_id bigint      NOT NULL REFERENCES emails,
  at       timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX idx_email_code_request_user ON email_code_request (user_id, at);
CREATE INDEX idx_email_code_request_email ON email_code_request (email_id, at);
CREATE INDEX idx_email_code_request_at ON email_code_request (at);

-- A subscription belongs to one person's use of an address (scheme B). `since_block` and `since_timestamp` are the
-- chain's head when it was made or resumed: changes up to there are not mailed.
CREATE TABLE user_email_subscriptions (
  id                bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  user_email_id     bigint      NOT NULL REFERENCES user_emails ON DELETE CASCADE,
  timelock_standard varchar(20) COLLATE "C" NOT NULL CHECK (timelock_standard IN ('compound', 'openzeppelin')),
  chain_id          bigint      NOT NULL CHECK (chain_id > 0),
  contract_address  varchar(42) COLLATE "C" NOT NULL CHECK (contract_address ~ '^0x[0-9a-f]{40}$'),
  notify_on         jsonb       NOT NULL DEFAULT '[]' CHECK (
    jsonb_typeof(notify_on) = 'array' AND
    notify_on <@ '["waiting", "ready", "executed", "cancelled", "expired"]' AND
    (timelock_standard = 'compound' OR NOT notify_on ? 'expired')),
  notify_filters    jsonb       NULL,  -- NULL: every flow
  has_filters       boolean     NOT NULL GENERATED ALWAYS AS (notify_filters IS NOT NULL) STORED,
  scope             varchar(20) NOT NULL DEFAULT 'initiator' CHECK (scope IN ('initiator', 'all')),
  is_active         boolean     NOT NULL DEFAULT true,
  since_block       bigint      NOT NULL,
  since_timestamp   timestamptz NOT NULL,
  created_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
  updated_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
  UNIQUE (user_email_id, chain_id, contract_address, timelock_standard)
);
-- Subscriptions by initiator are found from the person; only the others by their contract, which may have many. The
-- index has what decides about most of them, because each row is on a page of its own. Filters may be too long for it.
CREATE INDEX idx_user_email_subscriptions_all
  ON user_email_subscriptions (chain_id, contract_address, timelock_standard, user_email_id)
  INCLUDE (notify_on, since_block, since_timestamp, has_filters)
  WHERE scope = 'all' AND is_active;

-- One row for each mail about a change of a flow's status. The unique key is the mail's: the same change is never
-- mailed twice to one address, however many people subscribed. `corrects`: this mail takes back that one.
CREATE TABLE email_send_logs (
  id                bigint       GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  email_id          bigint       NOT NULL REFERENCES emails,
  flow_id           varchar(128) COLLATE "C" NOT NULL,
  timelock_standard varchar(20)  COLLATE "C" NOT NULL,
  chain_id          bigint       NOT NULL,
  contract_address  varchar(42)  COLLATE "C" NOT NULL,
  generation        integer      NOT NULL,
  status_from       varchar(20)  NULL,
  status_to         varchar(20)  COLLATE "C" NOT NULL,
  kind              varchar(20)  COLLATE "C" NOT NULL CHECK (kind IN ('change', 'correction')),
  retraction        integer      NOT NULL,
  tx_hash           varchar(66)  NULL,
  block_number      bigint       NULL,  -- of the change; NULL: the chain's clock made it
  changed_at        timestamptz  NOT NULL,
  initiator_address varchar(42)  NOT NULL,
  via_address       varchar(42)  NULL,
  corrects          bigint       NULL REFERENCES email_send_logs,
  retracted         boolean      NOT NULL DEFAULT false,  -- the change was undone while the mail was being sent
  send_status       varchar(20)  NOT NULL DEFAULT 'pending'
                    CHECK (send_status IN ('pending', 'success', 'failed', 'dead', 'suppressed')),
  error_message     text         NULL,
  retry_count       integer      NOT NULL DEFAULT 0,
  claim_token       bigint       NOT NULL DEFAULT 0,
  claimed_until     timestamptz  NULL,
  maybe_sent        boolean      NOT NULL DEFAULT false,
  next_attempt_at   timestamptz  NOT NULL DEFAULT clock_timestamp(),
  created_at        timestamptz  NOT NULL DEFAULT clock_timestamp(),
  sent_at           timestamptz  NULL,
  UNIQUE (flow_id, status_to, email_id, contract_address, chain_id, timelock_standard, generation, kind, retraction),
  CHECK ((kind = 'correction') = (corrects IS NOT NULL))
) WITH (fillfactor = 80);
CREATE INDEX idx_email_send_logs_due ON email_send_logs (next_attempt_at) WHERE send_status IN ('pending', 'failed');
-- Mails about one flow to one address leave in the order in which they were added. The second condition, which always
-- holds, keeps plans that look for what is due from taking this index.
CREATE INDEX idx_email_send_logs_order ON email_send_logs (email_id, flow_id, (id + 0))
  WHERE send_status IN ('pending', 'failed') AND flow_id <> '';
CREATE UNIQUE INDEX idx_email_send_logs_corrects ON email_send_logs (corrects) WHERE corrects IS NOT NULL;
-- Lists for operators, newest first: of an address, of a contract, of mails that ended badly. With plain ids, these
-- indexes would fit a look-up by id, and a plan that is made while the table is empty takes any index that fits.
CREATE INDEX idx_email_send_logs_email ON email_send_logs (email_id, (id + 0));
CREATE INDEX idx_email_send_logs_contract ON email_send_logs (contract_address, (id + 0));
CREATE INDEX idx_email_send_logs_unsent ON email_send_logs (send_status, (id + 0))
  WHERE send_status IN ('dead', 'suppressed');

-- Mails to the addresses of email.operators.
CREATE TABLE operator_email_logs (
  id              bigint       GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  email           varchar(200) COLLATE "C" NOT NULL,
  event_id        bigint       NOT NULL,  -- the event's place in the log
  event_type      text         NOT NULL,
  event_subject   text         NOT NULL,
  event_at        timestamptz  NOT NULL,
  event_data      jsonb        NOT NULL,
  send_status     varchar(20)  NOT NULL DEFAULT 'pending'
                  CHECK (send_status IN ('pending', 'success', 'failed', 'dead', 'suppressed')),
  error_message   text         NULL,
  retry_count     integer      NOT NULL DEFAULT 0,
  claim_token     bigint       NOT NULL DEFAULT 0,
  claimed_until   timestamptz  NULL,
  maybe_sent      boolean      NOT NULL DEFAULT false,
  next_attempt_at timestamptz  NOT NULL DEFAULT clock_timestamp(),
  created_at      timestamptz  NOT NULL DEFAULT clock_timestamp(),
  sent_at         timestamptz  NULL,
  UNIQUE (email, event_id)
) WITH (fillfactor = 80);
CREATE INDEX idx_operator_email_logs_due ON operator_email_logs (next_attempt_at)
  WHERE send_status IN ('pending', 'failed');

-- People who log in with a wallet, and sessions (src/identity).

-- Made once, here: marks what this installation hands out, such as the nonces of logins. Every node reads it.
CREATE TABLE installation_secret (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  value    bytea   NOT NULL CHECK (octet_length(value) = 32)
);
INSERT INTO installation_secret (value)
SELECT sha256(convert_to(string_agg(gen_random_uuid()::text, ''), 'UTF8')) FROM generate_series(1, 4);

-- A person is a wallet. The row is made at the first login.
CREATE TABLE users (
  id             bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  wallet_address text        COLLATE "C" NOT NULL UNIQUE CHECK (wallet_address ~ '^0x[0-9a-f]{40}$'),
  language       text        NOT NULL DEFAULT 'en' CHECK (language IN ('en', 'zh')),
  created_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
  last_login_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Nonces that were used, until they expire by themselves.
CREATE TABLE login_nonce (
  nonce      text        COLLATE "C" PRIMARY KEY,
  expires_at timestamptz NOT NULL
);
CREATE INDEX idx_login_nonce_expiry ON login_nonce (expires_at);

-- A session is a person's, or stands for an API key. Its token is never stored, only its hash. A session that ends is
-- deleted. It ends at `expires_at`, or when it was not used for a while (auth.session_idle).
CREATE TABLE session (
  token_hash   bytea       PRIMARY KEY CHECK (octet_length(token_hash) = 32),
  user_id      bigint      NULL REFERENCES users ON DELETE CASCADE,
  key_id       uuid        NULL REFERENCES api_key ON DELETE CASCADE,
  created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
  last_seen_at timestamptz NOT NULL DEFAULT clock_timestamp(),  -- to the minute
  expires_at   timestamptz NOT NULL,
  CHECK ((user_id IS NULL) <> (key_id IS NULL))
) WITH (fillfactor = 70);
CREATE INDEX idx_session_user ON session (user_id, created_at) WHERE user_id IS NOT NULL;
CREATE INDEX idx_session_key ON session (key_id, created_at) WHERE key_id IS NOT NULL;
CREATE INDEX idx_session_expiry ON session (expires_at);

-- Who may call the API. The key itself is never stored, only its hash.
CREATE TABLE api_key (
  key_id       uuid        PRIMARY KEY,
  label        text        NOT NULL CHECK (length(label) BETWEEN 1 AND 100),
  secret_hash  bytea       NOT NULL CHECK (octet_length(secret_hash) = 32),
  scopes       text[]      NOT NULL CHECK (cardinality(scopes) > 0),
  signers      text[]      NULL,  -- NULL: any
  guilds       text[]      NULL,  -- NULL: any
  created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
  expires_at   timestamptz NULL,
  revoked_at   timestamptz NULL,
  last_used_at timestamptz NULL
);

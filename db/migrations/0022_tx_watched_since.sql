-- From when `stuck.after` counts at the earliest: when the transaction got its nonce, or when it went back to ALLOCATED.
-- A transaction that was never signed has no time of a broadcast, and waiting for its first one must raise the alarm, too.
-- For rows that exist it is the time of this migration.
ALTER TABLE tx_open ADD COLUMN watched_since timestamptz NOT NULL DEFAULT now();

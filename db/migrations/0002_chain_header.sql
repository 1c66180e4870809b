-- The blocks that any node has seen, of every branch, each once and never changed. Which branch counts is not said here:
-- the node that decides walks parent hashes from its own head.
CREATE TABLE chain_header (
  chain_id    bigint        NOT NULL CHECK (chain_id > 0),
  hash        text          NOT NULL CHECK (hash ~ '^0x[0-9a-f]{64}$'),
  number      bigint        NOT NULL CHECK (number >= 0),
  parent_hash text          NOT NULL CHECK (parent_hash ~ '^0x[0-9a-f]{64}$'),
  block_time  bigint        NOT NULL CHECK (block_time >= 0),  -- seconds since 1970, as the chain says
  base_fee    numeric(78,0) NULL     CHECK (base_fee >= 0),    -- NULL: before EIP-1559
  seen_at     timestamptz   NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (chain_id, hash)
);

CREATE INDEX chain_header_number ON chain_header (chain_id, number);

-- What each node can do: the signers whose keys it has, and the chains that it has configured. A node that has the key
-- leads its signer; a node without it only tracks what is open, and only while no live node has the key.
--
-- A node of the version before does not say what it can do: it keeps `says_abilities` false, and is assumed to have every
-- key and every chain.
ALTER TABLE cluster_node ADD COLUMN says_abilities boolean NOT NULL DEFAULT false;

CREATE TABLE cluster_node_signer (
  node_id text NOT NULL REFERENCES cluster_node ON DELETE CASCADE,
  signer  text COLLATE "C" NOT NULL CHECK (signer ~ '^0x[0-9a-f]{40}$'),
  PRIMARY KEY (node_id, signer)
);
CREATE INDEX idx_cluster_node_signer_signer ON cluster_node_signer (signer);

CREATE TABLE cluster_node_chain (
  node_id  text   NOT NULL REFERENCES cluster_node ON DELETE CASCADE,
  chain_id bigint NOT NULL CHECK (chain_id > 0),
  PRIMARY KEY (node_id, chain_id)
);

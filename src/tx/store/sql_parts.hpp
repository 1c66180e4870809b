// Parts of SQL that several stores share.
#pragma once

// The columns that read_managed_tx needs, of tx_view under the given alias: FENCEPOST_TX_COLUMNS("t").
#define FENCEPOST_TX_COLUMNS(t)                                                                                  \
  t ".tx_id, " t ".chain_id, " t ".signer, " t ".request_id, " t ".creation_seq, " t ".nonce, " t ".payload, " t \
    ".gas_limit, " t ".tx_hash, " t ".state, " t ".sub_state, " t ".error_message, " t ".retry_count, " t        \
    ".first_submitted_at, " t ".last_submit_at, " t ".next_resubmit_at, " t ".receipt, " t ".receipt_block, " t  \
    ".receipt_hash, " t ".confirmations, " t ".confirmed_at, " t ".fencing_token, " t ".created_at, " t ".updated_at"

// The signers of chain $2 that node $1 leads, as `l`: chain_id, signer, token, first_unmined. Workers read the open
// transactions of each from first_unmined up, which skips what is mined or has ended.
#define FENCEPOST_LED_SIGNERS                                                                                          \
  "(SELECT l.chain_id, l.signer, l.fencing_token AS token, c.first_unmined FROM signer_lease AS l CROSS JOIN LATERAL " \
  "(SELECT c.first_unmined FROM signer_nonce_cursor AS c WHERE c.chain_id = l.chain_id AND c.signer = l.signer LIMIT " \
  "1) AS c WHERE l.owner_node = $1 AND l.chain_id = $2 AND l.expires_at > clock_timestamp()) AS l"

// The same for the signers in an array, where node $1 leads them.
#define FENCEPOST_LED_AMONG(signers)                                                                                  \
  "(SELECT l.chain_id, l.signer, l.fencing_token AS token, c.first_unmined FROM unnest(" signers                      \
  "::text[]) AS w(signer) CROSS JOIN LATERAL (SELECT * FROM signer_lease AS l WHERE l.chain_id = $2 AND l.signer = "  \
  "w.signer LIMIT 1) AS l CROSS JOIN LATERAL (SELECT c.first_unmined FROM signer_nonce_cursor AS c WHERE c.chain_id " \
  "= l.chain_id AND c.signer = l.signer LIMIT 1) AS c WHERE l.owner_node = $1 AND l.expires_at > clock_timestamp()) " \
  "AS l"

// The lease of a signer, as a subquery for LATERAL. Without conditions on the owner: the planner would use the index of
// owners, and read all leases of a node for each row.
#define FENCEPOST_LEASE_OF(row) \
  "(SELECT * FROM signer_lease AS l WHERE l.chain_id = " row ".chain_id AND l.signer = " row ".signer LIMIT 1)"
// Whether node $1 holds that lease, `l`, under the row's token.
#define FENCEPOST_HELD_BY_US(row) \
  "(l.owner_node = $1 AND l.fencing_token = " row ".token AND l.expires_at > clock_timestamp())"

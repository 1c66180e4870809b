// Parts of SQL that several stores share.
#pragma once

// The columns that read_managed_tx needs, of tx_view under the given alias: FENCEPOST_TX_COLUMNS("t").
#define FENCEPOST_TX_COLUMNS(t)                                                                                  \
  t ".tx_id, " t ".chain_id, " t ".signer, " t ".request_id, " t ".creation_seq, " t ".nonce, " t ".payload, " t \
    ".gas_limit, " t ".tx_hash, " t ".state, " t ".sub_state, " t ".error_message, " t ".retry_count, " t        \
    ".first_submitted_at, " t ".last_submit_at, " t ".next_resubmit_at, " t ".receipt, " t ".receipt_block, " t  \
    ".receipt_hash, " t ".confirmations, " t ".confirmed_at, " t ".fencing_token, " t ".created_at, " t ".updated_at"

// Whether a record of managed_tx waits for its nonce: it never had one and has not ended. The same condition as that of
// the index idx_managed_tx_waiting.
#define FENCEPOST_WAITS(m) "(" m ".nonce IS NULL AND " m ".released_nonce IS NULL AND NOT " m ".ended_unnumbered)"

// The signers of chain $2 that node $1 leads, as `l`: chain_id, signer, token, first_unmined, gap_nonce. Workers read
// the open transactions of each from first_unmined up, which skips what is mined or has ended. Nonces above gap_nonce
// are not broadcast.
#define FENCEPOST_LED_SIGNERS                                                                                          \
  "(SELECT l.chain_id, l.signer, l.fencing_token AS token, c.first_unmined, c.gap_nonce FROM signer_lease AS l CROSS " \
  "JOIN LATERAL (SELECT c.first_unmined, c.gap_nonce FROM signer_nonce_cursor AS c WHERE c.chain_id = l.chain_id AND " \
  "c.signer = l.signer LIMIT 1) AS c WHERE l.owner_node = $1 AND l.chain_id = $2 AND l.expires_at > "                  \
  "clock_timestamp()) AS l"

// The same for the signers in an array, where node $1 leads them.
#define FENCEPOST_LED_AMONG(signers)                                                                                 \
  "(SELECT l.chain_id, l.signer, l.fencing_token AS token, c.first_unmined, c.gap_nonce FROM unnest(" signers        \
  "::text[]) AS w(signer) CROSS JOIN LATERAL (SELECT * FROM signer_lease AS l WHERE l.chain_id = $2 AND l.signer = " \
  "w.signer LIMIT 1) AS l CROSS JOIN LATERAL (SELECT c.first_unmined, c.gap_nonce FROM signer_nonce_cursor AS c "    \
  "WHERE c.chain_id = l.chain_id AND c.signer = l.signer LIMIT 1) AS c WHERE l.owner_node = $1 AND l.expires_at > "  \
  "clock_timestamp()) AS l"

// Whether an open transaction's nonce is below the signer's gap: others can never be mined, and are not broadcast.
#define FENCEPOST_BELOW_GAP(t, l) "(" l ".gap_nonce IS NULL OR " t ".nonce < " l ".gap_nonce)"

// The lease of a signer, as a subquery for LATERAL. Without conditions on the owner: the planner would use the index of
// owners, and read all leases of a node for each row.
#define FENCEPOST_LEASE_OF(row) \
  "(SELECT * FROM signer_lease AS l WHERE l.chain_id = " row ".chain_id AND l.signer = " row ".signer LIMIT 1)"
// Whether node $1 holds that lease, `l`, under the row's token.
#define FENCEPOST_HELD_BY_US(row) \
  "(l.owner_node = $1 AND l.fencing_token = " row ".token AND l.expires_at > clock_timestamp())"

// Whether a signer has transactions that wait for a nonce or are open; NULL when it has no cursor.
#define FENCEPOST_HAS_WORK(l)                                                                                        \
  "(SELECT c.first_waiting < c.next_creation OR EXISTS (SELECT FROM tx_open AS t WHERE t.chain_id = c.chain_id AND " \
  "t.signer = c.signer) FROM signer_nonce_cursor AS c WHERE c.chain_id = " l ".chain_id AND c.signer = " l ".signer)"

// Whether no endpoint can have the open transaction: every attempt was signed here for the caller's payload, and
// refused.
#define FENCEPOST_UNSENT(t)                                    \
  "NOT EXISTS (SELECT FROM tx_attempt AS a WHERE a.tx_id = " t \
  ".tx_id AND (a.kind <> 'original' "                          \
  "OR a.outcome IS DISTINCT FROM 'refused'))"
// Whether a STUCK transaction may go back to ALLOCATED: the other sub states follow a broadcast.
#define FENCEPOST_MAY_BE_SIGNED_ANEW(t) \
  "(" t ".sub_state NOT IN ('no_receipt', 'nonce_taken', 'gap', 'external') AND " FENCEPOST_UNSENT(t) ")"

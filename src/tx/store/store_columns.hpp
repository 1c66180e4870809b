// Columns of managed_tx as SQL text, for the statements of the stores.
#pragma once

// The columns that read_managed_tx needs, of the given table or alias: FENCEPOST_TX_COLUMNS("t").
#define FENCEPOST_TX_COLUMNS(t)                                                                                  \
  t ".tx_id, " t ".chain_id, " t ".signer, " t ".request_id, " t ".creation_seq, " t ".nonce, " t ".payload, " t \
    ".gas_limit, " t ".tx_hash, " t ".state, " t ".sub_state, " t ".error_message, " t ".retry_count, " t        \
    ".first_submitted_at, " t ".last_submit_at, " t ".next_resubmit_at, " t ".receipt, " t ".receipt_block, " t  \
    ".receipt_hash, " t ".confirmations, " t ".confirmed_at, " t ".fencing_token, " t ".created_at, " t ".updated_at"

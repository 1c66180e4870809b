#include "http/error_codes.hpp"

namespace fencepost::http {
namespace {

constexpr std::string_view kCorrect = "Correct the request.";
constexpr std::string_view kWait = "Nothing happened. Try again after `Retry-After`.";
constexpr std::string_view kAskOperator = "Ask an operator of this node.";

constexpr ErrorCode kCodes[] = {
    {"bad_address", 400, "A value is not `0x` and 40 hexadecimal digits.", kCorrect},
    {"bad_checksum", 400, "An address in mixed case has a wrong EIP-55 checksum: a digit may be mistyped.",
     "Compare it with its source. All lowercase is not checked."},
    {"bad_fees", 400, "`gasPrice` beside `maxFeePerGas` or `maxPriorityFeePerGas`, or a tip without a cap or above it.",
     kCorrect},
    {"bad_hash", 400, "A transaction hash is not `0x` and 64 hexadecimal digits.", kCorrect},
    {"bad_hex", 400, "`data` is not `0x` and an even number of hexadecimal digits.", kCorrect},
    {"bad_host", 400, "The `Host` header is missing or repeated.", kCorrect},
    {"bad_idempotency_key", 400,
     "An idempotency key, of the body or of the header, is empty, over 128 bytes, not UTF-8, or has control "
     "characters.",
     kCorrect},
    {"bad_json", 400,
     "The body is not JSON, repeats a member, is nested too deep, or has an integer over 64 bits. `detail` says where.",
     "Correct the request. Large numbers are strings."},
    {"bad_log_level", 400, "The log level is not `debug`, `info`, `warn`, `error` or `off`.", kCorrect},
    {"bad_percent_encoding", 400, "The path or the query has a `%` without two hexadecimal digits after it.", kCorrect},
    {"bad_request", 400, "A member is missing, unknown, of the wrong type or out of range. `field` names it.",
     kCorrect},
    {"bad_request_id", 400, "A `requestId` is empty, over 128 bytes, not UTF-8, or has control characters.", kCorrect},
    {"bad_target", 400, "The request's target is not a path.", kCorrect},
    {"bad_transfer_encoding", 400, "An HTTP/1.0 request has a `Transfer-Encoding`.", kCorrect},
    {"chain_required", 400, "Several chains are configured and the request names none.", "Send `chainId`."},
    {"data_too_large", 400, "`data` is over 128 KiB.", kCorrect},
    {"empty_payload", 400, "The payload has neither `to` nor `data`.", kCorrect},
    {"gas_too_low", 400, "`gas` is under the transaction's intrinsic cost, so it could never be mined.",
     "Raise `gas`, or leave it out to have it estimated."},
    {"idempotency_key_in_batch", 400, "A batch was sent with the header `Idempotency-Key`.",
     "Give each item its key in the body."},
    {"idempotency_key_mismatch", 400,
     "The header `Idempotency-Key` and the key in the body (`requestId`, `idempotencyKey`) differ.",
     "Send one of them, or the same in both."},
    {"invalid_header", 400, "A header has an invalid value. `header` names it.", kCorrect},
    {"invalid_parameter", 400,
     "A parameter of the path or the query is missing, unknown, repeated, or has an invalid value. "
     "`parameter` names it.",
     kCorrect},
    {"invalid_transfer", 400, "An amount or an id is not positive, or payer and payee are the same.", kCorrect},
    {"malformed_request", 400, "The bytes are not an HTTP request.", kCorrect},
    {"nul_in_text", 400, "A text has a NUL character, which cannot be stored.", kCorrect},
    {"request_id_required", 400, "The request has neither `requestId` nor the header `Idempotency-Key`.",
     "Send one, so that the request can be repeated safely."},
    {"too_many_items", 400, "A batch has more than 1,000 items.", "Send several batches."},
    {"too_many_parameters", 400, "The query has too many parameters.", kCorrect},
    {"unknown_chain", 400, "No chain with this `chainId` is configured.", "`GET /api/v1/chains` lists them."},
    {"unknown_event_id", 400,
     "`Last-Event-ID` is beyond the end of the log: the database was restored to an earlier state, or the id is of "
     "another installation. `newest` is the newest event.",
     "Start again without the id, or with 0 for everything that the log still has."},
    {"unknown_signer", 400, "The node has no key for this signer.", "`GET /api/v1/signers` lists them."},

    {"api_key_expired", 401, "The API key has expired.", "Use another key."},
    {"api_key_revoked", 401, "The API key was revoked.", "Use another key."},
    {"bad_api_key", 401, "The API key is unknown or malformed.", "Check the key."},
    {"no_api_key", 401, "The route needs an API key and the request has none.",
     "Send `Authorization: Bearer <key>`; `fencepost apikey create` makes a key."},

    {"guild_not_allowed", 403, "The API key is restricted to other guilds.", "Use another key."},
    {"insufficient_scope", 403, "The API key does not have the scope that the route needs. `scope` names it.",
     "Use another key."},
    {"signer_not_allowed", 403, "The API key is restricted to other signers.", "Use another key."},

    {"no_such_account", 404, "The member has no account in this guild.", "Check the ids."},
    {"no_such_path", 404, "No route has this path.", "See `/openapi.json`."},
    {"no_such_signer", 404, "The node does not serve this signer on this chain.", "`GET /api/v1/signers` lists them."},
    {"no_such_transfer", 404, "There is no such transfer, or the API key may not see it.", "Check the id."},
    {"no_such_tx", 404, "There is no such transaction, or the API key may not see it.", "Check the id."},

    {"method_not_allowed", 405,
     "The path does not serve this method. The header `Allow` lists the methods that it serves.", kCorrect},
    {"request_timeout", 408, "The request did not arrive in time.", "Send it again."},

    {"audit_running", 409, "An audit is already running on this node.", "Try again after `Retry-After`."},
    {"idempotency_conflict", 409, "This idempotency key was used for another request. `transferId` names its transfer.",
     "Use a new key for a new request."},
    {"nonce_taken", 409, "A transaction already has this nonce. `txId` names it.", "Cancel that transaction instead."},
    {"nonce_unused", 409, "Fencepost has not assigned this nonce yet, so there is no gap to fill.",
     "Nothing happened. Check the nonce."},
    {"not_cancellable", 409, "The transfer is already approved, completed or rejected. `transferStatus` says which.",
     "Nothing happened."},
    {"not_leader", 409, "Another node leads this signer. `leader` is its URL, where known.",
     "Nothing happened. Send the request to that node, or try again after `Retry-After`."},
    {"request_conflict", 409, "This `requestId` was used for another payload. `txId` names the transaction.",
     "Use a new `requestId` for a new request."},
    {"signer_needs_reconcile", 409,
     "The chain has seen more transactions of this signer than Fencepost sent, so nothing more is sent.",
     "An operator finds out why, then calls `accept-reconcile`."},
    {"tx_id_taken", 409, "A forwarded request has the id of another transaction.", kAskOperator},
    {"wrong_state", 409, "The transaction's state does not allow this operation. `state` names the state.",
     "Nothing happened. Read the transaction again."},

    {"body_too_large", 413, "The body is over `http.max_body_bytes`.", "Send a smaller body, or raise the limit."},

    {"cooldown", 422, "The payer has to wait after the last transfer. `until` is the end of the wait.",
     "Nothing happened. Try again after `Retry-After`."},
    {"daily_limit", 422, "The amount is more than the payer may still transfer today (`used` of `limit`).",
     "Nothing happened. The limit resets at midnight UTC."},
    {"fee_overflow", 422, "The fee that a cancel needs does not fit 256 bits.", kAskOperator},
    {"gas_too_high", 422, "The estimated gas does not fit 63 bits.", kCorrect},
    {"hash_mismatch", 422,
     "The transaction with this hash differs from the one that Fencepost built. `differsIn` says in what.",
     "Nothing happened. Check the hash."},
    {"hash_unknown", 422, "The chain does not know the transaction with this hash, so it cannot be checked.",
     "Nothing happened. Try again when the chain has it."},
    {"insufficient_balance", 422, "The balance is too low (`balance`, `required`).", "Nothing happened."},
    {"insufficient_funds", 422, "The signer cannot pay for the transaction.", "Nothing happened. Fund the signer."},
    {"no_dynamic_fees", 422, "The chain has no base fee.", "Give `gasPrice` instead of `maxFeePerGas`."},
    {"rpc_error", 422, "The chain's endpoint answered with an error. `detail` is its message.", "Nothing happened."},
    {"supply_overflow", 422, "The guild's supply would not fit 64 bits.", "Nothing happened."},
    {"would_revert", 422, "The call would revert. `revertReason` and `revertData` say why.",
     "Nothing happened. Give `gas` to send it anyway."},

    {"rate_limited", 429, "Too many requests with this API key, or too many unknown keys from this address.", kWait},
    {"header_too_large", 431, "The request's head is over `http.max_header_bytes`.", kCorrect},

    {"internal", 500, "Fencepost failed unexpectedly. The log has the details under `httpRequestId`.",
     "The request may have been carried out: repeat it with the same `requestId` or idempotency key. Report the "
     "error."},
    {"unsupported_transfer_encoding", 501, "The only `Transfer-Encoding` served is `chunked`.", kCorrect},

    {"account_locked", 503, "Another database session holds a lock on one of the accounts.", kWait},
    {"bad_fee_quote", 503, "The chain quotes a fee whose cap does not fit 256 bits.", "Nothing happened."},
    {"bad_rpc_result", 503, "The chain's endpoint sent a malformed or unexpected answer.",
     "Nothing happened. Try again."},
    {"busy", 503, "Too many requests are waiting.", kWait},
    {"database_busy", 503, "No database connection became free in time.", kWait},
    {"database_error", 503, "The database could not run the statement now: a lock, a restart or a lack of resources.",
     "Nothing happened. Try again."},
    {"database_unavailable", 503, "The database cannot be reached.", kWait},
    {"fees_unknown", 503, "The chain's endpoint did not report its current fees.", "Nothing happened. Try again."},
    {"not_ready", 503, "The node is starting or stopping, or its database is unreachable or not migrated.", kWait},
    {"outcome_unknown", 503,
     "The request may have been carried out: the answer of the database or of the leader was lost.",
     "Repeat the request with the same `requestId` or idempotency key."},
    {"rpc_unavailable", 503, "No endpoint of the chain answered.", "Nothing happened. Try again."},
    {"stopping", 503, "The node is stopping.", kWait},
    {"too_many_connections", 503, "The server has reached `http.max_connections`.", kWait},
    {"tx_locked", 503, "Another database session holds a lock on the transaction or on its signer.",
     "Nothing happened. Try again, or end that session."},
    {"bad_version", 505, "The request is neither HTTP/1.1 nor HTTP/1.0.", kCorrect},
};

}  // namespace

std::span<const ErrorCode> error_codes() {
  return kCodes;
}

}  // namespace fencepost::http

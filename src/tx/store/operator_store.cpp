#include "tx/store/operator_store.hpp"

#include "pg/bytes.hpp"
#include "pg/error.hpp"
#include "tx/store/fence.hpp"

namespace fencepost::tx {

using pg::Statement;

namespace {

// $1 … $9 of every statement here: node, chain, signer, token, tx, action, reason, actor, detail.
#define FENCEPOST_HELD                                                                                            \
  "held AS MATERIALIZED ( SELECT l.fencing_token FROM signer_lease AS l WHERE l.chain_id = $2 AND l.signer = $3 " \
  "AND l.owner_node = $1 AND l.fencing_token = $4 AND l.expires_at > clock_timestamp() )"
#define FENCEPOST_AUDIT(done)                                                                                     \
  "audit AS ( INSERT INTO operator_action (chain_id, signer, tx_id, action, reason, actor, node, detail) SELECT " \
  "$2, $3, $5::uuid, $6, $7, $8, $1, $9::jsonb FROM " done " )"
#define FENCEPOST_WHY "$6 || ' by ' || $8 || ': ' || $7"
#define FENCEPOST_HISTORY(done)                                                                                \
  "logged AS ( INSERT INTO event (subject, from_state, to_state, sub_state, node, fencing_token, why) SELECT " \
  "'tx/' || tx_id, from_state, state, sub_state, $1, $4, " FENCEPOST_WHY " FROM " done " )"
#define FENCEPOST_OUTCOME(done)                                                                     \
  "SELECT CASE WHEN NOT EXISTS (SELECT FROM held) THEN 'fenced' WHEN NOT EXISTS (SELECT FROM " done \
  ") THEN 'moved' ELSE 'done' END AS outcome"

pg::Params params_of(const std::string& node, const OperatorAct& act) {
  return pg::Params::of(node, act.lease.key.chain_id, act.lease.key.signer, act.lease.fencing_token, act.tx_id,
                        act.action, act.reason, act.actor, act.detail);
}

// Turns a lock timeout into an error that the caller may retry: the whole batch was rolled back.
awaitable<pg::ResultSet> run_or_refuse(pg::Pool& pool, pg::Batch batch) {
  std::string cause;
  try {
    co_return co_await run_fenced(pool, std::move(batch));
  } catch (const pg::QueryError& error) {
    if (!error.is_lock_timeout()) throw;
    cause = error.error().to_string();
  }
  throw Exception(unavailable("tx_locked",
                              "another database session holds a lock on the transaction or on the signer's nonces; "
                              "nothing was changed: retry, or end that session")
                      .because(std::move(cause))
                      .after(std::chrono::seconds(1)));
}

// Requires: act.tx_id.
awaitable<StepOutcome> write_row(pg::Pool& pool, const std::string& node, const OperatorAct& act,
                                 const Statement& statement, pg::Params params) {
  FencedRows rows;
  rows.add(act.lease, *act.tx_id);
  auto batch = fence_rows(node, rows);
  batch.add_params(statement, std::move(params));
  const auto answer = co_await run_or_refuse(pool, std::move(batch));
  co_return read_outcome(answer.one());
}

awaitable<pg::ResultSet> write_cursor(pg::Pool& pool, const std::string& node, const OperatorAct& act,
                                      const Statement& statement, pg::Params params) {
  auto batch = fence_cursors(node, FencedLeases({act.lease}));
  batch.add_params(statement, std::move(params));
  co_return co_await run_or_refuse(pool, std::move(batch));
}

}  // namespace

constexpr Statement kRebroadcast{"tx_operator_rebroadcast", R"(
  WITH )" FENCEPOST_HELD R"(,
  done AS (
    UPDATE tx_open AS t
       SET state = $11,
           sub_state = CASE WHEN $10 = 'STUCK' THEN NULL ELSE t.sub_state END,
           next_resubmit_at = clock_timestamp(),
           first_submitted_at = CASE WHEN $10 = 'STUCK' THEN clock_timestamp() ELSE t.first_submitted_at END,
           fencing_token = $4,
           updated_at = clock_timestamp()
      FROM held
     WHERE t.tx_id = $5::uuid
       AND t.state = $10
       AND t.receipt_block IS NULL
    RETURNING t.tx_id, $10::text AS from_state, t.state, t.sub_state
  ),
  )" FENCEPOST_HISTORY("done") "," FENCEPOST_AUDIT("done") FENCEPOST_OUTCOME("done")};

awaitable<StepOutcome> rebroadcast_now(pg::Pool& pool, std::string node, OperatorAct act, TxState from, TxState to) {
  auto params = params_of(node, act);
  params.add(kManagedTx.name(from)).add(kManagedTx.name(to));
  co_return co_await write_row(pool, node, act, kRebroadcast, std::move(params));
}

constexpr Statement kRecord{"tx_operator_record", R"(
  WITH )" FENCEPOST_HELD R"(,
  done AS (
    UPDATE tx_open AS t
       SET state = 'TRACKING',
           sub_state = 'recorded',
           tx_hash = $11,
           last_receipt_check = NULL,
           first_submitted_at = clock_timestamp(),
           next_resubmit_at = NULL,
           fencing_token = $4,
           updated_at = clock_timestamp()
      FROM held
     WHERE t.tx_id = $5::uuid
       AND t.state = $10
       AND t.receipt_block IS NULL
       AND NOT EXISTS (SELECT FROM tx_attempt AS a WHERE a.chain_id = $2 AND a.tx_hash = $11)
    RETURNING t.tx_id, t.chain_id, $10::text AS from_state, t.state, t.sub_state
  ),
  attempt AS (
    INSERT INTO tx_attempt (chain_id, tx_hash, tx_id, attempt, kind, outcome, fencing_token)
    SELECT d.chain_id, $11, d.tx_id,
           1 + coalesce((SELECT max(a.attempt) FROM tx_attempt AS a WHERE a.tx_id = d.tx_id), 0),
           'recorded', 'unknown', $4
      FROM done AS d
  ),
  )" FENCEPOST_HISTORY("done") "," FENCEPOST_AUDIT("done") FENCEPOST_OUTCOME("done")};

awaitable<StepOutcome> record_attempt(pg::Pool& pool, std::string node, OperatorAct act, TxState from,
                                      std::string tx_hash) {
  auto params = params_of(node, act);
  params.add(kManagedTx.name(from)).add(tx_hash);
  co_return co_await write_row(pool, node, act, kRecord, std::move(params));
}

constexpr Statement kCancel{"tx_operator_cancel", R"(
  WITH )" FENCEPOST_HELD R"(,
  done AS (
    UPDATE tx_open AS t
       SET state = 'TRACKING',
           sub_state = 'cancelling',
           tx_hash = $12,
           first_submitted_at = clock_timestamp(),
           last_submit_at = clock_timestamp(),
           next_resubmit_at = clock_timestamp(),
           fencing_token = $4,
           updated_at = clock_timestamp()
      FROM held
     WHERE t.tx_id = $5::uuid
       AND t.state = $10
       AND t.tx_hash IS NOT DISTINCT FROM $11
       AND t.receipt_block IS NULL
    RETURNING t.tx_id, t.chain_id, $10::text AS from_state, t.state, t.sub_state
  ),
  attempt AS (
    INSERT INTO tx_attempt (chain_id, tx_hash, tx_id, attempt, kind, raw, fees, fencing_token)
    SELECT d.chain_id, $12, d.tx_id,
           1 + coalesce((SELECT max(a.attempt) FROM tx_attempt AS a WHERE a.tx_id = d.tx_id), 0),
           'cancel', $13::bytea, $14::jsonb, $4
      FROM done AS d
  ),
  )" FENCEPOST_HISTORY("done") "," FENCEPOST_AUDIT("done") FENCEPOST_OUTCOME("done")};

awaitable<StepOutcome> store_cancel(pg::Pool& pool, std::string node, OperatorAct act, Claim cancel) {
  auto params = params_of(node, act);
  params.add(kManagedTx.name(cancel.from))
      .add(cancel.previous_hash)
      .add(cancel.tx_hash)
      .add(pg::to_bytes(cancel.raw))
      .add(cancel.fees);
  co_return co_await write_row(pool, node, act, kCancel, std::move(params));
}

constexpr Statement kFill{"tx_operator_fill", R"(
  WITH )" FENCEPOST_HELD R"(,
  place AS MATERIALIZED (
    SELECT c.chain_id, c.signer, c.next_creation
      FROM signer_nonce_cursor AS c, held
     WHERE c.chain_id = $2
       AND c.signer = $3
       AND c.next_nonce > $10
       AND NOT EXISTS (SELECT FROM managed_tx AS t WHERE t.chain_id = $2 AND t.signer = $3 AND t.nonce = $10)
  ),
  moved AS (
    UPDATE signer_nonce_cursor AS c
       SET next_creation = c.next_creation + 1,
           first_waiting = c.first_waiting + CASE WHEN c.first_waiting = c.next_creation THEN 1 ELSE 0 END,
           first_unmined = least(c.first_unmined, $10),
           updated_at = clock_timestamp()
      FROM place AS p
     WHERE c.chain_id = p.chain_id AND c.signer = p.signer
  ),
  done AS (
    INSERT INTO tx_open (chain_id, signer, nonce, tx_id, state, sub_state, next_resubmit_at, fencing_token)
    SELECT p.chain_id, p.signer, $10, $5::uuid, 'ALLOCATED', 'gap_fill', clock_timestamp(), $4
      FROM place AS p
    RETURNING tx_id, chain_id, signer, nonce, state, sub_state
  ),
  recorded AS (
    INSERT INTO managed_tx (tx_id, chain_id, signer, request_id, creation_seq, nonce, payload, payload_hash, gas_limit)
    SELECT $5::uuid, p.chain_id, p.signer, NULL, p.next_creation, $10, $11::jsonb, $12, $13
      FROM place AS p
  ),
  logged AS (
    INSERT INTO event (subject, type, to_state, sub_state, node, fencing_token, why, data)
    SELECT 'tx/' || tx_id, 'TxAccepted', state, sub_state, $1, $4, )" FENCEPOST_WHY R"(,
           jsonb_build_object('txId', tx_id, 'chainId', chain_id, 'signer', signer, 'requestId', NULL, 'nonce', nonce)
      FROM done
  ),
  )" FENCEPOST_AUDIT("done") FENCEPOST_OUTCOME("done")};

awaitable<StepOutcome> fill_gap(pg::Pool& pool, std::string node, OperatorAct act, GapFill fill) {
  act.tx_id = fill.tx_id;
  auto params = params_of(node, act);
  params.add(fill.nonce).add(fill.payload).add(pg::to_bytes(fill.payload_hash)).add(fill.gas_limit);
  const auto rows = co_await write_cursor(pool, node, act, kFill, std::move(params));
  co_return read_outcome(rows.one());
}

constexpr Statement kAccept{"tx_operator_accept", R"(
  WITH )" FENCEPOST_HELD R"(,
  done AS (
    UPDATE signer_nonce_cursor AS c
       SET next_nonce = greatest(c.next_nonce, $10),
           needs_reconcile = false,
           chain_nonce = $10,
           chain_nonce_at = clock_timestamp(),
           fencing_token = $4,
           updated_at = clock_timestamp()
      FROM held
     WHERE c.chain_id = $2
       AND c.signer = $3
    RETURNING c.next_nonce
  ),
  )" FENCEPOST_AUDIT("done") "SELECT next_nonce FROM done"};

awaitable<std::optional<std::int64_t>> accept_chain_nonce(pg::Pool& pool, std::string node, OperatorAct act,
                                                          std::int64_t chain_nonce) {
  auto params = params_of(node, act);
  params.add(chain_nonce);
  const auto rows = co_await write_cursor(pool, node, act, kAccept, std::move(params));
  if (rows.empty()) co_return std::nullopt;
  co_return rows.one().get<std::int64_t>("next_nonce");
}

}  // namespace fencepost::tx

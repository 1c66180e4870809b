#include "tx/store/cursor_reset_store.hpp"

#include "tx/store/fence.hpp"
#include "tx/store/operator_write.hpp"
#include "tx/store/sql_parts.hpp"

namespace fencepost::tx {

using pg::Statement;

namespace {

constexpr std::size_t kMostHashes = 4 * kMostReset;

constexpr Statement kPlan{"tx_reset_plan", R"(
  SELECT clock_timestamp()::text AS read_at, c.next_nonce,
         EXISTS (SELECT
                   FROM tx_open AS o
                  WHERE o.chain_id = $1
                    AND o.signer = $2
                    AND o.nonce >= $3
                    AND o.last_submit_at > clock_timestamp() - make_interval(secs => $4 / 1000.0)) AS sending
    FROM signer_nonce_cursor AS c
   WHERE c.chain_id = $1
     AND c.signer = $2
     AND c.next_nonce IS NOT NULL)"};

}  // namespace

const Statement sql::kNonceHolders{"tx_nonce_holders", R"(
  SELECT m.tx_id, m.nonce, coalesce(o.receipt_block, e.receipt_block) AS receipt_block,
         coalesce(o.receipt_hash, e.receipt_hash) AS receipt_hash
    FROM managed_tx AS m
    LEFT JOIN LATERAL (SELECT o.receipt_block, o.receipt_hash FROM tx_open AS o WHERE o.tx_id = m.tx_id LIMIT 1) AS o
           ON true
    LEFT JOIN LATERAL (SELECT e.receipt_block, e.receipt_hash FROM tx_ended AS e WHERE e.tx_id = m.tx_id LIMIT 1) AS e
           ON true
   WHERE m.chain_id = $1
     AND m.signer = $2
     AND m.nonce >= $3
   ORDER BY m.nonce
   LIMIT $4)"};

const Statement sql::kNonceAttempts{"tx_nonce_attempts", R"(
  SELECT a.tx_hash
    FROM unnest($1::uuid[]) AS w(tx_id)
   CROSS JOIN LATERAL (SELECT a.tx_hash FROM tx_attempt AS a WHERE a.tx_id = w.tx_id LIMIT 1000) AS a
   LIMIT $2)"};

awaitable<std::optional<ResetPlan>> plan_reset(pg::Pool& pool, SignerKey key, std::int64_t next_nonce,
                                               std::chrono::milliseconds patience) {
  const auto cursor = co_await pool.query(kPlan, key.chain_id, key.signer, next_nonce, patience.count());
  if (cursor.empty()) co_return std::nullopt;
  ResetPlan plan{.read_at = cursor.one().get<std::string>("read_at"),
                 .next_nonce = cursor.one().get<std::int64_t>("next_nonce"),
                 .sending = cursor.one().get<bool>("sending"),
                 .holders = {},
                 .hashes = {}};
  std::vector<Uuid> ids;
  const auto holders = co_await pool.query(sql::kNonceHolders, key.chain_id, key.signer, next_nonce, kMostReset + 1);
  for (const auto row : holders) {
    ids.push_back(row.get<Uuid>("tx_id"));
    plan.holders.push_back({.tx_id = ids.back(),
                            .nonce = row.get<std::int64_t>("nonce"),
                            .receipt_block = row.get<std::optional<std::int64_t>>("receipt_block"),
                            .receipt_hash = row.get<std::optional<std::string>>("receipt_hash")});
  }
  for (const auto row : co_await pool.query(sql::kNonceAttempts, ids, kMostHashes + 1)) {
    plan.hashes.push_back(row.get<std::string>("tx_hash"));
  }
  co_return plan;
}

// $1 node, $2 chain, $3 signer, $4 the lowest nonce. Claims and ends lock these rows without the cursor.
const Statement sql::kLockHolders{"tx_open_lock_from", R"(
  SELECT t.tx_id
    FROM tx_open AS t
   WHERE t.chain_id = $2
     AND t.signer = $3
     AND t.nonce >= $4
     AND $1 = (SELECT l.owner_node FROM signer_lease AS l WHERE l.chain_id = $2 AND l.signer = $3)
   ORDER BY t.nonce
     FOR NO KEY UPDATE OF t)"};
// Violations of finality are reported without the fence.
const Statement sql::kLockEndedHolders{"tx_ended_lock_from", R"(
  SELECT e.tx_id
    FROM tx_ended AS e
   WHERE e.tx_id = ANY (ARRAY(SELECT m.tx_id
                                FROM managed_tx AS m
                               WHERE m.chain_id = $2 AND m.signer = $3 AND m.nonce >= $4))
     AND $1 = (SELECT l.owner_node FROM signer_lease AS l WHERE l.chain_id = $2 AND l.signer = $3)
   ORDER BY e.tx_id
     FOR NO KEY UPDATE OF e)"};

// $10 the new cursor, $11 the transactions of the plan, $12 their hashes, $13 when the plan was read.
const Statement sql::kResetCursor{"tx_operator_reset_cursor", R"(
  WITH )" FENCEPOST_HELD R"(,
  holder AS MATERIALIZED (
    SELECT m.ctid AS record_row, m.tx_id, m.nonce, o.row_id AS open_row, o.state, o.sub_state, o.retry_count, o.tx_hash,
           o.first_submitted_at, o.last_submit_at, e.row_id AS ended_row, e.state AS ended_state,
           e.tx_hash AS ended_hash, e.receipt_block, e.receipt_hash,
           e.receipt_block IS NOT NULL AND e.sub_state IS DISTINCT FROM 'finality_violated' AS undone
      FROM managed_tx AS m
     CROSS JOIN held
      LEFT JOIN LATERAL (SELECT o.ctid AS row_id, o.* FROM tx_open AS o WHERE o.tx_id = m.tx_id LIMIT 1) AS o ON true
      LEFT JOIN LATERAL (SELECT e.ctid AS row_id, e.* FROM tx_ended AS e WHERE e.tx_id = m.tx_id LIMIT 1) AS e ON true
     WHERE m.chain_id = $2
       AND m.signer = $3
       AND m.nonce >= $10
  ),
  done AS MATERIALIZED (  -- the cursor, if all is as in the plan
    SELECT c.ctid AS cursor_row
      FROM signer_nonce_cursor AS c
     CROSS JOIN held
     WHERE c.chain_id = $2
       AND c.signer = $3
       AND c.next_nonce > $10
       AND (SELECT count(*) FROM holder) = cardinality($11::uuid[])
       AND (SELECT count(*) FROM holder JOIN unnest($11::uuid[]) AS p(tx_id) USING (tx_id)) = cardinality($11::uuid[])
       AND (SELECT count(*)
              FROM holder AS h
             CROSS JOIN LATERAL (SELECT FROM tx_attempt AS a WHERE a.tx_id = h.tx_id LIMIT 1000) AS a) = cardinality($12::text[])
       AND NOT EXISTS (SELECT FROM holder AS h WHERE h.last_submit_at >= $13::timestamptz)
  ),
  gone AS MATERIALIZED (SELECT h.* FROM holder AS h CROSS JOIN done),
  moved AS (
    UPDATE signer_nonce_cursor AS c
       SET next_nonce = $10,
           first_unmined = least(c.first_unmined, $10),
           chain_nonce = $10,
           chain_nonce_at = clock_timestamp(),
           needs_reconcile = false,
           reconcile_reason = NULL,
           gap_nonce = NULL,
           fencing_token = $4,
           updated_at = clock_timestamp()
      FROM done AS d
     WHERE c.ctid = d.cursor_row
    RETURNING c.signer
  ),
  closed AS (
    DELETE FROM tx_open
     WHERE ctid = ANY (ARRAY(SELECT open_row FROM gone WHERE open_row IS NOT NULL))
    RETURNING tx_id
  ),
  released AS (
    UPDATE managed_tx AS m
       SET nonce = NULL,
           released_nonce = g.nonce
      FROM gone AS g
     WHERE m.ctid = g.record_row
       AND m.nonce = g.nonce
    RETURNING m.tx_id
  ),
  ended AS (
    INSERT INTO tx_ended (tx_id, chain_id, state, sub_state, error_message, retry_count, tx_hash, first_submitted_at,
                          last_submit_at, fencing_token)
    SELECT tx_id, $2, 'FAILED_FINAL', CASE WHEN sub_state = 'external' THEN sub_state ELSE 'given_up' END,
           $6 || ': ' || $7, retry_count, tx_hash, first_submitted_at, last_submit_at, $4
      FROM gone
     WHERE open_row IS NOT NULL
  ),
  dropped AS (
    DELETE FROM tx_receipt
     WHERE tx_id = ANY (ARRAY(SELECT tx_id FROM gone WHERE open_row IS NOT NULL))
  ),
  marked AS (
    UPDATE tx_ended AS e
       SET sub_state = 'finality_violated',
           updated_at = clock_timestamp()
      FROM gone AS g
     WHERE e.ctid = g.ended_row
       AND g.undone
    RETURNING e.tx_id
  ),
  logged AS (
    INSERT INTO event (subject, type, from_state, to_state, sub_state, node, fencing_token, why, data)
    SELECT 'tx/' || g.tx_id,
           CASE WHEN g.undone THEN 'TxFinalityViolated'
                WHEN g.sub_state IS DISTINCT FROM 'external' THEN 'TxFailed'
           END,
           coalesce(g.state, g.ended_state), coalesce(g.ended_state, 'FAILED_FINAL'),
           CASE WHEN g.undone THEN 'finality_violated'
                WHEN g.sub_state = 'external' THEN 'external'
                ELSE 'given_up'
           END,
           $1, $4, )" FENCEPOST_WHY R"(,
           CASE WHEN g.undone
                THEN jsonb_build_object('txId', g.tx_id, 'chainId', $2, 'signer', $3, 'nonce', g.nonce,
                                        'txHash', g.ended_hash, 'blockNumber', g.receipt_block,
                                        'blockHash', g.receipt_hash)
                WHEN g.sub_state IS DISTINCT FROM 'external'
                THEN jsonb_build_object('txId', g.tx_id, 'chainId', $2, 'signer', $3, 'nonce', NULL,
                                        'reason', 'given_up',
                                        'detail', 'an operator moved the cursor from above nonce ' || g.nonce
                                                  || ' down to ' || $10::bigint)
           END
      FROM gone AS g
     WHERE g.open_row IS NOT NULL
        OR g.undone
     ORDER BY g.nonce
  ),
  )" FENCEPOST_AUDIT("done") R"(
  SELECT CASE WHEN NOT EXISTS (SELECT FROM held) THEN 'fenced' WHEN NOT EXISTS (SELECT FROM done) THEN 'moved'
              ELSE 'done'
         END AS outcome,
         (SELECT count(*) FROM closed) AS given_up,
         (SELECT count(*) FROM released) AS released
   WHERE (SELECT tx_wrote_all((SELECT count(*) FROM done), (SELECT count(*) FROM moved)))
     AND (SELECT tx_wrote_all((SELECT count(open_row) FROM gone), (SELECT count(*) FROM closed)))
     AND (SELECT tx_wrote_all((SELECT count(*) FROM gone), (SELECT count(*) FROM released)))
     AND (SELECT tx_wrote_all((SELECT count(*) FROM gone WHERE undone), (SELECT count(*) FROM marked))))"};

pg::Batch reset_statements(const std::string& node, const OperatorAct& act, std::int64_t next_nonce,
                           const ResetPlan& plan) {
  const auto& key = act.lease.key;
  auto batch = fence_cursors(node, FencedLeases({act.lease}));
  batch.add(sql::kLockHolders, node, key.chain_id, key.signer, next_nonce);
  batch.add(sql::kLockEndedHolders, node, key.chain_id, key.signer, next_nonce);
  std::vector<Uuid> ids;
  for (const auto& holder : plan.holders) ids.push_back(holder.tx_id);
  auto params = params_of(node, act);
  params.add(next_nonce).add(ids).add(plan.hashes).add(plan.read_at);
  batch.add_params(sql::kResetCursor, std::move(params));
  return batch;
}

awaitable<ResetDone> reset_cursor(pg::Pool& pool, std::string node, OperatorAct act, std::int64_t next_nonce,
                                  ResetPlan plan) {
  const auto rows = co_await run_or_refuse(pool, reset_statements(node, act, next_nonce, plan));
  const auto row = rows.one();
  co_return ResetDone{.outcome = read_outcome(row),
                      .given_up = row.get<std::int64_t>("given_up"),
                      .released = row.get<std::int64_t>("released")};
}

}  // namespace fencepost::tx

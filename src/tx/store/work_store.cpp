#include "tx/store/work_store.hpp"

#include "tx/store/read_row.hpp"

namespace fencepost::tx {

using pg::Statement;

namespace {

#define FENCEPOST_MATCH_COLUMNS                                                                           \
  "t.chain_id, t.signer, l.fencing_token AS token, t.tx_id, t.state, t.nonce, t.sub_state, a.tx_hash AS " \
  "attempt_hash, a.kind AS attempt_kind, t.receipt_hash, t.told_block, t.told_hash, t.withdrawn, "        \
  "extract(epoch FROM clock_timestamp() - t.first_submitted_at)::double precision AS since_submit"

Match read_match(const pg::Row& row) {
  return {.lease = read_lease(row),
          .tx_id = row.get<Uuid>("tx_id"),
          .state = read_state(row),
          .nonce = row.get<std::int64_t>("nonce"),
          .sub_state = read_sub_state(row),
          .attempt_hash = row.get<std::string>("attempt_hash"),
          .attempt_kind = read_attempt_kind(row, "attempt_kind"),
          .receipt_hash = row.get<std::optional<std::string>>("receipt_hash"),
          .announced = read_announced(row),
          .withdrawn = row.get<bool>("withdrawn"),
          .since_submit = read_seconds(row, "since_submit")};
}

std::vector<Match> read_matches(const pg::ResultSet& rows) {
  std::vector<Match> out;
  for (const auto row : rows) out.push_back(read_match(row));
  return out;
}

}  // namespace

// A lower nonce that waits for its retry delays the higher ones, which could not be mined before it. Signers are served
// by due time, and each signer's transactions from the lowest nonce up, even where the limit cuts them off.
// - The waiting nonces are collected once, as a JSON object by signer: a lookup for each due row would read the whole
//   backlog of its signer, and the plan of a join would depend on the statistics.
// - statement_timestamp(), because clock_timestamp() may change from row to row and so cannot use an index.
// - state || '' makes the planner read a signer's rows by the index of its nonces. While the planner expects no due
// rows,
//   the index of due rows, which holds those of all signers, looks equally cheap to it.
const Statement sql::kDueSubmits{"tx_due_submits", R"(
  WITH held AS MATERIALIZED (
    SELECT coalesce(jsonb_object_agg(h.signer, h.nonce), '{}') AS lowest
      FROM (SELECT t.signer, min(t.nonce) AS nonce
              FROM managed_tx AS t
             WHERE t.chain_id = $2
               AND t.state = 'ALLOCATED'
               AND t.receipt_block IS NULL
               AND t.next_resubmit_at > statement_timestamp()
             GROUP BY t.signer) AS h
  ),
  turn AS MATERIALIZED (
    SELECT d.signer, d.token, d.held_from, min(d.next_resubmit_at) AS since
      FROM (SELECT t.signer, l.token, h.nonce AS held_from, t.next_resubmit_at
              FROM managed_tx AS t
             CROSS JOIN LATERAL (SELECT (held.lowest ->> t.signer)::bigint AS nonce FROM held LIMIT 1) AS h
             CROSS JOIN LATERAL (SELECT l.fencing_token AS token FROM signer_lease AS l
                                  WHERE l.chain_id = t.chain_id AND l.signer = t.signer
                                    AND l.owner_node = $1 AND l.expires_at > clock_timestamp()
                                  LIMIT 1) AS l
             WHERE t.chain_id = $2
               AND t.state = 'ALLOCATED'
               AND t.receipt_block IS NULL
               AND t.next_resubmit_at <= statement_timestamp()
               AND (h.nonce IS NULL OR t.nonce < h.nonce)
             ORDER BY t.next_resubmit_at
             LIMIT $3) AS d
     GROUP BY d.signer, d.token, d.held_from
  )
  SELECT t.chain_id, t.signer, turn.token, t.tx_id, t.nonce, t.payload, t.gas_limit, t.retry_count,
         t.tx_hash, '0x' || encode(a.raw, 'hex') AS raw, a.outcome, t.sub_state,
         coalesce(a.attempt, 0) AS attempts, coalesce(a.claims, 0) AS claims
    FROM turn
   CROSS JOIN LATERAL (SELECT *
                         FROM managed_tx AS t
                        WHERE t.chain_id = $2
                          AND t.signer = turn.signer
                          AND t.state IN ('ALLOCATED', 'TRACKING', 'STUCK')
                          AND t.receipt_block IS NULL
                          AND t.state || '' = 'ALLOCATED'
                          AND t.next_resubmit_at <= statement_timestamp()
                          AND (turn.held_from IS NULL OR t.nonce < turn.held_from)
                        ORDER BY t.nonce
                        LIMIT $3) AS t
    LEFT JOIN LATERAL (SELECT * FROM tx_attempt AS a
                        WHERE a.chain_id = t.chain_id AND a.tx_hash = t.tx_hash
                        LIMIT 1) AS a ON true
   ORDER BY turn.since, t.signer, t.nonce
   LIMIT $3)"};

awaitable<std::vector<DueSubmit>> due_submits(pg::Pool& pool, std::string node, std::int64_t chain_id,
                                              std::size_t limit) {
  const auto rows = co_await pool.query(sql::kDueSubmits, node, chain_id, limit);
  std::vector<DueSubmit> out;
  for (const auto row : rows) {
    out.push_back({.lease = read_lease(row),
                   .tx_id = row.get<Uuid>("tx_id"),
                   .nonce = row.get<std::int64_t>("nonce"),
                   .payload = row.get<std::string>("payload"),
                   .gas_limit = row.get<std::int64_t>("gas_limit"),
                   .retry_count = row.get<std::int32_t>("retry_count"),
                   .tx_hash = row.get<std::optional<std::string>>("tx_hash"),
                   .raw = row.get<std::optional<std::string>>("raw"),
                   .outcome = read_attempt_outcome(row),
                   .sub_state = read_sub_state(row),
                   .attempts = row.get<std::int64_t>("attempts"),
                   .claims = row.get<std::int64_t>("claims")});
  }
  co_return out;
}

// LIMIT 1 makes the planner go from the hashes to the transactions, never the other way round, whatever the statistics.
const Statement sql::kMatchAttempts{"tx_match_attempts", R"(
  SELECT )" FENCEPOST_MATCH_COLUMNS R"(
    FROM unnest($3::text[]) AS hash
   CROSS JOIN LATERAL (SELECT * FROM tx_attempt AS a WHERE a.chain_id = $2 AND a.tx_hash = hash LIMIT 1) AS a
   CROSS JOIN LATERAL (SELECT * FROM managed_tx AS t WHERE t.tx_id = a.tx_id LIMIT 1) AS t
   CROSS JOIN LATERAL (SELECT *
                         FROM signer_lease AS l
                        WHERE l.chain_id = t.chain_id AND l.signer = t.signer
                        LIMIT 1) AS l
   WHERE t.state IN ('ALLOCATED', 'TRACKING', 'STUCK')
     AND l.owner_node = $1
     AND l.expires_at > clock_timestamp())"};

awaitable<std::vector<Match>> match_attempts(pg::Pool& pool, std::string node, std::int64_t chain_id,
                                             std::vector<std::string> hashes) {
  const auto rows = co_await pool.query(sql::kMatchAttempts, node, chain_id, hashes);
  co_return read_matches(rows);
}

const Statement sql::kStaleReceipts{"tx_stale_receipts", R"(
  WITH stale AS MATERIALIZED (
    SELECT t.*
      FROM managed_tx AS t
      JOIN signer_lease AS l
        ON l.chain_id = t.chain_id AND l.signer = t.signer
       AND l.owner_node = $1 AND l.expires_at > clock_timestamp()
     WHERE t.chain_id = $2
       AND t.state IN ('ALLOCATED', 'TRACKING', 'STUCK')
       AND t.receipt_block IS NULL
       AND t.tx_hash IS NOT NULL
       AND coalesce(t.last_receipt_check, CASE WHEN t.fencing_token = l.fencing_token THEN t.first_submitted_at END,
                    '-infinity') <= clock_timestamp() - make_interval(secs => $3 / 1000.0)
     LIMIT $4
  )
  SELECT )" FENCEPOST_MATCH_COLUMNS R"(
    FROM stale AS t
    JOIN signer_lease AS l ON l.chain_id = t.chain_id AND l.signer = t.signer
    JOIN tx_attempt AS a ON a.tx_id = t.tx_id
   ORDER BY t.signer, t.nonce, a.attempt)"};

awaitable<std::vector<Match>> stale_receipts(pg::Pool& pool, std::string node, std::int64_t chain_id,
                                             std::chrono::milliseconds stale, std::size_t limit) {
  const auto rows = co_await pool.query(sql::kStaleReceipts, node, chain_id, stale.count(), limit);
  co_return read_matches(rows);
}

// Not fenced and without a lock order, so it must not wait: it skips locked rows, which another session is updating.
const Statement sql::kNoteChecks{"tx_note_receipt_checks", R"(
  WITH noted AS MATERIALIZED (
    SELECT tx_id
      FROM managed_tx
     WHERE tx_id = ANY ($1::uuid[])
       AND receipt_block IS NULL
       FOR NO KEY UPDATE SKIP LOCKED
  )
  UPDATE managed_tx AS t
     SET last_receipt_check = clock_timestamp()
    FROM noted
   WHERE t.tx_id = noted.tx_id)"};

awaitable<> note_receipt_checks(pg::Pool& pool, std::vector<Uuid> tx_ids) {
  co_await pool.execute(sql::kNoteChecks, tx_ids);
}

MinedPlace place_of(const MinedTx& tx) {
  return {tx.block, tx.lease.key.signer, tx.nonce};
}

const Statement sql::kMinedBetween{"tx_mined_between", R"(
  SELECT t.chain_id, t.signer, l.fencing_token AS token, t.tx_id, t.state, t.nonce, t.tx_hash, a.kind AS attempt_kind,
         t.receipt ->> 'status' = '0x1' AS succeeded, t.receipt_block, t.receipt_hash, t.told_block,
         t.told_hash, extract(epoch FROM clock_timestamp() - t.created_at)::double precision AS age
    FROM managed_tx AS t
    JOIN signer_lease AS l
      ON l.chain_id = t.chain_id AND l.signer = t.signer
     AND l.owner_node = $1 AND l.expires_at > clock_timestamp()
    JOIN tx_attempt AS a ON a.chain_id = t.chain_id AND a.tx_hash = t.tx_hash
   WHERE t.chain_id = $2
     AND t.state IN ('TRACKING', 'STUCK')
     AND t.receipt_block >= $3
     AND (t.receipt_block, t.signer, t.nonce) > ($3, $4, $5)
     AND t.receipt_block <= $6
   ORDER BY t.receipt_block, t.signer, t.nonce
   LIMIT $7)"};

awaitable<std::vector<MinedTx>> mined_between(pg::Pool& pool, std::string node, std::int64_t chain_id, MinedPlace after,
                                              std::int64_t to, std::size_t limit) {
  const auto rows =
      co_await pool.query(sql::kMinedBetween, node, chain_id, after.block, after.signer, after.nonce, to, limit);
  std::vector<MinedTx> out;
  for (const auto row : rows) {
    out.push_back({.lease = read_lease(row),
                   .tx_id = row.get<Uuid>("tx_id"),
                   .state = read_state(row),
                   .nonce = row.get<std::int64_t>("nonce"),
                   .tx_hash = row.get<std::string>("tx_hash"),
                   .attempt_kind = read_attempt_kind(row, "attempt_kind"),
                   .succeeded = row.get<bool>("succeeded"),
                   .block = row.get<std::int64_t>("receipt_block"),
                   .block_hash = row.get<std::string>("receipt_hash"),
                   .announced = read_announced(row),
                   .age = read_seconds(row, "age").value_or(std::chrono::milliseconds(0))});
  }
  co_return out;
}

const Statement sql::kOpenHeads{"tx_open_heads", R"(
  SELECT l.chain_id, l.signer, l.fencing_token AS token, t.tx_id, t.state, t.nonce, t.sub_state, t.tx_hash, t.withdrawn,
         extract(epoch FROM clock_timestamp() - greatest(t.first_submitted_at, t.receipt_changed_at))::double precision
           AS since_submit,
         extract(epoch FROM clock_timestamp() - b.mined_at)::double precision AS since_head
    FROM signer_lease AS l
   CROSS JOIN LATERAL (SELECT *
                         FROM managed_tx AS t
                        WHERE t.chain_id = l.chain_id AND t.signer = l.signer
                          AND t.state IN ('ALLOCATED', 'TRACKING', 'STUCK')
                          AND t.receipt_block IS NULL
                        ORDER BY t.nonce
                        LIMIT 1) AS t
    LEFT JOIN LATERAL (SELECT coalesce(b.receipt_changed_at, b.confirmed_at, b.updated_at) AS mined_at
                         FROM managed_tx AS b
                        WHERE b.chain_id = t.chain_id AND b.signer = t.signer AND b.nonce < t.nonce
                        ORDER BY b.nonce DESC
                        LIMIT 1) AS b ON true
   WHERE l.owner_node = $1
     AND l.chain_id = $2
     AND l.expires_at > clock_timestamp())"};

awaitable<std::vector<OpenHead>> open_heads(pg::Pool& pool, std::string node, std::int64_t chain_id) {
  const auto rows = co_await pool.query(sql::kOpenHeads, node, chain_id);
  std::vector<OpenHead> out;
  for (const auto row : rows) {
    out.push_back({.lease = read_lease(row),
                   .tx_id = row.get<Uuid>("tx_id"),
                   .state = read_state(row),
                   .nonce = row.get<std::int64_t>("nonce"),
                   .sub_state = read_sub_state(row),
                   .tx_hash = row.get<std::optional<std::string>>("tx_hash"),
                   .withdrawn = row.get<bool>("withdrawn"),
                   .since_submit = read_seconds(row, "since_submit"),
                   .since_head = read_seconds(row, "since_head")});
  }
  co_return out;
}

}  // namespace fencepost::tx

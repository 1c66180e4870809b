#include "tx/store/attempt_store.hpp"

#include <span>

#include "pg/bytes.hpp"
#include "pg/halving.hpp"
#include "tx/store/read_row.hpp"
#include "tx/store/sql_parts.hpp"

namespace fencepost::tx {

using pg::Statement;

// Signing is deterministic: the same fees give the same bytes. A claim of the same bytes is the same attempt again. If
// they are the bytes of a rejected transaction, whose nonce and payload this one has, the attempt becomes this one's.
const Statement sql::kClaimAttempts{"tx_claim", R"(
  WITH claim AS MATERIALIZED (
    SELECT c.*, t.ctid AS row_id, clock_timestamp() AS at,
           coalesce(a.claims, 0) + 1 AS claims,
           CASE WHEN )" FENCEPOST_HELD_BY_US("c") R"( IS NOT true THEN 'fenced'
                WHEN t.chain_id = c.chain_id
                 AND t.signer = c.signer
                 AND t.state = c.from_state
                 AND t.tx_hash IS NOT DISTINCT FROM c.previous_hash
                 AND t.receipt_block IS NULL
                 AND (a.tx_id IS NULL OR a.tx_id = c.tx_id OR a.released)
                THEN 'done'
                ELSE 'moved'
           END AS outcome
      FROM unnest($2::bigint[], $3::text[], $4::bigint[], $5::uuid[], $6::text[], $7::text[], $8::text[], $9::text[],
                  $10::bytea[], $11::text[])
           WITH ORDINALITY
           AS c(chain_id, signer, token, tx_id, from_state, previous_hash, tx_hash, kind, raw, fees, ord)
      LEFT JOIN LATERAL )" FENCEPOST_LEASE_OF("c") R"( AS l ON true
      LEFT JOIN LATERAL (SELECT t.ctid, t.* FROM tx_open AS t WHERE t.tx_id = c.tx_id LIMIT 1) AS t ON true
      LEFT JOIN LATERAL (SELECT a.tx_id, a.claims,
                                CASE WHEN a.tx_id <> c.tx_id
                                     THEN (SELECT m.released_nonce IS NOT NULL
                                             FROM managed_tx AS m
                                            WHERE m.tx_id = a.tx_id)
                                END AS released
                           FROM tx_attempt AS a
                          WHERE a.chain_id = c.chain_id AND a.tx_hash = c.tx_hash
                          LIMIT 1) AS a ON true
  ),
  claimed AS (
    UPDATE tx_open AS t
       SET tx_hash = c.tx_hash,
           first_submitted_at = coalesce(t.first_submitted_at, c.at),
           last_submit_at = c.at,
           next_resubmit_at = c.at + make_interval(secs => $12 / 1000.0),
           fencing_token = c.token,
           updated_at = c.at
      FROM claim AS c
     WHERE t.ctid = c.row_id
       AND c.outcome = 'done'
    RETURNING t.tx_id
  ),
  stored AS (
    INSERT INTO tx_attempt (chain_id, tx_hash, tx_id, attempt, kind, raw, fees, fencing_token)
    SELECT c.chain_id, c.tx_hash, c.tx_id,
           CASE WHEN c.previous_hash IS NULL THEN 1  -- there is no attempt yet
                ELSE 1 + coalesce((SELECT max(a.attempt) FROM tx_attempt AS a WHERE a.tx_id = c.tx_id), 0)
           END,
           c.kind, c.raw, c.fees::jsonb, c.token
      FROM claim AS c
     WHERE c.outcome = 'done'
     ORDER BY c.ord
        ON CONFLICT (chain_id, tx_hash) DO UPDATE
           SET tx_id = excluded.tx_id,
               kind = excluded.kind,
               raw = excluded.raw,
               fees = excluded.fees,
               attempt = CASE WHEN tx_attempt.tx_id = excluded.tx_id AND tx_attempt.attempt = excluded.attempt - 1
                              THEN tx_attempt.attempt
                              ELSE excluded.attempt  -- it is the newest again
                         END,
               outcome = NULL,
               message = NULL,
               claims = tx_attempt.claims + 1,
               fencing_token = excluded.fencing_token
  )
  SELECT outcome, claims
    FROM claim
   WHERE (SELECT tx_wrote_all((SELECT count(*) FROM claim WHERE outcome = 'done'), (SELECT count(*) FROM claimed)))
   ORDER BY ord)"};

pg::Batch claim_statements(const std::string& node, const std::vector<Claim>& claims,
                           std::chrono::milliseconds interval) {
  FencedRows rows;
  std::vector<std::string> from, hashes, kinds, fees;
  std::vector<std::optional<std::string>> previous;
  std::vector<pg::Bytes> raw;
  for (const auto& claim : claims) {
    rows.add(claim.lease, claim.tx_id);
    from.emplace_back(kManagedTx.name(claim.from));
    previous.push_back(claim.previous_hash);
    hashes.push_back(claim.tx_hash);
    kinds.emplace_back(kAttemptKinds.name(claim.kind));
    raw.push_back(pg::to_bytes(claim.raw));
    fees.push_back(claim.fees);
  }
  auto batch = fence_rows(node, rows);
  batch.add(sql::kClaimAttempts, node, rows.chains, rows.signers, rows.tokens, rows.ids, from, previous, hashes, kinds,
            raw, fees, interval.count());
  return batch;
}

awaitable<std::vector<ClaimResult>> claim_attempts(pg::Pool& pool, std::string node, std::vector<Claim> claims,
                                                   std::chrono::milliseconds interval) {
  std::vector<ClaimResult> out;
  if (claims.empty()) co_return out;
  const auto rows = co_await run_fenced(pool, claim_statements(node, claims, interval));
  for (const auto row : rows) out.push_back({read_outcome(row), row.get<std::int64_t>("claims")});
  co_return out;
}

const Statement sql::kClaimResubmits{"tx_claim_resubmits", R"(
  WITH due AS MATERIALIZED (
    SELECT w.token, t.ctid AS row_id, t.*, '0x' || encode(a.raw, 'hex') AS raw, a.attempt_row,
           a.outcome = 'refused' AS was_refused,
           clock_timestamp() + make_interval(secs => $6 / 1000.0) AS due_at
      FROM unnest($2::bigint[], $3::text[], $4::bigint[], $5::uuid[]) AS w(chain_id, signer, token, tx_id)
     CROSS JOIN LATERAL )" FENCEPOST_LEASE_OF("w") R"( AS l
     CROSS JOIN LATERAL (SELECT t.ctid, t.* FROM tx_open AS t WHERE t.tx_id = w.tx_id LIMIT 1) AS t
      LEFT JOIN LATERAL (SELECT a.raw, a.ctid AS attempt_row, a.outcome
                           FROM tx_attempt AS a
                          WHERE a.chain_id = t.chain_id AND a.tx_hash = t.tx_hash
                          LIMIT 1) AS a ON true
     WHERE )" FENCEPOST_HELD_BY_US("w") R"(
       AND t.chain_id = w.chain_id
       AND t.signer = w.signer
       AND t.state IN ('TRACKING', 'STUCK')
       AND t.receipt_block IS NULL
       AND t.next_resubmit_at <= clock_timestamp()
  ),
  doubted AS (  -- a refusal counts only until the bytes are sent again
    UPDATE tx_attempt AS a
       SET outcome = 'unknown',
           claims = a.claims + 1
      FROM due AS d
     WHERE a.ctid = d.attempt_row
       AND d.was_refused
  ),
  claimed AS (
    UPDATE tx_open AS t
       SET last_submit_at = clock_timestamp(),
           next_resubmit_at = d.due_at,
           fencing_token = d.token,
           updated_at = clock_timestamp()
      FROM due AS d
     WHERE t.ctid = d.row_id
    RETURNING t.tx_id
  )
  SELECT chain_id, signer, token, tx_id, state, nonce, tx_hash, retry_count, due_at::text AS due_at, raw
    FROM due
   WHERE raw IS NOT NULL
     AND (SELECT tx_wrote_all((SELECT count(*) FROM due), (SELECT count(*) FROM claimed)))
   ORDER BY signer, nonce)"};

namespace {

using DueRow = std::pair<SignerLease, Uuid>;

// The claimed broadcasts, followed by a nullopt for each row that was no longer due.
awaitable<std::vector<std::optional<Resubmit>>> claim_due(pg::Pool& pool, const std::string& node,
                                                          std::span<const DueRow> due,
                                                          std::chrono::milliseconds interval) {
  FencedRows w;
  for (const auto& [lease, tx_id] : due) w.add(lease, tx_id);
  auto batch = fence_rows(node, w);
  batch.add(sql::kClaimResubmits, node, w.chains, w.signers, w.tokens, w.ids, interval.count());
  const auto rows = co_await run_fenced(pool, std::move(batch));
  std::vector<std::optional<Resubmit>> out;
  for (const auto row : rows) {
    out.push_back(Resubmit{.lease = read_lease(row),
                           .tx_id = row.get<Uuid>("tx_id"),
                           .state = read_state(row),
                           .nonce = row.get<std::int64_t>("nonce"),
                           .tx_hash = row.get<std::string>("tx_hash"),
                           .raw = row.get<std::string>("raw"),
                           .retry_count = row.get<std::int32_t>("retry_count"),
                           .due_at = row.get<std::string>("due_at")});
  }
  out.resize(due.size());
  co_return out;
}

}  // namespace

const Statement sql::kDueResubmits{"tx_due_resubmits", R"(
  SELECT l.chain_id, l.signer, l.token, t.tx_id
    FROM )" FENCEPOST_LED_SIGNERS R"(
   CROSS JOIN LATERAL (SELECT t.tx_id, t.next_resubmit_at
                         FROM tx_open AS t
                        WHERE t.chain_id = l.chain_id
                          AND t.signer = l.signer
                          AND t.nonce >= l.first_unmined
                          AND )" FENCEPOST_BELOW_GAP("t", "l") R"(
                          AND t.state IN ('TRACKING', 'STUCK')
                          AND t.receipt_block IS NULL
                          AND t.next_resubmit_at <= statement_timestamp()
                        ORDER BY t.nonce
                        LIMIT $3) AS t
   ORDER BY t.next_resubmit_at
   LIMIT $3)"};

awaitable<std::vector<Resubmit>> claim_resubmits(pg::Pool& pool, std::string node, std::int64_t chain_id,
                                                 std::chrono::milliseconds interval, std::size_t limit) {
  std::vector<DueRow> due;
  for (const auto row : co_await pool.query(sql::kDueResubmits, node, chain_id, limit)) {
    due.emplace_back(read_lease(row), row.get<Uuid>("tx_id"));
  }
  std::vector<Resubmit> out;
  if (due.empty()) co_return out;
  const auto write = [&](std::span<const DueRow> some) { return claim_due(pool, node, some, interval); };
  auto claimed = co_await pg::write_or_halve<std::optional<Resubmit>>(std::span<const DueRow>(due), write);
  for (auto& one : claimed) {
    if (one && *one) out.push_back(std::move(**one));  // a row that another session has locked is retried later
  }
  co_return out;
}

namespace {

// External attempts are numbered 0, -1, …, so that the first claim of an own attempt is always number 1.
constexpr Statement kRecordTaker{"tx_record_taker", R"(
  WITH wanted AS MATERIALIZED (
    SELECT w.*, t.tx_id AS open_id, )" FENCEPOST_HELD_BY_US("w") R"( AS held
      FROM (SELECT $2::bigint AS chain_id, $3::text AS signer, $4::bigint AS token, $5::uuid AS tx_id) AS w
      LEFT JOIN LATERAL )" FENCEPOST_LEASE_OF("w") R"( AS l ON true
      LEFT JOIN LATERAL (SELECT t.tx_id
                           FROM tx_open AS t
                          WHERE t.tx_id = w.tx_id AND t.state = $6 AND t.receipt_block IS NULL
                          LIMIT 1) AS t ON true
  ),
  stored AS (
    INSERT INTO tx_attempt (chain_id, tx_hash, tx_id, attempt, kind, outcome, fencing_token)
    SELECT w.chain_id, $7, w.tx_id,
           least(1, (SELECT min(a.attempt) FROM tx_attempt AS a WHERE a.tx_id = w.tx_id)) - 1,
           'external', 'accepted', w.token
      FROM wanted AS w
     WHERE w.held AND w.open_id IS NOT NULL
        ON CONFLICT (chain_id, tx_hash) DO UPDATE  -- seen before, or of a transaction that had this nonce before
           SET tx_id = excluded.tx_id,
               attempt = CASE WHEN tx_attempt.tx_id = excluded.tx_id THEN tx_attempt.attempt ELSE excluded.attempt END,
               kind = excluded.kind,
               raw = NULL,
               outcome = excluded.outcome,
               fencing_token = excluded.fencing_token
         WHERE (tx_attempt.tx_id = excluded.tx_id AND tx_attempt.kind = 'external')
            OR (SELECT m.released_nonce IS NOT NULL FROM managed_tx AS m WHERE m.tx_id = tx_attempt.tx_id)
    RETURNING tx_id
  )
  SELECT CASE WHEN w.held IS NOT true THEN 'fenced'
              WHEN NOT EXISTS (SELECT FROM stored) THEN 'moved'
              ELSE 'done'
         END AS outcome
    FROM wanted AS w)"};

}  // namespace

awaitable<StepOutcome> record_taker(pg::Pool& pool, std::string node, SignerLease lease, Uuid tx_id, TxState from,
                                    std::string tx_hash) {
  FencedRows rows;
  rows.add(lease, tx_id);
  auto batch = fence_rows(node, rows);
  batch.add(kRecordTaker, node, lease.key.chain_id, lease.key.signer, lease.fencing_token, tx_id, kManagedTx.name(from),
            tx_hash);
  const auto answer = co_await run_fenced(pool, std::move(batch));
  co_return read_outcome(answer.one());
}

}  // namespace fencepost::tx

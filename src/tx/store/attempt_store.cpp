#include "tx/store/attempt_store.hpp"

#include <span>

#include "pg/bytes.hpp"
#include "pg/halving.hpp"
#include "tx/store/read_row.hpp"

namespace fencepost::tx {

using pg::Statement;

// Signing is deterministic: the same fees give the same bytes. A claim of the same bytes is the same attempt again.
const Statement sql::kClaimAttempts{"tx_claim", R"(
  WITH claim AS MATERIALIZED (
    SELECT c.*,
           coalesce((SELECT true FROM signer_lease AS l
                      WHERE l.chain_id = c.chain_id
                        AND l.signer = c.signer
                        AND l.owner_node = $1
                        AND l.fencing_token = c.token
                        AND l.expires_at > clock_timestamp()
                      LIMIT 1), false) AS held
      FROM unnest($2::bigint[], $3::text[], $4::bigint[], $5::uuid[], $6::text[], $7::text[], $8::text[], $9::text[],
                  $10::bytea[], $11::text[])
           WITH ORDINALITY
           AS c(chain_id, signer, token, tx_id, from_state, previous_hash, tx_hash, kind, raw, fees, ord)
  ),
  fit AS MATERIALIZED (  -- whose guards hold; found by its id and in no other way
    SELECT c.*
      FROM claim AS c
      JOIN LATERAL (SELECT * FROM managed_tx AS t WHERE t.tx_id = c.tx_id LIMIT 1) AS t
        ON t.chain_id = c.chain_id AND t.signer = c.signer AND t.state = c.from_state
     WHERE c.held
       AND t.tx_hash IS NOT DISTINCT FROM c.previous_hash
       AND t.receipt_block IS NULL
       AND coalesce((SELECT a.tx_id = c.tx_id FROM tx_attempt AS a
                      WHERE a.chain_id = c.chain_id AND a.tx_hash = c.tx_hash
                      LIMIT 1), true)
  ),
  claimed AS (
    UPDATE managed_tx AS t
       SET tx_hash = c.tx_hash,
           first_submitted_at = coalesce(t.first_submitted_at, clock_timestamp()),
           last_submit_at = clock_timestamp(),
           next_resubmit_at = clock_timestamp() + make_interval(secs => $12 / 1000.0),
           fencing_token = c.token,
           updated_at = clock_timestamp()
      FROM fit AS c
     WHERE t.tx_id = c.tx_id
    RETURNING c.*
  ),
  stored AS (
    INSERT INTO tx_attempt (chain_id, tx_hash, tx_id, attempt, kind, raw, fees, fencing_token)
    SELECT c.chain_id, c.tx_hash, c.tx_id,
           1 + coalesce((SELECT max(a.attempt) FROM tx_attempt AS a WHERE a.tx_id = c.tx_id), 0),
           c.kind, c.raw, c.fees::jsonb, c.token
      FROM claimed AS c
        ON CONFLICT (chain_id, tx_hash) DO UPDATE
           SET attempt = CASE WHEN tx_attempt.attempt = excluded.attempt - 1 THEN tx_attempt.attempt
                              ELSE excluded.attempt  -- it is the newest again
                         END,
               outcome = NULL,
               message = NULL,
               claims = tx_attempt.claims + 1,
               fencing_token = excluded.fencing_token
    RETURNING tx_attempt.tx_hash, tx_attempt.claims
  )
  SELECT CASE WHEN max(o.claims) > 0 THEN 'done' WHEN bool_or(o.held) THEN 'moved' ELSE 'fenced' END AS outcome,
         max(o.claims) AS claims
    FROM (SELECT tx_hash, ord, held, 0 AS claims FROM claim
           UNION ALL
          SELECT tx_hash, NULL, true, claims FROM stored) AS o
   GROUP BY o.tx_hash
   ORDER BY max(o.ord))"};

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
  WITH claimed AS (
    UPDATE managed_tx AS t
       SET last_submit_at = clock_timestamp(),
           next_resubmit_at = clock_timestamp() + make_interval(secs => $6 / 1000.0),
           fencing_token = w.token,
           updated_at = clock_timestamp()
      FROM unnest($2::bigint[], $3::text[], $4::bigint[], $5::uuid[]) AS w(chain_id, signer, token, tx_id)
      JOIN signer_lease AS l
        ON l.chain_id = w.chain_id AND l.signer = w.signer AND l.fencing_token = w.token
     WHERE l.owner_node = $1
       AND l.expires_at > clock_timestamp()
       AND t.tx_id = w.tx_id
       AND t.state IN ('TRACKING', 'STUCK')
       AND t.receipt_block IS NULL
       AND t.next_resubmit_at <= clock_timestamp()
    RETURNING t.chain_id, t.signer, w.token, t.tx_id, t.state, t.nonce, t.tx_hash, t.retry_count,
              t.next_resubmit_at::text AS due_at
  )
  SELECT c.*, '0x' || encode(a.raw, 'hex') AS raw
    FROM claimed AS c
    JOIN tx_attempt AS a ON a.chain_id = c.chain_id AND a.tx_hash = c.tx_hash
   WHERE a.raw IS NOT NULL
   ORDER BY c.signer, c.nonce)"};

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
  SELECT t.chain_id, t.signer, l.fencing_token AS token, t.tx_id
    FROM managed_tx AS t
    JOIN signer_lease AS l
      ON l.chain_id = t.chain_id AND l.signer = t.signer
     AND l.owner_node = $1 AND l.expires_at > clock_timestamp()
   WHERE t.chain_id = $2
     AND t.state IN ('TRACKING', 'STUCK')
     AND t.receipt_block IS NULL
     AND t.next_resubmit_at <= statement_timestamp()
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

}  // namespace fencepost::tx

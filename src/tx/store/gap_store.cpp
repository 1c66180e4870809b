#include "tx/store/gap_store.hpp"

#include "tx/store/fence.hpp"
#include "tx/store/sql_parts.hpp"

namespace fencepost::tx {

using pg::Statement;

// The lowest nonce from `count` to below the cursor that no open transaction has.
#define FENCEPOST_LOWEST_GAP(w, next_nonce)                                                                            \
  "(SELECT s.nonce + 1 AS nonce FROM (SELECT o.nonce, lead(o.nonce, 1, " next_nonce                                    \
  ") OVER (ORDER BY o.nonce) AS following FROM (SELECT " w                                                             \
  ".count - 1 AS nonce UNION ALL SELECT t.nonce FROM tx_open AS t WHERE t.chain_id = " w ".chain_id AND t.signer = " w \
  ".signer AND t.nonce >= " w ".count AND t.nonce < " next_nonce                                                       \
  ") AS o) AS s WHERE s.following > s.nonce + 1 ORDER BY s.nonce LIMIT 1)"

const Statement sql::kFindGaps{"tx_find_gaps", R"(
  SELECT w.ord, g.nonce, m.tx_id, e.receipt_block, e.receipt_hash
    FROM unnest($1::bigint[], $2::text[], $3::bigint[]) WITH ORDINALITY AS w(chain_id, signer, count, ord)
   CROSS JOIN LATERAL (SELECT c.next_nonce
                         FROM signer_nonce_cursor AS c
                        WHERE c.chain_id = w.chain_id AND c.signer = w.signer AND c.next_nonce > w.count
                        LIMIT 1) AS c
   CROSS JOIN LATERAL )" FENCEPOST_LOWEST_GAP("w", "c.next_nonce") R"( AS g
    LEFT JOIN LATERAL (SELECT m.tx_id
                         FROM managed_tx AS m
                        WHERE m.chain_id = w.chain_id AND m.signer = w.signer AND m.nonce = g.nonce
                        LIMIT 1) AS m ON true
    LEFT JOIN LATERAL (SELECT e.receipt_block, e.receipt_hash
                         FROM tx_ended AS e
                        WHERE e.tx_id = m.tx_id
                        LIMIT 1) AS e ON true)"};

awaitable<std::vector<std::optional<Gap>>> find_gaps(pg::Pool& pool, const std::vector<CountedSigner>& counted) {
  std::vector<std::int64_t> chains, counts;
  std::vector<std::string> signers;
  for (const auto& one : counted) {
    chains.push_back(one.lease.key.chain_id);
    signers.push_back(one.lease.key.signer);
    counts.push_back(one.count);
  }
  std::vector<std::optional<Gap>> out(counted.size());
  for (const auto row : co_await pool.query(sql::kFindGaps, chains, signers, counts)) {
    out[row.get<std::size_t>("ord") - 1] = Gap{.nonce = row.get<std::int64_t>("nonce"),
                                               .tx_id = row.get<std::optional<Uuid>>("tx_id"),
                                               .receipt_block = row.get<std::optional<std::int64_t>>("receipt_block"),
                                               .receipt_hash = row.get<std::optional<std::string>>("receipt_hash")};
  }
  co_return out;
}

const Statement sql::kFindUndone{"tx_find_undone", R"(
  SELECT m.tx_id
    FROM managed_tx AS m
   CROSS JOIN LATERAL (SELECT e.receipt_block FROM tx_ended AS e WHERE e.tx_id = m.tx_id LIMIT 1) AS e
   WHERE m.chain_id = $1
     AND m.signer = $2
     AND m.nonce >= $3
     AND e.receipt_block IS NOT NULL
   ORDER BY m.nonce
   LIMIT $4)"};

awaitable<std::vector<Uuid>> find_undone(pg::Pool& pool, SignerKey key, std::int64_t from, std::size_t limit) {
  std::vector<Uuid> out;
  for (const auto row : co_await pool.query(sql::kFindUndone, key.chain_id, key.signer, from, limit)) {
    out.push_back(row.get<Uuid>("tx_id"));
  }
  co_return out;
}

// Looks for the gap again, under the cursor's lock. A transaction that was mined once and has ended was undone: another
// block has its nonce free.
const Statement sql::kNoteGaps{"tx_note_gaps", R"(
  WITH seen AS MATERIALIZED (
    SELECT w.*, c.row_id, c.next_nonce,
           CASE WHEN )" FENCEPOST_HELD_BY_US("w") R"( IS NOT true THEN 'fenced'
                WHEN c.next_nonce IS NULL
                  OR (c.needs_reconcile AND c.gap_nonce IS NULL)
                  OR g.nonce IS DISTINCT FROM w.gap_nonce THEN 'moved'
                WHEN g.nonce IS NULL THEN 'cleared'
                ELSE 'noted'
           END AS outcome,
           CASE WHEN g.nonce IS NULL THEN NULL
                WHEN EXISTS (SELECT
                               FROM managed_tx AS m
                              CROSS JOIN LATERAL (SELECT e.receipt_block
                                                    FROM tx_ended AS e
                                                   WHERE e.tx_id = m.tx_id
                                                   LIMIT 1) AS e
                              WHERE m.chain_id = w.chain_id
                                AND m.signer = w.signer
                                AND m.nonce = g.nonce
                                AND e.receipt_block IS NOT NULL)
                THEN 'undone'
                ELSE 'gap'
           END AS reason
      FROM unnest($2::bigint[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[])
           WITH ORDINALITY AS w(chain_id, signer, token, count, gap_nonce, ord)
      LEFT JOIN LATERAL )" FENCEPOST_LEASE_OF("w") R"( AS l ON true
      LEFT JOIN LATERAL (SELECT c.ctid AS row_id, c.*
                           FROM signer_nonce_cursor AS c
                          WHERE c.chain_id = w.chain_id AND c.signer = w.signer
                          LIMIT 1) AS c ON true
      LEFT JOIN LATERAL )" FENCEPOST_LOWEST_GAP("w", "c.next_nonce") R"( AS g ON true
  ),
  noted AS (
    UPDATE signer_nonce_cursor AS c
       SET needs_reconcile = s.outcome = 'noted',
           reconcile_reason = s.reason,
           gap_nonce = s.gap_nonce,
           fencing_token = s.token,
           updated_at = clock_timestamp()
      FROM seen AS s
     WHERE c.ctid = s.row_id
       AND s.outcome IN ('noted', 'cleared')
    RETURNING c.signer
  )
  SELECT outcome, reason
    FROM seen
   WHERE (SELECT tx_wrote_all((SELECT count(*) FROM seen WHERE outcome IN ('noted', 'cleared')),
                              (SELECT count(*) FROM noted)))
   ORDER BY ord)"};

pg::Batch note_statements(const std::string& node, const std::vector<GapNote>& notes) {
  FencedLeases w;
  std::vector<std::int64_t> counts;
  std::vector<std::optional<std::int64_t>> nonces;
  for (const auto& note : notes) {
    w.add(note.signer.lease);
    counts.push_back(note.signer.count);
    nonces.push_back(note.nonce);
  }
  auto batch = fence_cursors(node, w);
  batch.add(sql::kNoteGaps, node, w.chains, w.signers, w.tokens, counts, nonces);
  return batch;
}

namespace {

NoteOutcome note_outcome(std::string_view text) {
  if (text == "noted") return NoteOutcome::kNoted;
  if (text == "cleared") return NoteOutcome::kCleared;
  return text == "moved" ? NoteOutcome::kMoved : NoteOutcome::kFenced;
}

}  // namespace

awaitable<std::vector<NotedGap>> note_gaps(pg::Pool& pool, std::string node, std::vector<GapNote> notes) {
  std::vector<NotedGap> out;
  if (notes.empty()) co_return out;
  const auto rows = co_await run_fenced(pool, note_statements(node, notes));
  for (const auto row : rows) {
    NotedGap one{.outcome = note_outcome(row.get<std::string_view>("outcome")), .reason = std::nullopt};
    if (const auto reason = row.get<std::optional<std::string>>("reason")) one.reason = kReconcileReasons.find(*reason);
    out.push_back(one);
  }
  co_return out;
}

}  // namespace fencepost::tx

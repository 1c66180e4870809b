#include "tx/store/work_store.hpp"

#include "tx/store/read_row.hpp"
#include "tx/store/sql_parts.hpp"

namespace fencepost::tx {

using pg::Statement;

namespace {

#define FENCEPOST_MATCH_COLUMNS(token)                                                                        \
  "t.chain_id, t.signer, " token                                                                              \
  ", t.tx_id, t.state, t.nonce, t.sub_state, a.tx_hash AS attempt_hash, a.kind AS attempt_kind, a.outcome, "  \
  "t.receipt_hash, t.announced_block, t.announced_hash, t.withdrawn, extract(epoch FROM clock_timestamp() - " \
  "t.first_submitted_at)::double precision AS since_submit"

Match read_match(const pg::Row& row) {
  return {.lease = read_lease(row),
          .tx_id = row.get<Uuid>("tx_id"),
          .state = read_state(row),
          .nonce = row.get<std::int64_t>("nonce"),
          .sub_state = read_sub_state(row),
          .attempt_hash = row.get<std::string>("attempt_hash"),
          .attempt_kind = read_attempt_kind(row, "attempt_kind"),
          .outcome = read_attempt_outcome(row),
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

std::vector<MinedTx> read_mined(const pg::ResultSet& rows) {
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
                   .error = row.get<std::optional<std::string>>("error_message"),
                   .age = read_seconds(row, "age").value_or(std::chrono::milliseconds(0))});
  }
  return out;
}

}  // namespace

// A nonce that waits for its retry delays the signer's higher ones, which could not be mined before it: `ready` is
// false from the first nonce that is not due. The signer that has waited longest comes first, even where the limit cuts
// off.
#define FENCEPOST_DUE_SUBMITS(signers, among) \
  R"(
  WITH unsent AS MATERIALIZED (
    SELECT l.token, t.*
      FROM )" signers R"(
     CROSS JOIN LATERAL (SELECT t.chain_id, t.signer, t.nonce, t.tx_id, t.retry_count, t.tx_hash, t.sub_state,
                                t.next_resubmit_at
                           FROM tx_open AS t
                          WHERE t.chain_id = l.chain_id
                            AND t.signer = l.signer
                            AND t.nonce >= l.first_unmined
                            AND )" FENCEPOST_BELOW_GAP("t", "l") R"(
                            AND t.state = 'ALLOCATED'
                            AND t.receipt_block IS NULL
                          ORDER BY t.nonce
                          LIMIT $3) AS t
     )" among R"(
  ),
  due AS MATERIALIZED (
    SELECT *
      FROM (SELECT *,
                   bool_and(next_resubmit_at <= statement_timestamp()) OVER (PARTITION BY signer ORDER BY nonce) AS ready,
                   min(next_resubmit_at) OVER (PARTITION BY signer) AS since
              FROM unsent) AS t
     WHERE ready
     ORDER BY since, signer, nonce
     LIMIT $3
  )
  SELECT d.*, m.payload, m.gas_limit, '0x' || encode(a.raw, 'hex') AS raw, a.outcome,
         coalesce(a.attempt, 0) AS attempts, coalesce(a.claims, 0) AS claims, a.fees
    FROM due AS d
   CROSS JOIN LATERAL (SELECT m.payload, m.gas_limit FROM managed_tx AS m WHERE m.tx_id = d.tx_id LIMIT 1) AS m
    LEFT JOIN LATERAL (SELECT a.raw, a.outcome, a.attempt, a.claims, a.fees
                         FROM tx_attempt AS a
                        WHERE a.chain_id = d.chain_id AND a.tx_hash = d.tx_hash
                        LIMIT 1) AS a ON true
   ORDER BY d.since, d.signer, d.nonce)"
const Statement sql::kDueSubmits{
    "tx_due_submits",
    FENCEPOST_DUE_SUBMITS(FENCEPOST_LED_SIGNERS, "WHERE $4::bigint IS NULL OR ascii(right(l.signer, 1)) % 2 = $4")};
const Statement sql::kDueSubmitsOf{"tx_due_submits_of", FENCEPOST_DUE_SUBMITS(FENCEPOST_LED_AMONG("$4"), "")};
#undef FENCEPOST_DUE_SUBMITS

// As kDueSubmits computes it.
std::int64_t submit_lane_of(std::string_view signer) {
  return signer.empty() ? 0 : static_cast<unsigned char>(signer.back()) % kSubmitLanes;
}

awaitable<std::vector<DueSubmit>> due_submits(pg::Pool& pool, std::string node, std::int64_t chain_id,
                                              std::optional<std::vector<std::string>> signers, std::size_t limit,
                                              std::optional<std::int64_t> lane) {
  pg::ResultSet rows;
  if (signers) {
    rows = co_await pool.query(sql::kDueSubmitsOf, node, chain_id, limit, *signers);
  } else {
    rows = co_await pool.query(sql::kDueSubmits, node, chain_id, limit, lane);
  }
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
                   .claims = row.get<std::int64_t>("claims"),
                   .fees = row.get<std::optional<std::string>>("fees")});
  }
  co_return out;
}

const Statement sql::kMakeFailedDue{"tx_make_failed_due", R"(
  WITH waiting AS MATERIALIZED (
    SELECT t.tx_id
      FROM )" FENCEPOST_LED_SIGNERS R"(
     CROSS JOIN LATERAL (SELECT t.tx_id
                           FROM tx_open AS t
                          WHERE t.chain_id = l.chain_id
                            AND t.signer = l.signer
                            AND t.nonce >= l.first_unmined
                            AND t.state = 'ALLOCATED'
                            AND t.receipt_block IS NULL
                            AND t.sub_state IN ('transient', 'unknown', 'fees_unknown')
                            AND t.next_resubmit_at > clock_timestamp()
                          ORDER BY t.nonce
                          LIMIT $3) AS t
  ),
  free AS MATERIALIZED (
    SELECT tx_id
      FROM tx_open
     WHERE tx_id = ANY (ARRAY(SELECT tx_id FROM waiting))
       FOR NO KEY UPDATE SKIP LOCKED
  )
  UPDATE tx_open
     SET next_resubmit_at = clock_timestamp()
   WHERE tx_id = ANY (ARRAY(SELECT tx_id FROM free))
     AND state = 'ALLOCATED'
  RETURNING tx_id)"};

awaitable<std::size_t> make_failed_broadcasts_due(pg::Pool& pool, std::string node, std::int64_t chain_id,
                                                  std::size_t limit) {
  const auto rows = co_await pool.execute(sql::kMakeFailedDue, node, chain_id, limit);
  co_return rows.size();
}

const Statement sql::kMatchAttempts{"tx_match_attempts", R"(
  SELECT )" FENCEPOST_MATCH_COLUMNS("l.fencing_token AS token") R"(
    FROM unnest($3::text[]) AS hash
   CROSS JOIN LATERAL (SELECT * FROM tx_attempt AS a WHERE a.chain_id = $2 AND a.tx_hash = hash LIMIT 1) AS a
   CROSS JOIN LATERAL (SELECT * FROM tx_open AS t WHERE t.tx_id = a.tx_id LIMIT 1) AS t
   CROSS JOIN LATERAL )" FENCEPOST_LEASE_OF("t") R"( AS l
   WHERE l.owner_node = $1
     AND l.expires_at > clock_timestamp())"};

awaitable<std::vector<Match>> match_attempts(pg::Pool& pool, std::string node, std::int64_t chain_id,
                                             std::vector<std::string> hashes) {
  const auto rows = co_await pool.query(sql::kMatchAttempts, node, chain_id, hashes);
  co_return read_matches(rows);
}

const Statement sql::kStaleReceipts{"tx_stale_receipts", R"(
  WITH stale AS MATERIALIZED (
    SELECT l.token, t.*
      FROM )" FENCEPOST_LED_SIGNERS R"(
     CROSS JOIN LATERAL (SELECT t.*
                           FROM tx_open AS t
                          WHERE t.chain_id = l.chain_id
                            AND t.signer = l.signer
                            AND t.nonce >= l.first_unmined
                            AND t.receipt_block IS NULL
                            AND t.tx_hash IS NOT NULL
                            AND coalesce(t.last_receipt_check,
                                         CASE WHEN t.fencing_token = l.token THEN t.first_submitted_at END,
                                         '-infinity') <= clock_timestamp() - make_interval(secs => $3 / 1000.0)
                          ORDER BY t.nonce
                          LIMIT $4) AS t
     LIMIT $4
  )
  SELECT )" FENCEPOST_MATCH_COLUMNS("t.token") R"(
    FROM stale AS t
   CROSS JOIN LATERAL (SELECT *
                         FROM tx_attempt AS a
                        WHERE a.tx_id = t.tx_id
                        ORDER BY a.attempt DESC
                        LIMIT 100) AS a
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
      FROM tx_open
     WHERE tx_id = ANY ($1::uuid[])
       AND receipt_block IS NULL
       FOR NO KEY UPDATE SKIP LOCKED
  )
  UPDATE tx_open
     SET last_receipt_check = clock_timestamp()
   WHERE tx_id = ANY (ARRAY(SELECT tx_id FROM noted)))"};

awaitable<> note_receipt_checks(pg::Pool& pool, std::vector<Uuid> tx_ids) {
  co_await pool.execute(sql::kNoteChecks, tx_ids);
}

const Statement sql::kMinedBetween{"tx_mined_between", R"(
  SELECT t.*, l.fencing_token AS token, a.kind AS attempt_kind,
         extract(epoch FROM clock_timestamp() - m.created_at)::double precision AS age
    FROM tx_receipt AS r
   CROSS JOIN LATERAL (SELECT * FROM tx_open AS t WHERE t.tx_id = r.tx_id LIMIT 1) AS t
   CROSS JOIN LATERAL )" FENCEPOST_LEASE_OF("t") R"( AS l
   CROSS JOIN LATERAL (SELECT a.kind
                         FROM tx_attempt AS a
                        WHERE a.chain_id = t.chain_id AND a.tx_hash = t.tx_hash
                        LIMIT 1) AS a
   CROSS JOIN LATERAL (SELECT m.created_at FROM managed_tx AS m WHERE m.tx_id = t.tx_id LIMIT 1) AS m
   WHERE l.owner_node = $1
     AND l.expires_at > clock_timestamp()
     AND r.chain_id = $2
     AND r.receipt_block BETWEEN $3 AND $4
     AND (r.receipt_block, r.tx_id) > ($5, $6::uuid)
   ORDER BY r.receipt_block, r.tx_id
   LIMIT $7)"};

awaitable<std::vector<MinedTx>> mined_between(pg::Pool& pool, std::string node, std::int64_t chain_id,
                                              MinedBlocks blocks, std::optional<MinedTx> after, std::size_t limit) {
  const auto block = after ? after->block : -1;
  const auto id = after ? after->tx_id : Uuid();
  const auto rows = co_await pool.query(sql::kMinedBetween, node, chain_id, std::max(blocks.from, block), blocks.to,
                                        block, id, limit);
  co_return read_mined(rows);
}

const Statement sql::kMinedOpen{"tx_mined_open", R"(
  SELECT l.chain_id, l.signer, l.token, t.*
    FROM )" FENCEPOST_LED_SIGNERS R"(
   CROSS JOIN LATERAL (SELECT t.tx_id, t.state, t.nonce, t.tx_hash, t.succeeded, t.receipt_block, t.receipt_hash,
                              t.announced_block, t.announced_hash, t.error_message, a.kind AS attempt_kind,
                              extract(epoch FROM clock_timestamp() - m.created_at)::double precision AS age
                         FROM tx_open AS t
                        CROSS JOIN LATERAL (SELECT a.kind
                                              FROM tx_attempt AS a
                                             WHERE a.chain_id = t.chain_id AND a.tx_hash = t.tx_hash
                                             LIMIT 1) AS a
                        CROSS JOIN LATERAL (SELECT m.created_at FROM managed_tx AS m WHERE m.tx_id = t.tx_id LIMIT 1)
                           AS m
                        WHERE t.chain_id = l.chain_id
                          AND t.signer = l.signer
                          AND (l.signer > $5 OR t.nonce > $6)
                          AND t.receipt_block BETWEEN $3 AND $4
                        ORDER BY t.nonce
                        LIMIT $7) AS t
   WHERE l.signer >= $5
   ORDER BY l.signer, t.nonce
   LIMIT $7)"};

awaitable<std::vector<MinedTx>> mined_open(pg::Pool& pool, std::string node, std::int64_t chain_id, MinedBlocks blocks,
                                           std::optional<MinedTx> after, std::size_t limit) {
  const auto signer = after ? after->lease.key.signer : std::string();
  const auto nonce = after ? after->nonce : -1;
  const auto rows = co_await pool.query(sql::kMinedOpen, node, chain_id, blocks.from, blocks.to, signer, nonce, limit);
  co_return read_mined(rows);
}

// The previous nonce is mined or ended, or it is of another sender.
const Statement sql::kOpenHeads{"tx_open_heads", R"(
  SELECT l.chain_id, l.signer, l.token, t.tx_id, t.state, t.nonce, t.sub_state, t.tx_hash, t.withdrawn,
         extract(epoch FROM clock_timestamp() - greatest(t.watched_since, t.first_submitted_at, t.receipt_changed_at))
           ::double precision AS waits,
         extract(epoch FROM clock_timestamp() - t.updated_at)::double precision AS since_step,
         extract(epoch FROM clock_timestamp() - b.mined_at)::double precision AS since_head,
         NOT EXISTS (SELECT FROM tx_attempt AS a WHERE a.tx_id = t.tx_id AND a.outcome IS DISTINCT FROM 'refused')
           AS unsent
    FROM )" FENCEPOST_LED_SIGNERS R"(
   CROSS JOIN LATERAL (SELECT *
                         FROM tx_open AS t
                        WHERE t.chain_id = l.chain_id
                          AND t.signer = l.signer
                          AND t.nonce >= l.first_unmined
                          AND t.receipt_block IS NULL
                        ORDER BY t.nonce
                        LIMIT 1) AS t
    LEFT JOIN LATERAL (SELECT coalesce(b.receipt_changed_at, b.confirmed_at, b.updated_at) AS mined_at
                         FROM tx_view AS b
                        WHERE b.chain_id = t.chain_id AND b.signer = t.signer AND b.nonce < t.nonce
                        ORDER BY b.nonce DESC
                        LIMIT 1) AS b ON true)"};

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
                   .unsent = row.get<bool>("unsent"),
                   .since_step = read_seconds(row, "since_step").value_or(std::chrono::milliseconds(0)),
                   .waits = read_seconds(row, "waits").value_or(std::chrono::milliseconds(0)),
                   .since_head = read_seconds(row, "since_head")});
  }
  co_return out;
}

}  // namespace fencepost::tx

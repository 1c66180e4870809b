#include "tx/step_store.hpp"

#include <cstring>

#include "base/hex.hpp"
#include "tx/lease_store.hpp"

namespace fencepost::tx {

using pg::Statement;

namespace sql {

// Rows in the order that every writer uses, and only while the lease is ours: somebody who lost it must not stand in
// the way of the new owner.
const Statement kLockRows{"tx_step_lock", R"(
  SELECT t.tx_id
    FROM managed_tx AS t
    JOIN unnest($2::bigint[], $3::text[], $4::bigint[], $5::uuid[]) AS w(chain_id, signer, token, tx_id)
      ON w.tx_id = t.tx_id
    JOIN signer_lease AS l
      ON l.chain_id = w.chain_id AND l.signer = w.signer AND l.fencing_token = w.token
   WHERE l.owner_node = $1
   ORDER BY t.chain_id, t.signer, t.nonce, t.creation_seq
     FOR NO KEY UPDATE OF t)"};

const Statement kApplySteps{"tx_step_apply", R"(
  WITH step AS MATERIALIZED (
    SELECT s.*,
           coalesce((SELECT true FROM signer_lease AS l
                      WHERE l.chain_id = s.chain_id
                        AND l.signer = s.signer
                        AND l.owner_node = $1
                        AND l.fencing_token = s.token
                        AND l.expires_at > clock_timestamp()
                      LIMIT 1), false) AS held
      FROM unnest($2::bigint[], $3::text[], $4::bigint[], $5::uuid[], $6::text[], $7::text[], $8::text[], $9::bool[],
                  $10::text[], $11::text[], $12::text[], $13::bool[], $14::bool[], $15::bigint[], $16::text[],
                  $17::text[], $18::bigint[], $19::text[], $20::bool[], $21::bigint[], $22::text[], $23::bool[],
                  $24::text[], $25::bool[], $26::text[], $27::bool[], $28::bigint[], $29::text[])
           WITH ORDINALITY
           AS s(chain_id, signer, token, tx_id, from_state, to_state, why, quiet, expect_receipt_hash, sub_state, error,
                failed_try, reset_tries, due_in_ms, tx_hash, receipt, receipt_block, receipt_hash, drop_receipt,
                told_block, told_hash, untell, confirmations, final, attempt_outcome, begins_broadcast, expect_claims,
                events, ord)
  ),
  fit AS MATERIALIZED (  -- whose guards hold; the rows are locked, so they go on holding
    SELECT s.*, t.tx_hash AS hash_before
      FROM step AS s
      JOIN LATERAL (SELECT * FROM managed_tx AS t WHERE t.tx_id = s.tx_id LIMIT 1) AS t
        ON t.chain_id = s.chain_id AND t.signer = s.signer AND t.state = s.from_state
     WHERE s.held
       AND (s.expect_receipt_hash IS NULL OR coalesce(t.receipt_hash, '') = s.expect_receipt_hash)
       AND (s.expect_claims IS NULL OR s.expect_claims = (SELECT a.claims
                                                            FROM tx_attempt AS a
                                                           WHERE a.chain_id = t.chain_id AND a.tx_hash = t.tx_hash))
  ),
  judged AS (
    UPDATE tx_attempt AS a
       SET outcome = s.attempt_outcome,
           message = nullif(s.error, ''),
           claims = a.claims + CASE WHEN s.begins_broadcast THEN 1 ELSE 0 END
      FROM fit AS s
     WHERE s.attempt_outcome IS NOT NULL
       AND a.chain_id = s.chain_id
       AND a.tx_hash = coalesce(s.tx_hash, s.hash_before)
       AND (s.begins_broadcast OR a.outcome IS DISTINCT FROM s.attempt_outcome)
  ),
  applied AS (
    UPDATE managed_tx AS t
       SET state = s.to_state,
           sub_state = CASE WHEN s.sub_state IS NULL THEN t.sub_state ELSE nullif(s.sub_state, '') END,
           error_message = CASE WHEN s.error IS NULL THEN t.error_message ELSE nullif(s.error, '') END,
           retry_count = CASE WHEN s.reset_tries THEN 0
                              WHEN s.failed_try THEN t.retry_count + 1
                              ELSE t.retry_count
                         END,
           next_resubmit_at = CASE WHEN s.due_in_ms IS NULL THEN t.next_resubmit_at
                                   WHEN s.due_in_ms < 0 THEN NULL
                                   ELSE clock_timestamp() + make_interval(secs => s.due_in_ms / 1000.0)
                              END,
           tx_hash = CASE WHEN s.drop_receipt THEN (SELECT a.tx_hash
                                                      FROM tx_attempt AS a
                                                     WHERE a.tx_id = t.tx_id AND a.kind <> 'external'
                                                     ORDER BY (a.raw IS NOT NULL) DESC, a.attempt DESC
                                                     LIMIT 1)
                          ELSE coalesce(s.tx_hash, t.tx_hash)
                     END,
           receipt = CASE WHEN s.drop_receipt THEN NULL ELSE coalesce(s.receipt::jsonb, t.receipt) END,
           receipt_block = CASE WHEN s.drop_receipt THEN NULL ELSE coalesce(s.receipt_block, t.receipt_block) END,
           receipt_hash = CASE WHEN s.drop_receipt THEN NULL ELSE coalesce(s.receipt_hash, t.receipt_hash) END,
           told_block = CASE WHEN s.untell THEN NULL ELSE coalesce(s.told_block, t.told_block) END,
           told_hash = CASE WHEN s.untell THEN NULL ELSE coalesce(s.told_hash, t.told_hash) END,
           confirmations = coalesce(s.confirmations::jsonb, t.confirmations),
           confirmed_at = CASE WHEN s.final THEN clock_timestamp() ELSE t.confirmed_at END,
           fencing_token = s.token,
           updated_at = clock_timestamp()
      FROM fit AS s
     WHERE t.tx_id = s.tx_id
    RETURNING s.ord, t.tx_id, t.sub_state, s.from_state, s.to_state, s.token, s.why, s.quiet, s.events
  ),
  written AS (
    INSERT INTO step_history (subject_id, from_state, to_state, sub_state, node, fencing_token, why)
    SELECT tx_id, from_state, to_state, sub_state, $1, token, why
      FROM applied
     WHERE NOT quiet
     ORDER BY ord
  ),
  told AS (
    INSERT INTO outbox_event (type, subject, data)
    SELECT e.event ->> 0, 'tx/' || a.tx_id, e.event -> 1
      FROM applied AS a
     CROSS JOIN LATERAL jsonb_array_elements(a.events::jsonb) WITH ORDINALITY AS e(event, place)
     ORDER BY a.ord, e.place
  )
  -- By sorting, not by a join: joins of lists this size are nested loops to the planner.
  SELECT CASE WHEN bool_or(o.done) THEN 'done' WHEN bool_or(o.held) THEN 'moved' ELSE 'fenced' END AS outcome
    FROM (SELECT ord, held, false AS done FROM step
           UNION ALL
          SELECT ord, true, true FROM applied) AS o
   GROUP BY o.ord
   ORDER BY o.ord)"};

// Signing is deterministic: the same fees give the same bytes, and then it is the same attempt, sent again.
const Statement kClaimAttempts{"tx_claim", R"(
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
           SET outcome = NULL,
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

// A lower nonce that waits for its next try holds back those above it: they could not be mined before it. Whose turn it
// is goes by time, but each signer's transactions come from the lowest nonce up, also where the limit cuts them off.
// What is due is asked of statement_timestamp(): an index cannot be searched for clock_timestamp(), which may change
// from row to row. A signer's own rows are looked for in the index of its nonces and never in that of what is due,
// where they are among everybody's: state || '' hides from the planner that they would be there too. While it believes
// that nothing is due, as after a quiet hour, both look the same to it.
const Statement kDueSubmits{"tx_due_submits", R"(
  WITH turn AS MATERIALIZED (
    SELECT d.signer, d.token, min(d.next_resubmit_at) AS since,
           (SELECT h.nonce FROM managed_tx AS h
             WHERE h.chain_id = $2 AND h.signer = d.signer
               AND h.state IN ('ALLOCATED', 'TRACKING', 'STUCK') AND h.receipt_block IS NULL
               AND h.state || '' = 'ALLOCATED' AND h.next_resubmit_at > statement_timestamp()
             ORDER BY h.nonce
             LIMIT 1) AS held_from
      FROM (SELECT t.signer, l.token, t.next_resubmit_at
              FROM managed_tx AS t
             CROSS JOIN LATERAL (SELECT l.fencing_token AS token FROM signer_lease AS l
                                  WHERE l.chain_id = t.chain_id AND l.signer = t.signer
                                    AND l.owner_node = $1 AND l.expires_at > clock_timestamp()
                                  LIMIT 1) AS l
             WHERE t.chain_id = $2
               AND t.state = 'ALLOCATED'
               AND t.receipt_block IS NULL
               AND t.next_resubmit_at <= statement_timestamp()
               AND (SELECT true FROM managed_tx AS h
                     WHERE h.chain_id = t.chain_id AND h.signer = t.signer AND h.nonce < t.nonce
                       AND h.state IN ('ALLOCATED', 'TRACKING', 'STUCK') AND h.receipt_block IS NULL
                       AND h.state || '' = 'ALLOCATED' AND h.next_resubmit_at > statement_timestamp()
                     LIMIT 1) IS NULL
             ORDER BY t.next_resubmit_at
             LIMIT $3) AS d
     GROUP BY d.signer, d.token
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

const Statement kDueResubmits{"tx_due_resubmits", R"(
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

const Statement kClaimResubmits{"tx_claim_resubmits", R"(
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
    RETURNING t.chain_id, t.signer, w.token, t.tx_id, t.state, t.nonce, t.tx_hash, t.retry_count
  )
  SELECT c.*, '0x' || encode(a.raw, 'hex') AS raw
    FROM claimed AS c
    JOIN tx_attempt AS a ON a.chain_id = c.chain_id AND a.tx_hash = c.tx_hash
   WHERE a.raw IS NOT NULL
   ORDER BY c.signer, c.nonce)"};

#define FENCEPOST_MATCH_COLUMNS                                                                           \
  "t.chain_id, t.signer, l.fencing_token AS token, t.tx_id, t.state, t.nonce, t.sub_state, a.tx_hash AS " \
  "attempt_hash, a.kind AS attempt_kind, t.receipt_hash, t.told_block, t.told_hash, "                     \
  "extract(epoch FROM clock_timestamp() - t.first_submitted_at)::double precision AS since_submit"

// From the hashes to the transactions and never the other way round, whatever the statistics say: LIMIT 1 sees to it.
const Statement kMatchAttempts{"tx_match_attempts", R"(
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

const Statement kStaleReceipts{"tx_stale_receipts", R"(
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

// Not fenced and in no order, so it waits for nobody: a row that is locked is being written by who knows better.
const Statement kNoteChecks{"tx_note_receipt_checks", R"(
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

const Statement kMinedBetween{"tx_mined_between", R"(
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

const Statement kOpenHeads{"tx_open_heads", R"(
  SELECT l.chain_id, l.signer, l.fencing_token AS token, t.tx_id, t.state, t.nonce, t.sub_state, t.tx_hash,
         extract(epoch FROM clock_timestamp() - t.first_submitted_at)::double precision AS since_submit
    FROM signer_lease AS l
   CROSS JOIN LATERAL (SELECT *
                         FROM managed_tx AS t
                        WHERE t.chain_id = l.chain_id AND t.signer = l.signer
                          AND t.state IN ('ALLOCATED', 'TRACKING', 'STUCK')
                          AND t.receipt_block IS NULL
                        ORDER BY t.nonce
                        LIMIT 1) AS t
   WHERE l.owner_node = $1
     AND l.chain_id = $2
     AND l.expires_at > clock_timestamp())"};

}  // namespace sql

namespace {

SignerLease read_lease(const pg::Row& row) {
  return {{row.get<std::int64_t>("chain_id"), row.get<std::string>("signer")}, row.get<std::int64_t>("token")};
}

TxState read_state(const pg::Row& row) {
  return kManagedTx.find(row.get<std::string_view>("state")).value();
}

std::optional<ToldBlock> read_told(const pg::Row& row) {
  if (row.is_null("told_block")) return std::nullopt;
  return ToldBlock{row.get<std::int64_t>("told_block"), row.get<std::string>("told_hash")};
}

std::optional<std::chrono::milliseconds> read_seconds(const pg::Row& row, std::string_view column) {
  const auto seconds = row.get<std::optional<double>>(column);
  if (!seconds) return std::nullopt;
  return std::chrono::milliseconds(static_cast<std::int64_t>(*seconds * 1000));
}

pg::Bytes to_pg(const Bytes& raw) {
  pg::Bytes bytes(raw.size());
  std::memcpy(bytes.data(), raw.data(), raw.size());
  return bytes;
}

// The columns that every fenced write begins with.
struct RowColumns {
  std::vector<std::int64_t> chains;
  std::vector<std::string> signers;
  std::vector<std::int64_t> tokens;
  std::vector<Uuid> ids;

  void add(const SignerLease& lease, const Uuid& id) {
    chains.push_back(lease.key.chain_id);
    signers.push_back(lease.key.signer);
    tokens.push_back(lease.fencing_token);
    ids.push_back(id);
  }
};

// The fence: lease rows locked against takeover, then the transactions in order.
pg::Batch fenced(const std::string& node, const RowColumns& rows) {
  pg::Batch batch;
  batch.add(sql::kLockLeases, rows.chains, rows.signers)
      .add(sql::kLockRows, node, rows.chains, rows.signers, rows.tokens, rows.ids);
  return batch;
}

std::vector<StepOutcome> read_outcomes(const pg::ResultSet& rows) {
  std::vector<StepOutcome> out;
  for (const auto row : rows) out.push_back(read_outcome(row));
  return out;
}

// [["TxSubmitted", {…}], …]: the data is JSON text already.
std::string events_json(const std::vector<std::pair<std::string, std::string>>& events) {
  std::string out = "[";
  for (const auto& [type, data] : events) {
    if (out.size() > 1) out += ',';
    out.append("[\"").append(type).append("\",").append(data).append("]");
  }
  return out += ']';
}

pg::Params step_params(const std::string& node, const RowColumns& rows, const std::vector<Step>& steps) {
  using Texts = std::vector<std::optional<std::string>>;
  using Numbers = std::vector<std::optional<std::int64_t>>;
  Texts from, to, why, expect, sub_state, error, hash, receipt, receipt_hash, told_hash, confirmations, outcome;
  Numbers due, receipt_block, told_block;
  std::vector<bool> quiet, failed, reset, drop, untell, final;
  Numbers expect_claims;
  std::vector<bool> begins;
  std::vector<std::string> events;
  for (const auto& s : steps) {
    from.emplace_back(kManagedTx.name(s.from));
    to.emplace_back(kManagedTx.name(s.to));
    why.emplace_back(s.why);
    quiet.push_back(s.quiet);
    expect.push_back(s.expect_receipt_hash);
    sub_state.push_back(s.sub_state);
    error.push_back(s.error);
    failed.push_back(s.failed_try);
    reset.push_back(s.reset_tries);
    due.push_back(s.due_in ? std::optional(s.due_in->count()) : std::nullopt);
    hash.push_back(s.tx_hash);
    receipt.push_back(s.receipt ? std::optional(s.receipt->json) : std::nullopt);
    receipt_block.push_back(s.receipt ? std::optional(s.receipt->block) : std::nullopt);
    receipt_hash.push_back(s.receipt ? std::optional(s.receipt->block_hash) : std::nullopt);
    drop.push_back(s.drop_receipt);
    told_block.push_back(s.told ? std::optional(s.told->number) : std::nullopt);
    told_hash.push_back(s.told ? std::optional(s.told->hash) : std::nullopt);
    untell.push_back(s.untell);
    confirmations.push_back(s.confirmations);
    final.push_back(s.final);
    outcome.push_back(s.attempt_outcome);
    begins.push_back(s.begins_broadcast);
    expect_claims.push_back(s.expect_claims);
    events.push_back(events_json(s.events));
  }
  return pg::Params::of(node, rows.chains, rows.signers, rows.tokens, rows.ids, from, to, why, quiet, expect, sub_state,
                        error, failed, reset, due, hash, receipt, receipt_block, receipt_hash, drop, told_block,
                        told_hash, untell, confirmations, final, outcome, begins, expect_claims, events);
}

Match read_match(const pg::Row& row) {
  return {.lease = read_lease(row),
          .tx_id = row.get<Uuid>("tx_id"),
          .state = read_state(row),
          .nonce = row.get<std::int64_t>("nonce"),
          .sub_state = row.get<std::optional<std::string>>("sub_state"),
          .attempt_hash = row.get<std::string>("attempt_hash"),
          .attempt_kind = row.get<std::string>("attempt_kind"),
          .receipt_hash = row.get<std::optional<std::string>>("receipt_hash"),
          .told = read_told(row),
          .since_submit = read_seconds(row, "since_submit")};
}

std::vector<Match> read_matches(const pg::ResultSet& rows) {
  std::vector<Match> out;
  for (const auto row : rows) out.push_back(read_match(row));
  return out;
}

}  // namespace

StepOutcome read_outcome(const pg::Row& row) {
  const auto text = row.get<std::string_view>("outcome");
  return text == "done" ? StepOutcome::kDone : text == "fenced" ? StepOutcome::kFenced : StepOutcome::kMoved;
}

pg::Batch step_statements(const std::string& node, const std::vector<Step>& steps) {
  RowColumns rows;
  for (const auto& step : steps) {
    if (step.from != step.to && !kManagedTx.allowed(step.from, step.to)) {
      throw Exception(internal("forbidden_step", "the lifecycle has no such step")
                          .with("from", std::string(kManagedTx.name(step.from)))
                          .with("to", std::string(kManagedTx.name(step.to))));
    }
    rows.add(step.lease, step.tx_id);
  }
  auto batch = fenced(node, rows);
  batch.add_params(sql::kApplySteps, step_params(node, rows, steps));
  return batch;
}

awaitable<std::vector<StepOutcome>> apply_steps(pg::Pool& pool, std::string node, std::vector<Step> steps) {
  if (steps.empty()) co_return std::vector<StepOutcome>();
  const auto batch = step_statements(node, steps);
  const auto connection = co_await pool.acquire();
  const auto results = co_await connection->run(batch);
  co_return read_outcomes(results.back());
}

pg::Batch claim_statements(const std::string& node, const std::vector<Claim>& claims,
                           std::chrono::milliseconds interval) {
  RowColumns rows;
  std::vector<std::string> from, hashes, kinds, fees;
  std::vector<std::optional<std::string>> previous;
  std::vector<pg::Bytes> raw;
  for (const auto& claim : claims) {
    rows.add(claim.lease, claim.tx_id);
    from.emplace_back(kManagedTx.name(claim.from));
    previous.push_back(claim.previous_hash);
    hashes.push_back(claim.tx_hash);
    kinds.push_back(claim.kind);
    raw.push_back(to_pg(claim.raw));
    fees.push_back(claim.fees);
  }
  auto batch = fenced(node, rows);
  batch.add(sql::kClaimAttempts, node, rows.chains, rows.signers, rows.tokens, rows.ids, from, previous, hashes, kinds,
            raw, fees, interval.count());
  return batch;
}

awaitable<std::vector<ClaimResult>> claim_attempts(pg::Pool& pool, std::string node, std::vector<Claim> claims,
                                                   std::chrono::milliseconds interval) {
  std::vector<ClaimResult> out;
  if (claims.empty()) co_return out;
  const auto batch = claim_statements(node, claims, interval);
  const auto connection = co_await pool.acquire();
  const auto results = co_await connection->run(batch);
  for (const auto row : results.back()) out.push_back({read_outcome(row), row.get<std::int64_t>("claims")});
  co_return out;
}

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
                   .outcome = row.get<std::optional<std::string>>("outcome"),
                   .sub_state = row.get<std::optional<std::string>>("sub_state"),
                   .attempts = row.get<std::int64_t>("attempts"),
                   .claims = row.get<std::int64_t>("claims")});
  }
  co_return out;
}

awaitable<std::vector<Resubmit>> claim_resubmits(pg::Pool& pool, std::string node, std::int64_t chain_id,
                                                 std::chrono::milliseconds interval, std::size_t limit) {
  const auto due = co_await pool.query(sql::kDueResubmits, node, chain_id, limit);
  std::vector<Resubmit> out;
  if (due.empty()) co_return out;
  RowColumns rows;
  for (const auto row : due) rows.add(read_lease(row), row.get<Uuid>("tx_id"));
  auto batch = fenced(node, rows);
  batch.add(sql::kClaimResubmits, node, rows.chains, rows.signers, rows.tokens, rows.ids, interval.count());
  const auto connection = co_await pool.acquire();
  const auto results = co_await connection->run(batch);
  for (const auto row : results.back()) {
    out.push_back({.lease = read_lease(row),
                   .tx_id = row.get<Uuid>("tx_id"),
                   .state = read_state(row),
                   .nonce = row.get<std::int64_t>("nonce"),
                   .tx_hash = row.get<std::string>("tx_hash"),
                   .raw = row.get<std::string>("raw"),
                   .retry_count = row.get<std::int32_t>("retry_count")});
  }
  co_return out;
}

awaitable<std::vector<Match>> match_attempts(pg::Pool& pool, std::string node, std::int64_t chain_id,
                                             std::vector<std::string> hashes) {
  const auto rows = co_await pool.query(sql::kMatchAttempts, node, chain_id, hashes);
  co_return read_matches(rows);
}

awaitable<std::vector<Match>> stale_receipts(pg::Pool& pool, std::string node, std::int64_t chain_id,
                                             std::chrono::milliseconds stale, std::size_t limit) {
  const auto rows = co_await pool.query(sql::kStaleReceipts, node, chain_id, stale.count(), limit);
  co_return read_matches(rows);
}

awaitable<> note_receipt_checks(pg::Pool& pool, std::vector<Uuid> tx_ids) {
  co_await pool.execute(sql::kNoteChecks, tx_ids);
}

MinedPlace place_of(const MinedTx& tx) {
  return {tx.block, tx.lease.key.signer, tx.nonce};
}

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
                   .attempt_kind = row.get<std::string>("attempt_kind"),
                   .succeeded = row.get<bool>("succeeded"),
                   .block = row.get<std::int64_t>("receipt_block"),
                   .block_hash = row.get<std::string>("receipt_hash"),
                   .told = read_told(row),
                   .age = read_seconds(row, "age").value_or(std::chrono::milliseconds(0))});
  }
  co_return out;
}

awaitable<std::vector<OpenHead>> open_heads(pg::Pool& pool, std::string node, std::int64_t chain_id) {
  const auto rows = co_await pool.query(sql::kOpenHeads, node, chain_id);
  std::vector<OpenHead> out;
  for (const auto row : rows) {
    out.push_back({.lease = read_lease(row),
                   .tx_id = row.get<Uuid>("tx_id"),
                   .state = read_state(row),
                   .nonce = row.get<std::int64_t>("nonce"),
                   .sub_state = row.get<std::optional<std::string>>("sub_state"),
                   .tx_hash = row.get<std::optional<std::string>>("tx_hash"),
                   .since_submit = read_seconds(row, "since_submit")});
  }
  co_return out;
}

}  // namespace fencepost::tx

#include "tx/store/step_store.hpp"

#include <algorithm>
#include <span>

#include "tx/store/sql_parts.hpp"

namespace fencepost::tx {

using pg::Statement;

namespace {

using Texts = std::vector<std::optional<std::string>>;
using Numbers = std::vector<std::optional<std::int64_t>>;

template <class Table, class Enum>
std::optional<std::string> name_of(const Table& table, const std::optional<Enum>& value) {
  return value ? std::optional(std::string(table.name(*value))) : std::nullopt;
}

// [["TxSubmitted", {…}], …]: the data is JSON text already.
std::string events_json(std::span<const std::pair<TxEvent, std::string>> events) {
  std::string out = "[";
  for (const auto& [type, data] : events) {
    if (out.size() > 1) out += ',';
    out.append("[\"").append(kTxEvents.name(type)).append("\",").append(data).append("]");
  }
  return out += ']';
}

// What every step has, as columns for unnest.
struct CommonColumns {
  FencedRows rows;
  Texts from, to, why, expect_receipt_hash, sub_state, error;
  Texts type, data;   // of the first event, which shares the log's row with the step
  Texts more_events;  // the others, as events_json

  explicit CommonColumns(const std::vector<const Step*>& steps) {
    for (const auto* s : steps) {
      rows.add(s->lease, s->tx_id);
      from.emplace_back(kManagedTx.name(s->from));
      to.emplace_back(kManagedTx.name(s->to));
      why.emplace_back(s->why);
      expect_receipt_hash.push_back(s->expect_receipt_hash);
      sub_state.push_back(name_of(kSubStates, s->sub_state));
      error.push_back(s->error);
      add_events(s->events);
    }
  }

  // The parameters $1 … $14 of both statements.
  pg::Params params(const std::string& node) const {
    return pg::Params::of(node, rows.chains, rows.signers, rows.tokens, rows.ids, from, to, why, expect_receipt_hash,
                          sub_state, error, type, data, more_events);
  }

 private:
  void add_events(const std::vector<std::pair<TxEvent, std::string>>& events) {
    const bool any = !events.empty();
    type.push_back(any ? std::optional(std::string(kTxEvents.name(events.front().first))) : std::nullopt);
    data.push_back(any ? std::optional(events.front().second) : std::nullopt);
    more_events.push_back(events.size() > 1 ? std::optional(events_json(std::span(events).subspan(1))) : std::nullopt);
  }
};

// The lease of the signer of `s`, and the open row of `s`, which statement 2 has locked.
#define FENCEPOST_STEP_LOOKUPS \
  "LEFT JOIN LATERAL " FENCEPOST_LEASE_OF("s") " AS l ON true LEFT JOIN LATERAL (SELECT t.ctid, t.* FROM tx_open " \
  "AS t WHERE t.tx_id = s.tx_id LIMIT 1) AS t ON true"

// The events of a step after the first, in a row of the log each.
#define FENCEPOST_MORE_EVENTS                                                                                         \
  "SELECT s.ord, e.place, 'tx/' || s.tx_id, e.event ->> 0, NULL, NULL, NULL, NULL, NULL, NULL, e.event -> 1 FROM "    \
  "step AS s CROSS JOIN LATERAL jsonb_array_elements(s.more_events::jsonb) WITH ORDINALITY AS e(event, place) WHERE " \
  "s.outcome = 'done' AND s.more_events IS NOT NULL"

}  // namespace

const Statement sql::kApplySteps{"tx_step_apply", R"(
  WITH step AS MATERIALIZED (
    SELECT s.*, t.ctid AS row_id, t.nonce, t.tx_hash AS hash_before,
           CASE WHEN s.new_sub_state IS NULL THEN t.sub_state ELSE nullif(s.new_sub_state, '') END AS sub_state,
           CASE WHEN )" FENCEPOST_HELD_BY_US("s") R"( IS NOT true THEN 'fenced'
                WHEN t.chain_id = s.chain_id
                 AND t.signer = s.signer
                 AND t.state = s.from_state
                 AND (s.expect_receipt_hash IS NULL OR coalesce(t.receipt_hash, '') = s.expect_receipt_hash)
                 AND (s.expect_due_at IS NULL OR t.next_resubmit_at = s.expect_due_at)
                 AND (s.expect_claims IS NULL OR s.expect_claims = (SELECT a.claims
                                                                      FROM tx_attempt AS a
                                                                     WHERE a.chain_id = t.chain_id
                                                                       AND a.tx_hash = t.tx_hash))
                 AND (NOT s.expect_unsent OR )" FENCEPOST_MAY_BE_SIGNED_ANEW("t") R"()
                THEN 'done'
                ELSE 'moved'
           END AS outcome
      FROM unnest($2::bigint[], $3::text[], $4::bigint[], $5::uuid[], $6::text[], $7::text[], $8::text[], $9::text[],
                  $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::bool[], $16::bool[], $17::bool[],
                  $18::bigint[], $19::text[], $20::text[], $21::bigint[], $22::text[], $23::bool[], $24::bool[],
                  $25::bigint[], $26::text[], $27::bool[], $28::text[], $29::bool[], $30::bigint[], $31::timestamptz[],
                  $32::bool[])
           WITH ORDINALITY
           AS s(chain_id, signer, token, tx_id, from_state, to_state, why, expect_receipt_hash,
                new_sub_state, error, type, data, more_events, quiet, failed_try, reset_tries,
                due_in_ms, tx_hash, receipt, receipt_block, receipt_hash, succeeded, drop_receipt,
                announced_block, announced_hash, retract, attempt_outcome, begins_broadcast, expect_claims, expect_due_at,
                expect_unsent, ord)
      )" FENCEPOST_STEP_LOOKUPS R"(
  ),
  applied AS (
    UPDATE tx_open AS t
       SET state = s.to_state,
           sub_state = s.sub_state,
           error_message = CASE WHEN s.error IS NULL THEN t.error_message ELSE nullif(s.error, '') END,
           retry_count = CASE WHEN s.reset_tries THEN 0
                              WHEN s.failed_try THEN t.retry_count + 1
                              ELSE t.retry_count
                         END,
           next_resubmit_at = CASE WHEN s.due_in_ms IS NULL THEN t.next_resubmit_at
                                   WHEN s.due_in_ms < 0 THEN NULL
                                   ELSE clock_timestamp() + make_interval(secs => s.due_in_ms / 1000.0)
                              END,
           watched_since = CASE WHEN s.expect_unsent THEN clock_timestamp() ELSE t.watched_since END,
           tx_hash = CASE WHEN s.drop_receipt THEN (SELECT a.tx_hash
                                                      FROM tx_attempt AS a
                                                     WHERE a.tx_id = t.tx_id AND a.kind <> 'external'
                                                     ORDER BY (a.raw IS NOT NULL) DESC, a.attempt DESC
                                                     LIMIT 1)
                          ELSE coalesce(s.tx_hash, t.tx_hash)
                     END,
           receipt_block = CASE WHEN s.drop_receipt THEN NULL ELSE coalesce(s.receipt_block, t.receipt_block) END,
           receipt_hash = CASE WHEN s.drop_receipt THEN NULL ELSE coalesce(s.receipt_hash, t.receipt_hash) END,
           succeeded = CASE WHEN s.drop_receipt THEN NULL ELSE coalesce(s.succeeded, t.succeeded) END,
           receipt_changed_at = CASE WHEN s.drop_receipt OR s.receipt IS NOT NULL THEN clock_timestamp()
                                     ELSE t.receipt_changed_at
                                END,
           announced_block = CASE WHEN s.retract THEN NULL ELSE coalesce(s.announced_block, t.announced_block) END,
           announced_hash = CASE WHEN s.retract THEN NULL ELSE coalesce(s.announced_hash, t.announced_hash) END,
           withdrawn = CASE WHEN s.retract THEN true WHEN s.announced_block IS NOT NULL THEN false ELSE t.withdrawn END,
           fencing_token = s.token,
           updated_at = clock_timestamp()
      FROM step AS s
     WHERE t.ctid = s.row_id
       AND s.outcome = 'done'
    RETURNING t.tx_id
  ),
  answered AS MATERIALIZED (  -- attempts that get an outcome
    SELECT s.attempt_outcome, s.error, s.begins_broadcast, a.row_id
      FROM step AS s
     CROSS JOIN LATERAL (SELECT a.ctid AS row_id
                           FROM tx_attempt AS a
                          WHERE a.chain_id = s.chain_id
                            AND a.tx_hash = coalesce(s.tx_hash, s.hash_before)
                            AND (s.begins_broadcast
                                 OR a.outcome IS DISTINCT FROM s.attempt_outcome
                                 OR (s.error IS NOT NULL AND a.message IS DISTINCT FROM nullif(s.error, '')))
                          LIMIT 1) AS a
     WHERE s.outcome = 'done'
       AND s.attempt_outcome IS NOT NULL
  ),
  judged AS (
    UPDATE tx_attempt AS a
       SET outcome = s.attempt_outcome,
           message = nullif(s.error, ''),
           claims = a.claims + CASE WHEN s.begins_broadcast THEN 1 ELSE 0 END
      FROM answered AS s
     WHERE a.ctid = s.row_id
    RETURNING a.tx_id
  ),
  received AS (
    INSERT INTO tx_receipt (tx_id, chain_id, receipt_block, receipt)
    SELECT tx_id, chain_id, receipt_block, receipt::jsonb
      FROM step
     WHERE outcome = 'done'
       AND receipt IS NOT NULL
  ),
  dropped AS (
    DELETE FROM tx_receipt
     WHERE tx_id = ANY (ARRAY(SELECT tx_id FROM step WHERE outcome = 'done' AND drop_receipt))
  ),
  unmined AS (
    UPDATE signer_nonce_cursor AS c
       SET first_unmined = least(c.first_unmined, n.nonce)
      FROM (SELECT c.row_id, min(s.nonce) AS nonce
              FROM step AS s
             CROSS JOIN LATERAL (SELECT c.ctid AS row_id
                                   FROM signer_nonce_cursor AS c
                                  WHERE c.chain_id = s.chain_id AND c.signer = s.signer
                                  LIMIT 1) AS c
             WHERE s.outcome = 'done'
               AND s.drop_receipt
             GROUP BY c.row_id) AS n
     WHERE c.ctid = n.row_id
  ),
  logged AS (
    INSERT INTO event (subject, type, from_state, to_state, sub_state, node, fencing_token, why, data)
    SELECT subject, type, from_state, to_state, sub_state, node, token, why, data
      FROM (SELECT ord, 0 AS place, 'tx/' || tx_id AS subject, type,
                   CASE WHEN NOT quiet THEN from_state END AS from_state,
                   CASE WHEN NOT quiet THEN to_state END AS to_state,
                   CASE WHEN NOT quiet THEN sub_state END AS sub_state,
                   CASE WHEN NOT quiet THEN $1 END AS node,
                   CASE WHEN NOT quiet THEN token END AS token,
                   CASE WHEN NOT quiet THEN why END AS why,
                   data::jsonb AS data
              FROM step
             WHERE outcome = 'done'
               AND (NOT quiet OR type IS NOT NULL)
             UNION ALL
            )" FENCEPOST_MORE_EVENTS R"() AS entry
     ORDER BY ord, place
  )
  SELECT outcome
    FROM step
   WHERE (SELECT tx_wrote_all((SELECT count(*) FROM step WHERE outcome = 'done'), (SELECT count(*) FROM applied)))
     AND (SELECT tx_wrote_all((SELECT count(*) FROM answered), (SELECT count(*) FROM judged)))
   ORDER BY ord)"};

namespace {

pg::Params apply_params(const std::string& node, const CommonColumns& common, const std::vector<const Step*>& steps) {
  Texts hash, receipt, receipt_hash, announced_hash, outcome, expect_due_at;
  Numbers due, receipt_block, announced_block, expect_claims;
  std::vector<bool> quiet, failed, reset, drop, retract, begins, unsent;
  std::vector<std::optional<bool>> succeeded;
  for (const auto* s : steps) {
    quiet.push_back(s->quiet);
    failed.push_back(s->failed_try);
    reset.push_back(s->reset_tries);
    due.push_back(s->due_in ? std::optional(s->due_in->count()) : std::nullopt);
    hash.push_back(s->tx_hash);
    receipt.push_back(s->receipt ? std::optional(s->receipt->json) : std::nullopt);
    receipt_block.push_back(s->receipt ? std::optional(s->receipt->block) : std::nullopt);
    receipt_hash.push_back(s->receipt ? std::optional(s->receipt->block_hash) : std::nullopt);
    succeeded.push_back(s->receipt ? std::optional(s->receipt->succeeded) : std::nullopt);
    drop.push_back(s->drop_receipt);
    announced_block.push_back(s->announced ? std::optional(s->announced->number) : std::nullopt);
    announced_hash.push_back(s->announced ? std::optional(s->announced->hash) : std::nullopt);
    retract.push_back(s->retract);
    outcome.push_back(name_of(kAttemptOutcomes, s->attempt_outcome));
    begins.push_back(s->begins_broadcast);
    expect_claims.push_back(s->expect_claims);
    expect_due_at.push_back(s->expect_due_at);
    unsent.push_back(s->expect_unsent);
  }
  auto params = common.params(node);
  params.add(quiet).add(failed).add(reset).add(due).add(hash);
  params.add(receipt).add(receipt_block).add(receipt_hash).add(succeeded).add(drop);
  params.add(announced_block).add(announced_hash).add(retract);
  params.add(outcome).add(begins).add(expect_claims).add(expect_due_at).add(unsent);
  return params;
}

}  // namespace

const Statement sql::kEndSteps{"tx_step_end", R"(
  WITH step AS MATERIALIZED (
    SELECT s.*, t.ctid AS row_id, t.retry_count, t.tx_hash, t.first_submitted_at, t.last_submit_at, t.receipt_block,
           t.receipt_hash, t.receipt_changed_at,
           CASE WHEN s.new_sub_state IS NULL THEN t.sub_state ELSE nullif(s.new_sub_state, '') END AS sub_state,
           CASE WHEN s.error IS NULL THEN t.error_message ELSE nullif(s.error, '') END AS error_message,
           CASE WHEN )" FENCEPOST_HELD_BY_US("s") R"( IS NOT true THEN 'fenced'
                WHEN t.chain_id = s.chain_id
                 AND t.signer = s.signer
                 AND t.state = s.from_state
                 AND (s.expect_receipt_hash IS NULL OR coalesce(t.receipt_hash, '') = s.expect_receipt_hash)
                THEN 'done'
                ELSE 'moved'
           END AS outcome
      FROM unnest($2::bigint[], $3::text[], $4::bigint[], $5::uuid[], $6::text[], $7::text[], $8::text[], $9::text[],
                  $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::text[])
           WITH ORDINALITY
           AS s(chain_id, signer, token, tx_id, from_state, to_state, why, expect_receipt_hash,
                new_sub_state, error, type, data, more_events, confirmations, ord)
      )" FENCEPOST_STEP_LOOKUPS R"(
  ),
  closed AS (
    DELETE FROM tx_open
     WHERE ctid = ANY (ARRAY(SELECT row_id FROM step WHERE outcome = 'done'))
    RETURNING tx_id
  ),
  ended AS (
    INSERT INTO tx_ended (tx_id, chain_id, state, sub_state, error_message, retry_count, tx_hash, first_submitted_at,
                          last_submit_at, receipt_block, receipt_hash, receipt_changed_at, confirmations,
                          fencing_token)
    SELECT tx_id, chain_id, to_state, sub_state, error_message, retry_count, tx_hash, first_submitted_at,
           last_submit_at, receipt_block, receipt_hash, receipt_changed_at, confirmations::jsonb,
           token
      FROM step
     WHERE outcome = 'done'
     ORDER BY ord
  ),
  logged AS (
    INSERT INTO event (subject, type, from_state, to_state, sub_state, node, fencing_token, why, data)
    SELECT subject, type, from_state, to_state, sub_state, node, token, why, data
      FROM (SELECT ord, 0 AS place, 'tx/' || tx_id AS subject, type, from_state, to_state, sub_state, $1 AS node, token,
                   why, data::jsonb AS data
              FROM step
             WHERE outcome = 'done'
             UNION ALL
            )" FENCEPOST_MORE_EVENTS R"() AS entry
     ORDER BY ord, place
  )
  SELECT outcome
    FROM step
   WHERE (SELECT tx_wrote_all((SELECT count(*) FROM step WHERE outcome = 'done'), (SELECT count(*) FROM closed)))
   ORDER BY ord)"};

namespace {

pg::Params end_params(const std::string& node, const CommonColumns& common, const std::vector<const Step*>& steps) {
  Texts confirmations;
  for (const auto* s : steps) confirmations.push_back(s->confirmations);
  auto params = common.params(node);
  params.add(confirmations);
  return params;
}

void check_allowed(const Step& step) {
  // Only the guard makes sure that no endpoint has what is signed again. An end from ALLOCATED releases the nonce,
  // which reject() does; a CREATED transaction has no row in tx_open.
  const bool resumes = step.from == TxState::kStuck && step.to == TxState::kAllocated;
  const bool releases = (step.from == TxState::kAllocated || step.from == TxState::kCreated) && step.ends();
  const bool guarded = resumes == step.expect_unsent && !releases;
  if (guarded && (step.from == step.to || kManagedTx.allowed(step.from, step.to))) return;
  throw Exception(internal("forbidden_step", "the lifecycle does not allow this step")
                      .with("from", std::string(kManagedTx.name(step.from)))
                      .with("to", std::string(kManagedTx.name(step.to))));
}

}  // namespace

pg::Batch step_statements(const std::string& node, const std::vector<Step>& steps) {
  FencedRows rows;
  std::vector<const Step*> moving, ending;
  for (const auto& step : steps) {
    check_allowed(step);
    rows.add(step.lease, step.tx_id);
    (step.ends() ? ending : moving).push_back(&step);
  }
  // A receipt that is dropped may lower first_unmined, which needs the cursor's lock.
  const bool drops = std::ranges::any_of(steps, &Step::drop_receipt);
  auto batch = drops ? fence_cursors_and_rows(node, rows) : fence_rows(node, rows);
  if (!moving.empty()) batch.add_params(sql::kApplySteps, apply_params(node, CommonColumns(moving), moving));
  if (!ending.empty()) batch.add_params(sql::kEndSteps, end_params(node, CommonColumns(ending), ending));
  return batch;
}

awaitable<std::vector<StepOutcome>> apply_steps(pg::Pool& pool, std::string node, std::vector<Step> steps) {
  std::vector<StepOutcome> out;
  if (steps.empty()) co_return out;
  const auto connection = co_await pool.acquire();
  const auto results = co_await connection->run(step_statements(node, steps));
  // Steps that end come last in the batch; each of the two statements answers in the order of its steps.
  const bool any_ends = std::ranges::any_of(steps, &Step::ends);
  int next_ending = 0, next_moving = 0;
  for (const auto& step : steps) {
    const auto& rows = step.ends() || !any_ends ? results.back() : results[results.size() - 2];
    out.push_back(read_outcome(rows[step.ends() ? next_ending++ : next_moving++]));
  }
  co_return out;
}

}  // namespace fencepost::tx

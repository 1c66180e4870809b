#include "tx/store/step_store.hpp"

namespace fencepost::tx {

using pg::Statement;

namespace {

std::vector<StepOutcome> read_outcomes(const pg::ResultSet& rows) {
  std::vector<StepOutcome> out;
  for (const auto row : rows) out.push_back(read_outcome(row));
  return out;
}

// [["TxSubmitted", {…}], …]: the data is JSON text already.
std::string events_json(const std::vector<std::pair<TxEvent, std::string>>& events) {
  std::string out = "[";
  for (const auto& [type, data] : events) {
    if (out.size() > 1) out += ',';
    out.append("[\"").append(kTxEvents.name(type)).append("\",").append(data).append("]");
  }
  return out += ']';
}

template <class Table, class Enum>
std::optional<std::string> name_of(const Table& table, const std::optional<Enum>& value) {
  return value ? std::optional(std::string(table.name(*value))) : std::nullopt;
}

pg::Params step_params(const std::string& node, const FencedRows& rows, const std::vector<Step>& steps) {
  using Texts = std::vector<std::optional<std::string>>;
  using Numbers = std::vector<std::optional<std::int64_t>>;
  Texts from, to, why, expect, sub_state, error, hash, receipt, receipt_hash, told_hash, confirmations, outcome;
  Numbers due, receipt_block, told_block;
  std::vector<bool> quiet, failed, reset, drop, retract, final;
  Numbers expect_claims;
  std::vector<bool> begins;
  Texts expect_due_at;
  std::vector<std::string> events;
  for (const auto& s : steps) {
    from.emplace_back(kManagedTx.name(s.from));
    to.emplace_back(kManagedTx.name(s.to));
    why.emplace_back(s.why);
    quiet.push_back(s.quiet);
    expect.push_back(s.expect_receipt_hash);
    sub_state.push_back(name_of(kSubStates, s.sub_state));
    error.push_back(s.error);
    failed.push_back(s.failed_try);
    reset.push_back(s.reset_tries);
    due.push_back(s.due_in ? std::optional(s.due_in->count()) : std::nullopt);
    hash.push_back(s.tx_hash);
    receipt.push_back(s.receipt ? std::optional(s.receipt->json) : std::nullopt);
    receipt_block.push_back(s.receipt ? std::optional(s.receipt->block) : std::nullopt);
    receipt_hash.push_back(s.receipt ? std::optional(s.receipt->block_hash) : std::nullopt);
    drop.push_back(s.drop_receipt);
    told_block.push_back(s.announced ? std::optional(s.announced->number) : std::nullopt);
    told_hash.push_back(s.announced ? std::optional(s.announced->hash) : std::nullopt);
    retract.push_back(s.retract);
    confirmations.push_back(s.confirmations);
    final.push_back(s.final);
    outcome.push_back(name_of(kAttemptOutcomes, s.attempt_outcome));
    begins.push_back(s.begins_broadcast);
    expect_claims.push_back(s.expect_claims);
    expect_due_at.push_back(s.expect_due_at);
    events.push_back(events_json(s.events));
  }
  return pg::Params::of(node, rows.chains, rows.signers, rows.tokens, rows.ids, from, to, why, quiet, expect, sub_state,
                        error, failed, reset, due, hash, receipt, receipt_block, receipt_hash, drop, told_block,
                        told_hash, retract, confirmations, final, outcome, begins, expect_claims, expect_due_at,
                        events);
}

}  // namespace

const Statement sql::kApplySteps{"tx_step_apply", R"(
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
                  $24::text[], $25::bool[], $26::text[], $27::bool[], $28::bigint[], $29::timestamptz[], $30::text[])
           WITH ORDINALITY
           AS s(chain_id, signer, token, tx_id, from_state, to_state, why, quiet, expect_receipt_hash, sub_state, error,
                failed_try, reset_tries, due_in_ms, tx_hash, receipt, receipt_block, receipt_hash, drop_receipt,
                told_block, told_hash, retract, confirmations, final, attempt_outcome, begins_broadcast, expect_claims,
                expect_due_at, events, ord)
  ),
  fit AS MATERIALIZED (  -- whose guards hold; the rows are locked, so they go on holding
    SELECT s.*, t.tx_hash AS hash_before
      FROM step AS s
      JOIN LATERAL (SELECT * FROM managed_tx AS t WHERE t.tx_id = s.tx_id LIMIT 1) AS t
        ON t.chain_id = s.chain_id AND t.signer = s.signer AND t.state = s.from_state
     WHERE s.held
       AND (s.expect_receipt_hash IS NULL OR coalesce(t.receipt_hash, '') = s.expect_receipt_hash)
       AND (s.expect_due_at IS NULL OR t.next_resubmit_at = s.expect_due_at)
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
           receipt_changed_at = CASE WHEN s.drop_receipt OR s.receipt IS NOT NULL THEN clock_timestamp()
                                     ELSE t.receipt_changed_at
                                END,
           told_block = CASE WHEN s.retract THEN NULL ELSE coalesce(s.told_block, t.told_block) END,
           told_hash = CASE WHEN s.retract THEN NULL ELSE coalesce(s.told_hash, t.told_hash) END,
           withdrawn = CASE WHEN s.retract THEN true WHEN s.told_block IS NOT NULL THEN false ELSE t.withdrawn END,
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

pg::Batch step_statements(const std::string& node, const std::vector<Step>& steps) {
  FencedRows rows;
  for (const auto& step : steps) {
    if (step.from != step.to && !kManagedTx.allowed(step.from, step.to)) {
      throw Exception(internal("forbidden_step", "the lifecycle does not allow this step")
                          .with("from", std::string(kManagedTx.name(step.from)))
                          .with("to", std::string(kManagedTx.name(step.to))));
    }
    rows.add(step.lease, step.tx_id);
  }
  auto batch = fence_rows(node, rows);
  batch.add_params(sql::kApplySteps, step_params(node, rows, steps));
  return batch;
}

awaitable<std::vector<StepOutcome>> apply_steps(pg::Pool& pool, std::string node, std::vector<Step> steps) {
  if (steps.empty()) co_return std::vector<StepOutcome>();
  const auto rows = co_await run_fenced(pool, step_statements(node, steps));
  co_return read_outcomes(rows);
}

}  // namespace fencepost::tx

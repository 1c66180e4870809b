#include "tx/store/cursor_store.hpp"

#include "tx/store/fence.hpp"
#include "tx/store/read_row.hpp"

namespace fencepost::tx {

using pg::Statement;

namespace {

CursorOutcome cursor_outcome(std::string_view text) {
  if (text == "seeded") return CursorOutcome::kSeeded;
  if (text == "advanced") return CursorOutcome::kAdvanced;
  if (text == "mismatch") return CursorOutcome::kMismatch;
  return CursorOutcome::kUnchanged;
}

}  // namespace

// Reserves at most 1,000 nonces for other senders. A larger jump is not normal use of a shared signer: an operator must
// accept it.
constexpr Statement kObserve{"tx_cursor_observe", R"(
  WITH seen AS MATERIALIZED (
    SELECT w.*, c.next_nonce, c.next_creation,
           CASE WHEN c.next_nonce IS NULL THEN 'seeded'
                WHEN w.nonce <= c.next_nonce THEN 'kept'
                WHEN w.shared AND w.nonce - c.next_nonce <= 1000 THEN 'advanced'
                ELSE 'mismatch'
           END AS outcome
      FROM unnest($2::bigint[], $3::text[], $4::bigint[], $5::bigint[], $6::bool[])
           WITH ORDINALITY AS w(chain_id, signer, token, nonce, shared, ord)
      JOIN signer_lease AS l USING (chain_id, signer)
      JOIN signer_nonce_cursor AS c USING (chain_id, signer)
     WHERE l.owner_node = $1
       AND l.fencing_token = w.token
       AND l.expires_at > clock_timestamp()
  ),
  external AS MATERIALIZED (
    SELECT gen_random_uuid() AS tx_id, s.chain_id, s.signer, s.token, s.next_creation + n - s.next_nonce AS creation_seq,
           n AS nonce
      FROM seen AS s
     CROSS JOIN LATERAL generate_series(s.next_nonce, s.nonce - 1) AS n
     WHERE s.outcome = 'advanced'
  ),
  opened AS (
    INSERT INTO tx_open (chain_id, signer, nonce, tx_id, state, sub_state, first_submitted_at, fencing_token)
    SELECT chain_id, signer, nonce, tx_id, 'TRACKING', 'external', clock_timestamp(), token
      FROM external
  ),
  recorded AS (
    INSERT INTO managed_tx (tx_id, chain_id, signer, creation_seq, nonce, payload, payload_hash, gas_limit)
    SELECT tx_id, chain_id, signer, creation_seq, nonce, '{"external": true}', '', 0
      FROM external
  ),
  logged AS (
    INSERT INTO event (subject, to_state, sub_state, node, fencing_token, why)
    SELECT 'tx/' || tx_id, 'TRACKING', 'external', $1, token, 'the chain counts this nonce as used'
      FROM external
  ),
  moved AS (
    UPDATE signer_nonce_cursor AS c
       SET next_nonce = CASE WHEN s.outcome IN ('seeded', 'advanced') THEN s.nonce ELSE c.next_nonce END,
           next_creation = c.next_creation + CASE WHEN s.outcome = 'advanced' THEN s.nonce - s.next_nonce ELSE 0 END,
           first_waiting = c.first_waiting + CASE WHEN s.outcome = 'advanced' AND c.first_waiting = c.next_creation
                                                  THEN s.nonce - s.next_nonce
                                                  ELSE 0
                                             END,
           chain_nonce = s.nonce,
           chain_nonce_at = clock_timestamp(),
           needs_reconcile = c.needs_reconcile OR s.outcome = 'mismatch',
           reconcile_reason = CASE WHEN s.outcome = 'mismatch' THEN 'chain_ahead' ELSE c.reconcile_reason END,
           gap_nonce = CASE WHEN s.outcome = 'mismatch' THEN NULL ELSE c.gap_nonce END,
           fencing_token = s.token,
           updated_at = clock_timestamp()
      FROM seen AS s
     WHERE c.chain_id = s.chain_id
       AND c.signer = s.signer
    RETURNING s.ord, s.outcome, c.next_nonce
  )
  SELECT ord, outcome, next_nonce FROM moved)"};

pg::Batch observe_statements(const std::string& node, const std::vector<ChainNonce>& observed) {
  FencedLeases w;
  std::vector<std::int64_t> nonces;
  std::vector<bool> shared;
  for (const auto& seen : observed) {
    w.add(seen.lease);
    nonces.push_back(seen.nonce);
    shared.push_back(seen.shared);
  }
  auto batch = fence_cursors(node, w);
  batch.add(kObserve, node, w.chains, w.signers, w.tokens, nonces, shared);
  return batch;
}

awaitable<std::vector<CursorResult>> observe_chain_nonces(pg::Pool& pool, std::string node,
                                                          std::vector<ChainNonce> observed) {
  std::vector<CursorResult> out(observed.size());
  if (observed.empty()) co_return out;
  const auto rows = co_await run_fenced(pool, observe_statements(node, observed));
  for (const auto row : rows) {
    out[row.get<std::size_t>("ord") - 1] = {cursor_outcome(row.get<std::string_view>("outcome")),
                                            row.get<std::int64_t>("next_nonce")};
  }
  co_return out;
}

constexpr Statement kRead{"tx_cursor_read", R"(
  SELECT c.chain_id, c.signer, c.next_nonce, c.chain_nonce, c.gap_nonce,
         CASE WHEN c.needs_reconcile THEN coalesce(c.reconcile_reason, 'chain_ahead') END AS reconcile_reason,
         coalesce(c.chain_nonce_at, '-infinity') <= clock_timestamp() - make_interval(secs => $3 / 1000.0) AS is_old
    FROM signer_nonce_cursor AS c
    JOIN unnest($1::bigint[], $2::text[]) AS w(chain_id, signer) USING (chain_id, signer))"};

awaitable<std::vector<Cursor>> read_cursors(pg::Pool& pool, std::vector<SignerLease> leases,
                                            std::chrono::milliseconds timeout) {
  const FencedLeases w(leases);
  const auto rows = co_await pool.query(kRead, w.chains, w.signers, timeout.count());
  std::vector<Cursor> out;
  for (const auto row : rows) {
    out.push_back({.key = read_key(row),
                   .next_nonce = row.get<std::optional<std::int64_t>>("next_nonce"),
                   .chain_nonce = row.get<std::optional<std::int64_t>>("chain_nonce"),
                   .reason = read_reconcile_reason(row),
                   .gap_nonce = row.get<std::optional<std::int64_t>>("gap_nonce"),
                   .chain_nonce_is_old = row.get<bool>("is_old")});
  }
  co_return out;
}

}  // namespace fencepost::tx

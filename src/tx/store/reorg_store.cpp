#include "tx/store/reorg_store.hpp"

#include "pg/error.hpp"
#include "tx/store/fence.hpp"
#include "tx/store/read_row.hpp"

namespace fencepost::tx {

using pg::Statement;

// Locks rows in the same order as every other writer, to avoid deadlocks.
#define FENCEPOST_MAKE_DUE_FROM(how_locked) \
  R"(
  WITH behind AS MATERIALIZED (
    SELECT t.tx_id
      FROM unnest($2::bigint[], $3::text[], $4::bigint[], $5::bigint[]) AS w(chain_id, signer, token, nonce)
      JOIN signer_lease AS l
        ON l.chain_id = w.chain_id AND l.signer = w.signer AND l.fencing_token = w.token AND l.owner_node = $1
      JOIN tx_open AS t ON t.chain_id = w.chain_id AND t.signer = w.signer AND t.nonce >= w.nonce
     WHERE t.receipt_block IS NULL
     ORDER BY t.chain_id, t.signer, t.nonce
       FOR NO KEY UPDATE OF t )" how_locked R"(
  )
  UPDATE tx_open
     SET next_resubmit_at = clock_timestamp()
   WHERE tx_id = ANY (ARRAY(SELECT tx_id FROM behind)))"
constexpr Statement kMakeDueFrom{"tx_make_due_from", FENCEPOST_MAKE_DUE_FROM("")};
constexpr Statement kMakeFreeDueFrom{"tx_make_free_due_from", FENCEPOST_MAKE_DUE_FROM("SKIP LOCKED")};
#undef FENCEPOST_MAKE_DUE_FROM

awaitable<> make_due_from(pg::Pool& pool, std::string node, std::vector<std::pair<SignerLease, std::int64_t>> from) {
  if (from.empty()) co_return;
  FencedLeases w;
  std::vector<std::int64_t> nonces;
  for (const auto& [lease, nonce] : from) {
    w.add(lease);
    nonces.push_back(nonce);
  }
  try {
    pg::Batch batch;
    batch.add(kMakeDueFrom, node, w.chains, w.signers, w.tokens, nonces).lock_timeout(kLockPatience);
    const auto connection = co_await pool.acquire();
    co_await connection->run(batch);
    co_return;
  } catch (const pg::QueryError& error) {
    if (!error.is_timeout()) throw;
  }
  // Another session holds a lock for too long: update the rows that are not locked.
  co_await pool.execute(kMakeFreeDueFrom, node, w.chains, w.signers, w.tokens, nonces);
}

constexpr Statement kEndedAbove{"tx_ended_above", R"(
  SELECT tx_id, tx_hash, receipt_block, receipt_hash
    FROM tx_ended
   WHERE chain_id = $1
     AND receipt_block BETWEEN $2 + 1 AND $3
     AND sub_state IS DISTINCT FROM 'finality_violated')"};

constexpr Statement kReport{"tx_report_violations", R"(
  WITH free AS MATERIALIZED (
    SELECT tx_id
      FROM tx_ended
     WHERE tx_id = ANY ($2::uuid[])
     ORDER BY tx_id
       FOR NO KEY UPDATE SKIP LOCKED
  ),
  marked AS (
    UPDATE tx_ended
       SET sub_state = 'finality_violated',
           updated_at = clock_timestamp()
     WHERE tx_id = ANY (ARRAY(SELECT tx_id FROM free))
       AND sub_state IS DISTINCT FROM 'finality_violated'
    RETURNING tx_id, chain_id, tx_hash, receipt_block, receipt_hash, state, fencing_token
  ),
  logged AS (
    INSERT INTO event (subject, type, from_state, to_state, sub_state, node, fencing_token, why, data)
    SELECT 'tx/' || e.tx_id, 'TxFinalityViolated', e.state, e.state, 'finality_violated', $1, e.fencing_token,
           'its final block is no longer on the chain',
           jsonb_build_object('txId', e.tx_id, 'chainId', e.chain_id, 'signer', m.signer, 'nonce', m.nonce,
                              'txHash', e.tx_hash, 'blockNumber', e.receipt_block, 'blockHash', e.receipt_hash)
      FROM marked AS e
      JOIN managed_tx AS m USING (tx_id)
  )
  SELECT e.tx_id, e.chain_id, m.signer, m.nonce, e.tx_hash, e.receipt_block, e.fencing_token
    FROM marked AS e
    JOIN managed_tx AS m USING (tx_id))"};

awaitable<Violations> report_finality_violations(pg::Pool& pool, std::string node, std::int64_t chain_id,
                                                 std::int64_t ancestor, std::int64_t final_number,
                                                 const evm::HeaderWindow& window) {
  const auto ended = co_await pool.query(kEndedAbove, chain_id, ancestor, final_number);
  std::vector<Uuid> undone;
  for (const auto row : ended) {
    const auto on_branch =
        window.contains(row.get<std::int64_t>("receipt_block"), row.get<std::string_view>("receipt_hash"));
    // nullopt: the block is above the head or below the window, so nothing is known yet.
    if (on_branch == false) undone.push_back(row.get<Uuid>("tx_id"));
  }
  Violations violations;
  if (undone.empty()) co_return violations;
  for (const auto row : co_await pool.execute(kReport, node, undone)) {
    violations.announced.push_back({.tx_id = row.get<Uuid>("tx_id"),
                                    .key = read_key(row),
                                    .nonce = row.get<std::optional<std::int64_t>>("nonce"),
                                    .tx_hash = row.get<std::optional<std::string>>("tx_hash"),
                                    .block = row.get<std::int64_t>("receipt_block"),
                                    .fencing_token = row.get<std::optional<std::int64_t>>("fencing_token")});
  }
  violations.all = violations.announced.size() == undone.size();
  co_return violations;
}

}  // namespace fencepost::tx

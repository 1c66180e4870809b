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

const Statement sql::kEndedAbove{"tx_ended_above", R"(
  SELECT tx_id, receipt_block, receipt_hash
    FROM tx_ended
   WHERE chain_id = $1
     AND receipt_block BETWEEN $2 + 1 AND $3
     AND sub_state IS DISTINCT FROM 'finality_violated')"};

// By the receipts, which have an index of their blocks. A receipt of an open transaction is no end.
const Statement sql::kEndedBelow{"tx_ended_below", R"(
  WITH highest AS MATERIALIZED (
    SELECT r.receipt_block
      FROM tx_receipt AS r
     CROSS JOIN LATERAL (SELECT e.sub_state FROM tx_ended AS e WHERE e.tx_id = r.tx_id LIMIT 1) AS e
     WHERE r.chain_id = $1
       AND r.receipt_block < $2
       AND e.sub_state IS DISTINCT FROM 'finality_violated'
     ORDER BY r.receipt_block DESC
     LIMIT 1
  )
  SELECT e.tx_id, e.receipt_block, e.receipt_hash
    FROM highest AS h
   CROSS JOIN LATERAL (SELECT r.tx_id
                         FROM tx_receipt AS r
                        WHERE r.chain_id = $1 AND r.receipt_block = h.receipt_block) AS r
   CROSS JOIN LATERAL (SELECT * FROM tx_ended AS e WHERE e.tx_id = r.tx_id LIMIT 1) AS e
   WHERE e.sub_state IS DISTINCT FROM 'finality_violated'
     AND e.receipt_block IS NOT NULL)"};

namespace {

std::vector<EndedTx> read_ended(const pg::ResultSet& rows) {
  std::vector<EndedTx> out;
  for (const auto row : rows) {
    out.push_back({.tx_id = row.get<Uuid>("tx_id"),
                   .block = row.get<std::int64_t>("receipt_block"),
                   .block_hash = row.get<std::string>("receipt_hash")});
  }
  return out;
}

}  // namespace

awaitable<std::vector<EndedTx>> ended_above(pg::Pool& pool, std::int64_t chain_id, std::int64_t ancestor,
                                            std::int64_t final_number) {
  co_return read_ended(co_await pool.query(sql::kEndedAbove, chain_id, ancestor, final_number));
}

awaitable<std::vector<EndedTx>> ended_below(pg::Pool& pool, std::int64_t chain_id, std::int64_t block) {
  co_return read_ended(co_await pool.query(sql::kEndedBelow, chain_id, block));
}

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

awaitable<Violations> report_finality_violations(pg::Pool& pool, std::string node, std::vector<Uuid> undone) {
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

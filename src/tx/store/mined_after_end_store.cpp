#include "tx/store/mined_after_end_store.hpp"

#include "tx/store/read_row.hpp"

namespace fencepost::tx {

using pg::Statement;

// The ended transactions of chain `chain` whose attempt is `hash`: `a`, `e` and `m`.
#define FENCEPOST_ENDED_UNMINED(chain, hash)                                                                         \
  "CROSS JOIN LATERAL (SELECT a.tx_id, a.tx_hash, a.kind FROM tx_attempt AS a WHERE a.chain_id = " chain             \
  " AND a.tx_hash = " hash                                                                                           \
  " LIMIT 1) AS a CROSS JOIN LATERAL (SELECT e.sub_state, e.receipt_block FROM tx_ended AS e WHERE e.tx_id = "       \
  "a.tx_id LIMIT 1) AS e CROSS JOIN LATERAL (SELECT m.signer, m.nonce, m.released_nonce FROM managed_tx AS m WHERE " \
  "m.tx_id = a.tx_id LIMIT 1) AS m WHERE a.kind <> 'external' AND (e.receipt_block IS NULL OR m.released_nonce IS "  \
  "NOT NULL) AND e.sub_state IS DISTINCT FROM 'mined_after_end'"

const Statement sql::kFindMinedAfterEnd{"tx_find_mined_after_end", R"(
  SELECT a.tx_hash
    FROM unnest($2::text[]) AS hash
   )" FENCEPOST_ENDED_UNMINED("$1", "hash")};

awaitable<std::vector<std::string>> find_mined_after_end(pg::Pool& pool, std::int64_t chain_id,
                                                         std::vector<std::string> hashes) {
  std::vector<std::string> out;
  if (hashes.empty()) co_return out;
  for (const auto row : co_await pool.query(sql::kFindMinedAfterEnd, chain_id, hashes)) {
    out.push_back(row.get<std::string>("tx_hash"));
  }
  co_return out;
}

const Statement sql::kReportMinedAfterEnd{"tx_report_mined_after_end", R"(
  WITH found AS MATERIALIZED (
    SELECT DISTINCT ON (a.tx_id) a.tx_id, a.tx_hash, s.block, s.block_hash, m.signer,
           coalesce(m.nonce, m.released_nonce) AS nonce
      FROM unnest($3::text[], $4::bigint[], $5::text[]) AS s(tx_hash, block, block_hash)
     )" FENCEPOST_ENDED_UNMINED("$2", "s.tx_hash") R"(
     ORDER BY a.tx_id
  ),
  free AS MATERIALIZED (
    SELECT e.tx_id, e.sub_state
      FROM tx_ended AS e
     WHERE e.tx_id = ANY (ARRAY(SELECT tx_id FROM found))
       AND e.sub_state IS DISTINCT FROM 'mined_after_end'
     ORDER BY e.tx_id
       FOR NO KEY UPDATE SKIP LOCKED
  ),
  marked AS (
    UPDATE tx_ended AS e
       SET sub_state = 'mined_after_end',
           updated_at = clock_timestamp()
     WHERE e.tx_id = ANY (ARRAY(SELECT tx_id FROM free))
       AND e.sub_state IS DISTINCT FROM 'mined_after_end'
    RETURNING e.tx_id, e.chain_id, e.state, e.fencing_token
  ),
  told AS MATERIALIZED (
    SELECT d.chain_id, d.state, d.fencing_token, f.*, r.sub_state AS ended_as
      FROM marked AS d
      JOIN found AS f USING (tx_id)
      JOIN free AS r USING (tx_id)
  ),
  logged AS (
    INSERT INTO event (subject, type, from_state, to_state, sub_state, node, fencing_token, why, data)
    SELECT 'tx/' || tx_id, 'TxMinedAfterEnd', state, state, 'mined_after_end', $1, fencing_token,
           'it had ended as ' || coalesce(ended_as, 'never mined') || ', and block ' || block || ' lists it',
           jsonb_build_object('txId', tx_id, 'chainId', chain_id, 'signer', signer, 'nonce', nonce, 'txHash', tx_hash,
                              'blockNumber', block, 'blockHash', block_hash)
      FROM told
  )
  SELECT tx_id, chain_id, signer, nonce, tx_hash, block, fencing_token
    FROM told)"};

#undef FENCEPOST_ENDED_UNMINED

awaitable<std::vector<MinedAfterEnd>> report_mined_after_end(pg::Pool& pool, std::string node, std::int64_t chain_id,
                                                             std::vector<ListedTx> listed) {
  std::vector<std::string> hashes, block_hashes;
  std::vector<std::int64_t> blocks;
  for (auto& one : listed) {
    hashes.push_back(std::move(one.tx_hash));
    blocks.push_back(one.block_number);
    block_hashes.push_back(std::move(one.block_hash));
  }
  std::vector<MinedAfterEnd> out;
  for (const auto row :
       co_await pool.execute(sql::kReportMinedAfterEnd, node, chain_id, hashes, blocks, block_hashes)) {
    out.push_back({.tx_id = row.get<Uuid>("tx_id"),
                   .key = read_key(row),
                   .nonce = row.get<std::optional<std::int64_t>>("nonce"),
                   .tx_hash = row.get<std::string>("tx_hash"),
                   .block = row.get<std::int64_t>("block"),
                   .fencing_token = row.get<std::optional<std::int64_t>>("fencing_token")});
  }
  co_return out;
}

}  // namespace fencepost::tx

#include "tx/store/give_up_store.hpp"

#include "tx/store/fence.hpp"
#include "tx/store/operator_write.hpp"

namespace fencepost::tx {

using pg::Statement;

const Statement sql::kGiveUp{"tx_operator_give_up", R"(
  WITH )" FENCEPOST_HELD R"(,
  chosen AS MATERIALIZED (
    SELECT t.ctid AS row_id, t.tx_id, t.nonce, t.retry_count, t.tx_hash, t.first_submitted_at, t.last_submit_at
      FROM held
     CROSS JOIN LATERAL (SELECT t.ctid, t.* FROM tx_open AS t WHERE t.tx_id = $5::uuid LIMIT 1) AS t
     WHERE t.chain_id = $2
       AND t.signer = $3
       AND t.state = 'STUCK'
       AND t.sub_state = 'nonce_taken'
       AND t.receipt_block IS NULL
       AND 0 = (SELECT count(*)  -- a subquery of its own: no plan that reads all attempts
                  FROM tx_attempt AS a
                 WHERE a.tx_id = t.tx_id
                   AND a.kind <> 'external'
                   AND a.tx_hash <> ALL ($10::text[]))
  ),
  closed AS (
    DELETE FROM tx_open
     WHERE ctid = ANY (ARRAY(SELECT row_id FROM chosen))
    RETURNING tx_id
  ),
  ended AS (
    INSERT INTO tx_ended (tx_id, chain_id, state, sub_state, error_message, retry_count, tx_hash, first_submitted_at,
                          last_submit_at, fencing_token)
    SELECT tx_id, $2, 'FAILED_FINAL', 'given_up', $6 || ': ' || $7, retry_count, tx_hash, first_submitted_at,
           last_submit_at, $4
      FROM chosen
  ),
  logged AS (
    INSERT INTO event (subject, type, from_state, to_state, sub_state, node, fencing_token, why, data)
    SELECT 'tx/' || tx_id, 'TxFailed', 'STUCK', 'FAILED_FINAL', 'given_up', $1, $4, )" FENCEPOST_WHY R"(,
           jsonb_build_object('txId', tx_id, 'chainId', $2, 'signer', $3, 'nonce', nonce, 'reason', 'given_up',
                              'detail', 'another transaction, which could not be found, took the nonce: ' || $7)
      FROM chosen
  ),
  )" FENCEPOST_AUDIT("chosen") FENCEPOST_OUTCOME("chosen") R"(
   WHERE (SELECT tx_wrote_all((SELECT count(*) FROM chosen), (SELECT count(*) FROM closed))))"};

pg::Batch give_up_statements(const std::string& node, const OperatorAct& act, const std::vector<std::string>& hashes) {
  FencedRows rows;
  rows.add(act.lease, *act.tx_id);
  auto batch = fence_rows(node, rows);
  auto params = params_of(node, act);
  params.add(hashes);
  batch.add_params(sql::kGiveUp, std::move(params));
  return batch;
}

awaitable<StepOutcome> give_up(pg::Pool& pool, std::string node, OperatorAct act, std::vector<std::string> hashes) {
  const auto rows = co_await run_or_refuse(pool, give_up_statements(node, act, hashes));
  co_return read_outcome(rows.one());
}

}  // namespace fencepost::tx

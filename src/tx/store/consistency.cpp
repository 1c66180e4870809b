#include "tx/store/consistency.hpp"

#include <utility>

#include "tx/store/read_row.hpp"
#include "tx/store/sql_parts.hpp"

namespace fencepost::tx {

using pg::Statement;

namespace {

// Up to $1 examples of each fault, with the number of all.
#define FENCEPOST_FAULT_EXAMPLES                                                                                      \
  "SELECT what, count, tx_id::text AS example FROM (SELECT what, tx_id, count(*) OVER (PARTITION BY what) AS count, " \
  "row_number() OVER (PARTITION BY what ORDER BY tx_id) AS place FROM fault) AS numbered WHERE place <= $1 ORDER BY " \
  "what, place"

std::vector<Fault> read_faults(const pg::ResultSet& rows) {
  std::vector<Fault> out;
  for (const auto row : rows) {
    auto what = row.get<std::string>("what");
    if (out.empty() || out.back().what != what) {
      out.push_back({.what = std::move(what), .count = row.get<std::int64_t>("count"), .examples = {}});
    }
    out.back().examples.push_back(row.get<std::string>("example"));
  }
  return out;
}

// On a connection of its own, so that no other query waits behind it.
awaitable<std::vector<pg::ResultSet>> read_alone(pg::Pool& pool, const pg::Batch& batch) {
  const auto connection = co_await pool.acquire();
  co_return co_await connection->run(batch, {.access = pg::Access::kRead});
}

}  // namespace

// LIMIT 1 keeps the planner from reading managed_tx and tx_ended as a whole.
constexpr Statement kWorkFaults{"tx_work_faults", R"(
  WITH fault AS MATERIALIZED (
    SELECT f.what, o.tx_id
      FROM tx_open AS o
      LEFT JOIN LATERAL (SELECT * FROM managed_tx AS m WHERE m.tx_id = o.tx_id LIMIT 1) AS m ON true
      LEFT JOIN LATERAL (SELECT e.tx_id FROM tx_ended AS e WHERE e.tx_id = o.tx_id LIMIT 1) AS e ON true
      LEFT JOIN LATERAL (SELECT r.receipt_block FROM tx_receipt AS r WHERE r.tx_id = o.tx_id LIMIT 1) AS r ON true
      LEFT JOIN LATERAL (SELECT c.first_unmined
                           FROM signer_nonce_cursor AS c
                          WHERE c.chain_id = o.chain_id AND c.signer = o.signer
                          LIMIT 1) AS c ON true
     CROSS JOIN LATERAL (VALUES
             ('open without a record', m.tx_id IS NULL),
             ('open without a nonce in its record', m.tx_id IS NOT NULL AND m.nonce IS NULL),
             ('open under another signer or nonce than in its record',
              (m.chain_id, m.signer, m.nonce) <> (o.chain_id, o.signer, o.nonce)),
             ('open and ended', e.tx_id IS NOT NULL),
             ('open with another block than its receipt', r.receipt_block IS DISTINCT FROM o.receipt_block),
             ('open below first_unmined of its signer', o.receipt_block IS NULL AND o.nonce < c.first_unmined))
             AS f(what, found)
     WHERE f.found
     UNION ALL
    SELECT f.what, m.tx_id
      FROM managed_tx AS m
      LEFT JOIN LATERAL (SELECT e.tx_id FROM tx_ended AS e WHERE e.tx_id = m.tx_id LIMIT 1) AS e ON true
      LEFT JOIN LATERAL (SELECT c.first_waiting
                           FROM signer_nonce_cursor AS c
                          WHERE c.chain_id = m.chain_id AND c.signer = m.signer
                          LIMIT 1) AS c ON true
     CROSS JOIN LATERAL (VALUES
             ('ended without a nonce in its record', e.tx_id IS NOT NULL),
             ('waiting below first_waiting of its signer', m.creation_seq < c.first_waiting)) AS f(what, found)
     WHERE )" FENCEPOST_WAITS("m") R"(
       AND f.found
  )
  )" FENCEPOST_FAULT_EXAMPLES};

constexpr Statement kWorkCounts{"tx_work_counts", R"(
  SELECT (SELECT count(*) FROM tx_open) AS open,
         (SELECT count(*) FROM managed_tx AS m WHERE )" FENCEPOST_WAITS("m") R"() AS waiting)"};

awaitable<WorkReport> check_work(pg::Pool& pool) {
  pg::Batch batch;
  batch.add(kWorkFaults, kFaultExamples).add(kWorkCounts);
  const auto results = co_await read_alone(pool, batch);
  const auto counts = results.back().one();
  co_return WorkReport{.open = counts.get<std::int64_t>("open"),
                       .waiting = counts.get<std::int64_t>("waiting"),
                       .faults = read_faults(results.front())};
}

// Both directions in one pass.
constexpr Statement kRecordFaults{"tx_record_faults", R"(
  WITH fault AS MATERIALIZED (
    SELECT CASE WHEN m.tx_id IS NULL THEN 'ended without a record' ELSE 'neither waiting, open nor ended' END AS what,
           tx_id
      FROM managed_tx AS m
      FULL JOIN tx_ended AS e USING (tx_id)
     WHERE m.tx_id IS NULL
        OR (e.tx_id IS NULL
            AND NOT )" FENCEPOST_WAITS("m") R"(
            AND NOT EXISTS (SELECT FROM tx_open AS o WHERE o.tx_id = m.tx_id))
  )
  )" FENCEPOST_FAULT_EXAMPLES};

// Sessions of nodes avoid it (pg/connector.hpp), but here whole tables are to be read.
constexpr Statement kAllowWholeTables{"tx_allow_whole_tables", "SELECT set_config('enable_seqscan', 'on', true)"};

awaitable<std::vector<Fault>> check_records(pg::Pool& pool) {
  pg::Batch batch;
  batch.add(kAllowWholeTables).add(kRecordFaults, kFaultExamples);
  const auto results = co_await read_alone(pool, batch);
  co_return read_faults(results.back());
}

#undef FENCEPOST_FAULT_EXAMPLES

constexpr Statement kWaitingSigners{"tx_waiting_signers", R"(
  SELECT chain_id, signer, gap_nonce, coalesce(reconcile_reason, 'chain_ahead') AS reconcile_reason
    FROM signer_nonce_cursor
   WHERE needs_reconcile
   ORDER BY chain_id, signer
   LIMIT $1)"};

awaitable<std::vector<WaitingSigner>> waiting_signers(pg::Pool& pool, std::size_t limit) {
  std::vector<WaitingSigner> out;
  for (const auto row : co_await pool.query(kWaitingSigners, limit)) {
    out.push_back({.key = read_key(row),
                   .reason = read_reconcile_reason(row).value_or(ReconcileReason::kChainAhead),
                   .gap_nonce = row.get<std::optional<std::int64_t>>("gap_nonce")});
  }
  co_return out;
}

}  // namespace fencepost::tx

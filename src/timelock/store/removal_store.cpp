#include "timelock/store/removal_store.hpp"

#include "timelock/store/scan_store.hpp"

namespace fencepost::timelock {

using pg::Statement;

namespace {

// Halted: nothing of it is announced or moved by time. Complete: a history scan in flight does not advance it.
constexpr Statement kMark{"timelock_removal_mark", R"(
  UPDATE timelock
     SET removing_at = clock_timestamp(),
         halted_block = 0,
         history_done_at = coalesce(history_done_at, clock_timestamp()),
         updated_at = clock_timestamp()
   WHERE chain_id = $1
     AND contract_address = $2
     AND removing_at IS NULL)"};

// The lock keeps the marked row until the part is deleted: the contract cannot be imported again meanwhile, so every
// row that the part sees is an old one.
#define FENCEPOST_REMOVE_PART(table, condition)                                                                  \
  "WITH marked AS MATERIALIZED (SELECT FROM timelock WHERE chain_id = $1 AND contract_address = $2 AND "         \
  "removing_at IS NOT NULL FOR KEY SHARE) DELETE FROM " table " WHERE ctid = ANY (ARRAY(SELECT ctid FROM " table \
  " WHERE " condition "chain_id = $1 AND contract_address = $2 LIMIT $3)) AND EXISTS (SELECT FROM marked)"

// Flows first: one without its events would look as if a reorg had removed it.
constexpr Statement kRemoveFlows{
    "timelock_removal_flows",
    FENCEPOST_REMOVE_PART("timelock_transaction_flows", "timelock_standard IN ('compound', 'openzeppelin') AND ")};
constexpr Statement kRemoveCompoundEvents{"timelock_removal_compound_events",
                                          FENCEPOST_REMOVE_PART("compound_timelock_transactions", "")};
constexpr Statement kRemoveOpenZeppelinEvents{"timelock_removal_openzeppelin_events",
                                              FENCEPOST_REMOVE_PART("openzeppelin_timelock_transactions", "")};
constexpr Statement kRemoveGuardEvents{"timelock_removal_guard_events",
                                       FENCEPOST_REMOVE_PART("timelock_guard_event", "")};

// What a reorg folded meanwhile goes with the row.
constexpr Statement kRemoveRow{"timelock_removal_row", R"(
  WITH gone AS (
    DELETE FROM timelock
     WHERE chain_id = $1
       AND contract_address = $2
       AND removing_at IS NOT NULL
    RETURNING chain_id, contract_address
  ),
  compound AS (
    DELETE FROM compound_timelock_transactions AS e
     USING gone AS g
     WHERE (e.chain_id, e.contract_address) = (g.chain_id, g.contract_address)
  ),
  openzeppelin AS (
    DELETE FROM openzeppelin_timelock_transactions AS e
     USING gone AS g
     WHERE (e.chain_id, e.contract_address) = (g.chain_id, g.contract_address)
  )
  DELETE FROM timelock_guard_event AS e
   USING gone AS g
   WHERE (e.chain_id, e.contract_address) = (g.chain_id, g.contract_address))"};

constexpr Statement kMarked{"timelock_removal_find", R"(
  SELECT chain_id, contract_address
    FROM timelock
   WHERE chain_id = $1
     AND ($2::text IS NULL OR contract_address = $2)
     AND removing_at IS NOT NULL)"};

}  // namespace

awaitable<bool> begin_removal(pg::Pool& pool, ContractKey key) {
  pg::Batch batch;
  batch.add(sql::kTouchContracts, key.chain_id).add(kMark, key.chain_id, key.address);
  const auto results = co_await pool.run(std::move(batch));
  co_return results[1].affected() == 1;
}

awaitable<> finish_removal(pg::Pool& pool, ContractKey key) {
  const auto marked = co_await pool.query(kMarked, key.chain_id, std::optional(key.address));
  if (marked.empty()) co_return;
  for (const auto* part : {&kRemoveFlows, &kRemoveCompoundEvents, &kRemoveOpenZeppelinEvents, &kRemoveGuardEvents}) {
    while (true) {
      const auto removed = co_await pool.execute(*part, key.chain_id, key.address, kRowsRemovedAtOnce);
      if (removed.affected() < kRowsRemovedAtOnce) break;
    }
  }
  pg::Batch batch;
  batch.add(sql::kTouchContracts, key.chain_id).add(kRemoveRow, key.chain_id, key.address);
  co_await pool.run(std::move(batch));
}

awaitable<std::vector<ContractKey>> unfinished_removals(pg::Pool& pool, std::int64_t chain_id) {
  const auto rows = co_await pool.query(kMarked, chain_id, std::optional<std::string>());
  std::vector<ContractKey> out;
  out.reserve(rows.size());
  for (const auto row : rows) out.push_back({chain_id, row.get<std::string>("contract_address")});
  co_return out;
}

}  // namespace fencepost::timelock

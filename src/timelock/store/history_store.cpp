#include "timelock/store/history_store.hpp"

#include <algorithm>

#include "timelock/store/scan_store.hpp"

namespace fencepost::timelock {

using pg::Statement;

namespace {

constexpr Statement kWatched{"timelock_watched", R"(
  SELECT contract_address, standard, history_next,
         CASE WHEN history_done_at IS NULL THEN history_last ELSE history_next - 1 END AS history_last,
         CASE WHEN rules_wanted > rules_read THEN rules_wanted END AS rules_wanted
    FROM timelock
   WHERE chain_id = $1
     AND halted_block IS NULL
   ORDER BY contract_address)"};

// All of the contracts or none.
constexpr Statement kAdvance{"timelock_history_advance", R"(
  WITH ours AS MATERIALIZED (
    SELECT chain_id, contract_address
      FROM timelock
     WHERE chain_id = $1
       AND contract_address = ANY ($2::text[])
       AND history_next = $3
       AND history_last >= $4::bigint
       AND history_done_at IS NULL
     ORDER BY contract_address
       FOR NO KEY UPDATE)
  UPDATE timelock AS t
     SET history_next = $4::bigint + 1,
         history_done_at = CASE WHEN $4::bigint >= t.history_last THEN clock_timestamp() END,
         last_error = NULL,
         updated_at = clock_timestamp()
    FROM ours AS o
   WHERE (t.chain_id, t.contract_address) = (o.chain_id, o.contract_address)
     AND (SELECT count(*) FROM ours) = cardinality($2::text[]))"};

constexpr Statement kHalt{"timelock_halt", R"(
  UPDATE timelock
     SET halted_block = least($3, CASE WHEN history_done_at IS NULL THEN history_next END),
         last_error = $4,
         updated_at = clock_timestamp()
   WHERE chain_id = $1
     AND contract_address = $2
     AND halted_block IS NULL)"};

constexpr Statement kNoteHistoryFailure{"timelock_history_failure", R"(
  UPDATE timelock
     SET last_error = $3
   WHERE chain_id = $1
     AND contract_address = ANY ($2::text[])
     AND last_error IS DISTINCT FROM $3)"};

}  // namespace

awaitable<std::vector<Watched>> watched_contracts(pg::Pool& pool, std::int64_t chain_id) {
  const auto rows = co_await pool.query(kWatched, chain_id);
  std::vector<Watched> out;
  out.reserve(rows.size());
  for (const auto row : rows) {
    out.push_back({.address = row.get<std::string>("contract_address"),
                   .standard = kStandards.find(row.get<std::string_view>("standard")).value(),
                   .history_next = row.get<std::int64_t>("history_next"),
                   .history_last = row.get<std::int64_t>("history_last"),
                   .rules_wanted = row.get<std::optional<std::int64_t>>("rules_wanted")});
  }
  co_return out;
}

std::optional<HistoryRange> next_history(const std::vector<Watched>& contracts) {
  std::optional<HistoryRange> range;
  for (const auto& contract : contracts) {
    if (!contract.has_history()) continue;
    if (!range || contract.history_next < range->first) {
      // The contracts so far join later.
      const auto joins_at = range ? range->first - 1 : contract.history_last;
      range = HistoryRange{.addresses = {contract.address},
                           .first = contract.history_next,
                           .last = std::min(contract.history_last, joins_at)};
    } else if (contract.history_next == range->first) {
      range->addresses.push_back(contract.address);
      range->last = std::min(range->last, contract.history_last);
    } else {
      range->last = std::min(range->last, contract.history_next - 1);
    }
  }
  return range;
}

awaitable<bool> advance_history(pg::Transaction& tx, std::int64_t chain_id, const HistoryRange& range,
                                std::int64_t through) {
  const auto advanced = co_await tx.query(kAdvance, chain_id, range.addresses, range.first, through);
  co_return advanced.affected() == static_cast<std::int64_t>(range.addresses.size());
}

awaitable<> halt_contract(pg::Pool& pool, std::int64_t chain_id, std::string address, std::int64_t block,
                          std::string error) {
  pg::Batch batch;
  batch.add(sql::kTouchContracts, chain_id).add(kHalt, chain_id, address, block, error);
  co_await pool.run(std::move(batch));
}

awaitable<> note_history_failure(pg::Pool& pool, std::int64_t chain_id, std::vector<std::string> addresses,
                                 std::string error) {
  co_await pool.execute(kNoteHistoryFailure, chain_id, addresses, error);
}

}  // namespace fencepost::timelock

#include "timelock/store/timelock_store.hpp"

#include "timelock/store/removal_store.hpp"

namespace fencepost::timelock {

using pg::Statement;

namespace {

std::optional<std::string> decimal(const std::optional<Uint256>& value) {
  if (!value) return std::nullopt;
  return to_decimal(*value);
}

std::optional<Uint256> number_of(const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  return parse_decimal(*text).value();
}

// The first statement of every transaction that changes the set of contracts: it keeps a scanner out that has asked the
// chain for the old set.
constexpr Statement kLockSet{"timelock_set_lock", R"(
  INSERT INTO timelock_scan (chain_id, block_number, block_hash, block_timestamp)
  VALUES ($1, $2, $3, to_timestamp($4::bigint))
  ON CONFLICT (chain_id) DO UPDATE
     SET contracts = timelock_scan.contracts + 1)"};

// A chain without contracts is not scanned, so its last block may be old.
constexpr Statement kStartChain{"timelock_start_chain", R"(
  UPDATE timelock_scan
     SET block_number = $2, block_hash = $3, block_timestamp = to_timestamp($4::bigint), moved_at = clock_timestamp()
   WHERE chain_id = $1
     AND NOT EXISTS (SELECT FROM timelock WHERE chain_id = $1 AND removing_at IS NULL))"};

constexpr Statement kInsert{"timelock_insert", R"(
  WITH added AS (
    INSERT INTO timelock (chain_id, contract_address, standard, remark, from_block, history_next, history_last,
                          history_done_at, created_by)
    SELECT $1, $2, $3, $4, $5::bigint, $5::bigint, s.block_number,
           CASE WHEN $5::bigint > s.block_number THEN clock_timestamp() END, $6
      FROM timelock_scan AS s
     WHERE s.chain_id = $1
    ON CONFLICT (chain_id, contract_address) DO NOTHING
    RETURNING *
  ),
  compound AS (
    INSERT INTO compound_timelocks (chain_id, contract_address, delay, grace_period, admin, pending_admin)
    SELECT chain_id, contract_address, $7::numeric, $8::numeric, $9, $10 FROM added WHERE standard = 'compound'
  ),
  openzeppelin AS (
    INSERT INTO openzeppelin_timelocks (chain_id, contract_address, min_delay, admin)
    SELECT chain_id, contract_address, $7::numeric, $9 FROM added WHERE standard = 'openzeppelin'
  )
  SELECT a.*, $7::numeric AS delay, $8::numeric AS grace_period, $9::text AS admin, $10::text AS pending_admin
    FROM added AS a)"};

#define FENCEPOST_TIMELOCK_ROWS                                                                                        \
  "SELECT t.*, coalesce(c.delay, o.min_delay) AS delay, c.grace_period, coalesce(c.admin, o.admin) AS admin, "         \
  "c.pending_admin FROM timelock AS t LEFT JOIN compound_timelocks AS c USING (chain_id, contract_address) LEFT JOIN " \
  "openzeppelin_timelocks AS o USING (chain_id, contract_address) "

constexpr Statement kFind{"timelock_find", FENCEPOST_TIMELOCK_ROWS
                          "WHERE t.chain_id = $1 AND t.contract_address = $2 AND t.removing_at IS NULL"};
constexpr Statement kList{"timelock_list", FENCEPOST_TIMELOCK_ROWS R"(
   WHERE ($1::bigint IS NULL OR t.chain_id = $1)
     AND (t.chain_id, t.contract_address) > ($2::bigint, $3::text)
     AND t.removing_at IS NULL
     AND ($5::text[] IS NULL OR t.contract_address = ANY ($5::text[]))
   ORDER BY t.chain_id, t.contract_address
   LIMIT $4)"};

Timelock timelock_of(const pg::Row& row) {
  return {.key = {row.get<std::int64_t>("chain_id"), row.get<std::string>("contract_address")},
          .standard = kStandards.find(row.get<std::string_view>("standard")).value(),
          .remark = row.get<std::string>("remark"),
          .rules = {.delay = parse_decimal(row.get<std::string_view>("delay")).value(),
                    .grace = number_of(row.get<std::optional<std::string>>("grace_period")),
                    .admin = row.get<std::optional<std::string>>("admin"),
                    .pending = row.get<std::optional<std::string>>("pending_admin")},
          .from_block = row.get<std::int64_t>("from_block"),
          .history_next = row.get<std::int64_t>("history_next"),
          .history_last = row.get<std::int64_t>("history_last"),
          .history_done_at = row.get<std::optional<TimePoint>>("history_done_at"),
          .last_error = row.get<std::optional<std::string>>("last_error"),
          .halted_block = row.get<std::optional<std::int64_t>>("halted_block"),
          .created_by = row.get<std::string>("created_by"),
          .created_at = row.get<TimePoint>("created_at")};
}

}  // namespace

awaitable<std::optional<Timelock>> insert_timelock(pg::Pool& pool, NewTimelock timelock, ScanPoint head) {
  const auto& key = timelock.key;
  const auto& rules = timelock.rules;
  co_await finish_removal(pool, key);
  pg::Batch batch;
  batch.add(kLockSet, key.chain_id, head.number, head.hash, head.timestamp);
  batch.add(kStartChain, key.chain_id, head.number, head.hash, head.timestamp);
  batch.add(kInsert, key.chain_id, key.address, kStandards.name(timelock.standard), timelock.remark,
            timelock.from_block, timelock.created_by, to_decimal(rules.delay), decimal(rules.grace), rules.admin,
            rules.pending);
  const auto results = co_await pool.run(std::move(batch));
  if (results[2].empty()) co_return std::nullopt;
  co_return timelock_of(results[2].one());
}

awaitable<std::optional<Timelock>> find_timelock(pg::Pool& pool, ContractKey key) {
  const auto rows = co_await pool.query(kFind, key.chain_id, key.address);
  if (rows.empty()) co_return std::nullopt;
  co_return timelock_of(rows.one());
}

awaitable<std::vector<Timelock>> list_timelocks(pg::Pool& pool, std::optional<std::int64_t> chain_id,
                                                std::optional<std::vector<std::string>> only,
                                                std::optional<ContractKey> after, std::size_t limit) {
  const auto from = after.value_or(ContractKey{});
  const auto rows = co_await pool.query(kList, chain_id, from.chain_id, from.address, std::uint64_t{limit}, only);
  std::vector<Timelock> out;
  out.reserve(rows.size());
  for (const auto row : rows) out.push_back(timelock_of(row));
  co_return out;
}

namespace {

constexpr Statement kSetRemark{"timelock_remark", R"(
  UPDATE timelock
     SET remark = $3, updated_at = clock_timestamp()
   WHERE chain_id = $1
     AND contract_address = $2
     AND removing_at IS NULL)"};

constexpr Statement kRestartHistory{"timelock_history_restart", R"(
  UPDATE timelock AS t
     SET from_block = least(t.from_block, $3),
         history_next = least($3, CASE WHEN t.history_done_at IS NULL THEN t.history_next END, t.halted_block),
         history_last = s.block_number,
         history_done_at = NULL,
         halted_block = NULL,
         last_error = NULL,
         updated_at = clock_timestamp()
    FROM timelock_scan AS s
   WHERE t.chain_id = $1
     AND t.contract_address = $2
     AND t.removing_at IS NULL
     AND s.chain_id = t.chain_id
     AND s.block_number >= $3
     -- Earlier events may change the numbers of generations, and those that were announced must keep theirs.
     AND ($3 >= t.from_block
          OR NOT EXISTS (SELECT FROM timelock_transaction_flows AS f
                          WHERE f.timelock_standard = t.standard
                            AND f.chain_id = t.chain_id
                            AND f.contract_address = t.contract_address
                            AND f.told <> '{}')))"};

constexpr Statement kStoreRules{"timelock_rules", R"(
  WITH newer AS (
    UPDATE timelock
       SET rules_read = $4, updated_at = clock_timestamp()
     WHERE chain_id = $1
       AND contract_address = $2
       AND standard = $3
       AND rules_read < $4
    RETURNING chain_id, contract_address
  ),
  compound AS (
    UPDATE compound_timelocks AS c
       SET delay = $5::numeric, grace_period = $6::numeric, admin = $7, pending_admin = $8
      FROM newer AS n
     WHERE (c.chain_id, c.contract_address) = (n.chain_id, n.contract_address)
  )
  UPDATE openzeppelin_timelocks AS o
     SET min_delay = $5::numeric, admin = $7
    FROM newer AS n
   WHERE (o.chain_id, o.contract_address) = (n.chain_id, n.contract_address))"};

}  // namespace

awaitable<bool> set_remark(pg::Pool& pool, ContractKey key, std::string remark) {
  const auto changed = co_await pool.execute(kSetRemark, key.chain_id, key.address, remark);
  co_return changed.affected() == 1;
}

awaitable<bool> restart_history(pg::Pool& pool, ContractKey key, std::int64_t from_block) {
  pg::Batch batch;
  batch.add(sql::kTouchContracts, key.chain_id).add(kRestartHistory, key.chain_id, key.address, from_block);
  const auto results = co_await pool.run(std::move(batch));
  co_return results[1].affected() == 1;
}

awaitable<> store_rules(pg::Pool& pool, ContractKey key, Standard standard, ContractRules rules, std::int64_t wanted) {
  co_await pool.execute(kStoreRules, key.chain_id, key.address, kStandards.name(standard), wanted,
                        to_decimal(rules.delay), decimal(rules.grace), rules.admin, rules.pending);
}

namespace {

constexpr Statement kKeepRules{"timelock_rules_keep", R"(
  UPDATE timelock
     SET rules_read = $3
   WHERE chain_id = $1
     AND contract_address = $2
     AND rules_read < $3)"};

}  // namespace

awaitable<> keep_rules(pg::Pool& pool, ContractKey key, std::int64_t wanted) {
  co_await pool.execute(kKeepRules, key.chain_id, key.address, wanted);
}

}  // namespace fencepost::timelock

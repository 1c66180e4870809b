#include "timelock/store/abi_store.hpp"

#include "base/hex.hpp"

namespace fencepost::timelock {

using pg::Statement;

namespace {

// Two uploads at once could both see the last free place: the lock lets one insert at a time.
constexpr Statement kLockAbis{"timelock_abi_lock", "SELECT pg_advisory_xact_lock(hashtext('fencepost timelock_abi'))"};

constexpr Statement kInsertAbi{"timelock_abi_insert", R"(
  INSERT INTO timelock_abi (id, name, chain_id, contract_address, abi, created_by)
  SELECT $1::uuid, $2, coalesce($3::bigint, 0), coalesce($4::text, ''), $5::jsonb, $6
   WHERE (SELECT count(*) FROM timelock_abi) < $7
  RETURNING *, $8::bigint AS functions)"};

constexpr Statement kInsertFunctions{"timelock_abi_functions", R"(
  INSERT INTO timelock_abi_function (abi_id, place, selector, declaration)
  SELECT a.id, f.place, f.selector, f.declaration
    FROM timelock_abi AS a
   CROSS JOIN unnest($2::text[], $3::text[]) WITH ORDINALITY AS f(selector, declaration, place)
   WHERE a.id = $1)"};

#define FENCEPOST_ABI_VIEW                                                                                  \
  "SELECT a.id, a.name, a.chain_id, a.contract_address, a.created_by, a.created_at, (SELECT count(*) FROM " \
  "timelock_abi_function AS f WHERE f.abi_id = a.id) AS functions FROM timelock_abi AS a "

constexpr Statement kListAbis{"timelock_abi_list",
                              FENCEPOST_ABI_VIEW "WHERE $1::uuid IS NULL OR a.id > $1 ORDER BY a.id LIMIT $2"};
constexpr Statement kFindAbi{"timelock_abi_find", FENCEPOST_ABI_VIEW "WHERE a.id = $1"};
constexpr Statement kRemoveAbi{"timelock_abi_remove", "DELETE FROM timelock_abi WHERE id = $1"};

// The oldest ABI first: of two functions with one signature, the first one names the parameters.
constexpr Statement kFindFunctions{"timelock_abi_find_functions", R"(
  SELECT a.contract_address, f.declaration
    FROM timelock_abi_function AS f
    JOIN timelock_abi AS a ON a.id = f.abi_id
   WHERE f.selector = ANY ($1::text[])
     AND a.chain_id IN (0, $2)
     AND (a.contract_address = '' OR a.contract_address = ANY ($3::text[]))
   ORDER BY a.id, f.place
   LIMIT 10000)"};

AbiView abi_of(const pg::Row& row) {
  AbiView out{.id = row.get<Uuid>("id"),
              .name = row.get<std::string>("name"),
              .chain_id = {},
              .address = {},
              .functions = row.get<std::int64_t>("functions"),
              .created_by = row.get<std::string>("created_by"),
              .created_at = row.get<TimePoint>("created_at")};
  if (const auto chain = row.get<std::int64_t>("chain_id"); chain != 0) out.chain_id = chain;
  if (auto address = row.get<std::string>("contract_address"); !address.empty()) out.address = std::move(address);
  return out;
}

}  // namespace

awaitable<std::optional<AbiView>> insert_abi(pg::Pool& pool, NewAbi abi) {
  std::vector<std::string> selectors, declarations;
  for (const auto& function : abi.functions) {
    selectors.push_back(to_hex0x(evm::selector(function.signature())));
    declarations.push_back(function.declaration());
  }
  pg::Batch batch;
  batch.add(kLockAbis);
  batch.add(kInsertAbi, abi.id, abi.name, abi.chain_id, abi.address, abi.json, abi.created_by, std::uint64_t{kMaxAbis},
            std::uint64_t{abi.functions.size()});
  batch.add(kInsertFunctions, abi.id, selectors, declarations);
  const auto results = co_await pool.run(std::move(batch));
  if (results[1].empty()) co_return std::nullopt;
  co_return abi_of(results[1].one());
}

awaitable<std::vector<AbiView>> list_abis(pg::Pool& pool, std::optional<Uuid> after, std::size_t limit) {
  const auto rows = co_await pool.query(kListAbis, after, std::uint64_t{limit});
  std::vector<AbiView> out;
  out.reserve(rows.size());
  for (const auto row : rows) out.push_back(abi_of(row));
  co_return out;
}

awaitable<std::optional<AbiView>> find_abi(pg::Pool& pool, Uuid id) {
  const auto rows = co_await pool.query(kFindAbi, id);
  if (rows.empty()) co_return std::nullopt;
  co_return abi_of(rows.one());
}

awaitable<bool> remove_abi(pg::Pool& pool, Uuid id) {
  const auto removed = co_await pool.execute(kRemoveAbi, id);
  co_return removed.affected() == 1;
}

awaitable<std::vector<UploadedFunction>> find_functions(pg::Pool& pool, std::int64_t chain_id,
                                                        std::vector<std::string> selectors,
                                                        std::vector<std::string> addresses) {
  const auto rows = co_await pool.query(kFindFunctions, selectors, chain_id, addresses);
  std::vector<UploadedFunction> out;
  out.reserve(rows.size());
  for (const auto row : rows) {
    out.push_back({row.get<std::string>("contract_address"), row.get<std::string>("declaration")});
  }
  co_return out;
}

}  // namespace fencepost::timelock

#include "evm/header_store.hpp"

#include <string>

#include "base/uint256.hpp"

namespace fencepost::evm {
namespace {

using pg::Statement;

// Sorted, so that two nodes that save the same blocks lock them in the same order and cannot deadlock.
constexpr Statement kSave{"chain_header_save", R"(
  INSERT INTO chain_header (chain_id, hash, number, parent_hash, block_time, base_fee)
  SELECT $1, h.hash, h.number, h.parent_hash, h.block_time, h.base_fee::numeric
    FROM unnest($2, $3, $4, $5, $6) AS h(hash, number, parent_hash, block_time, base_fee)
   ORDER BY h.number, h.hash
  ON CONFLICT (chain_id, hash) DO NOTHING)"};

constexpr Statement kRecent{"chain_header_recent", R"(
  SELECT hash, number, parent_hash, block_time, base_fee
    FROM (SELECT *
            FROM chain_header
           WHERE chain_id = $1
             AND number >= $2
           ORDER BY number DESC
           LIMIT $3) AS newest
   ORDER BY number, hash)"};

constexpr Statement kNewest{"chain_header_newest", R"(
  SELECT max(number) AS number
    FROM chain_header
   WHERE chain_id = $1)"};

constexpr Statement kPrune{"chain_header_prune", R"(
  DELETE FROM chain_header AS h
   USING (SELECT hash
            FROM chain_header
           WHERE chain_id = $1
             AND number < $2
           ORDER BY number
           LIMIT $3) AS old
   WHERE h.chain_id = $1
     AND h.hash = old.hash)"};

// The limit ends the recursion. LATERAL with its limit finds each parent by its key, also when the plan was made while
// the table was empty.
constexpr Statement kAncestors{"chain_header_ancestors", R"(
  WITH RECURSIVE line AS (
    SELECT hash, number, parent_hash, block_time, base_fee
      FROM chain_header
     WHERE chain_id = $1
       AND hash = $2
     UNION ALL
    SELECT h.hash, h.number, h.parent_hash, h.block_time, h.base_fee
      FROM line AS l
     CROSS JOIN LATERAL (SELECT *
                           FROM chain_header AS h
                          WHERE h.chain_id = $1
                            AND h.hash = l.parent_hash
                          LIMIT 1) AS h
     WHERE h.number = l.number - 1)
  SELECT * FROM line LIMIT $3)"};

BlockHeader read_header(const pg::Row& row) {
  BlockHeader header;
  header.number = row.get<std::int64_t>("number");
  header.hash = row.get<std::string>("hash");
  header.parent_hash = row.get<std::string>("parent_hash");
  header.timestamp = row.get<std::int64_t>("block_time");
  if (const auto fee = row.get<std::optional<std::string>>("base_fee")) {
    auto parsed = parse_decimal(*fee);
    if (!parsed) throw Exception(parsed.error());
    header.base_fee = std::move(*parsed);
  }
  return header;
}

std::vector<BlockHeader> read_headers(const pg::ResultSet& rows) {
  std::vector<BlockHeader> headers;
  headers.reserve(static_cast<std::size_t>(rows.size()));
  for (const auto row : rows) headers.push_back(read_header(row));
  return headers;
}

}  // namespace

awaitable<> PgHeaderStore::save(std::int64_t chain_id, std::vector<BlockHeader> headers) {
  if (headers.empty()) co_return;
  std::vector<std::string> hashes;
  std::vector<std::string> parents;
  std::vector<std::int64_t> numbers;
  std::vector<std::int64_t> times;
  std::vector<std::optional<std::string>> fees;
  for (auto& header : headers) {
    hashes.push_back(std::move(header.hash));
    parents.push_back(std::move(header.parent_hash));
    numbers.push_back(header.number);
    times.push_back(header.timestamp);
    fees.push_back(header.base_fee ? std::optional(to_decimal(*header.base_fee)) : std::nullopt);
  }
  co_await pool_.execute(kSave, chain_id, hashes, numbers, parents, times, fees);
}

awaitable<std::vector<BlockHeader>> PgHeaderStore::recent(std::int64_t chain_id, std::int64_t from_number,
                                                          std::size_t limit) {
  co_return read_headers(co_await pool_.query(kRecent, chain_id, from_number, std::uint64_t{limit}));
}

awaitable<std::vector<BlockHeader>> PgHeaderStore::ancestors(std::int64_t chain_id, std::string hash,
                                                             std::size_t limit) {
  co_return read_headers(co_await pool_.query(kAncestors, chain_id, hash, std::uint64_t{limit}));
}

awaitable<std::optional<std::int64_t>> PgHeaderStore::newest(std::int64_t chain_id) {
  const auto rows = co_await pool_.query(kNewest, chain_id);
  co_return rows.one().get<std::optional<std::int64_t>>("number");
}

awaitable<std::size_t> PgHeaderStore::prune(std::int64_t chain_id, std::int64_t below_number, std::size_t limit) {
  const auto result = co_await pool_.execute(kPrune, chain_id, below_number, std::uint64_t{limit});
  co_return static_cast<std::size_t>(result.affected());
}

}  // namespace fencepost::evm

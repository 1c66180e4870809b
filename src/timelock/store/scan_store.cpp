#include "timelock/store/scan_store.hpp"

namespace fencepost::timelock {

using pg::Statement;

namespace {

#define FENCEPOST_SCAN_COLUMNS \
  "block_number, block_hash, extract(epoch FROM block_timestamp)::bigint AS block_seconds, contracts, reorgs"

constexpr Statement kClaim{"timelock_scan_claim", R"(
  WITH free AS MATERIALIZED (
    SELECT chain_id
      FROM timelock_scan
     WHERE chain_id = $1
       AND (owner_node = $2 OR claimed_until <= clock_timestamp())
       FOR NO KEY UPDATE)
  UPDATE timelock_scan AS s
     SET owner_node = $2,
         claim_token = s.claim_token + CASE WHEN s.owner_node = $2 THEN 0 ELSE 1 END,
         claimed_until = clock_timestamp() + make_interval(secs => $3 / 1000.0)
    FROM free
   WHERE s.chain_id = free.chain_id
  RETURNING )" FENCEPOST_SCAN_COLUMNS};

constexpr Statement kRelease{"timelock_scan_release", R"(
  UPDATE timelock_scan
     SET owner_node = '', claimed_until = '-infinity'
   WHERE chain_id = $1
     AND owner_node = $2)"};

constexpr Statement kNoteScanFailure{"timelock_scan_failure", R"(
  UPDATE timelock_scan
     SET failing_since = CASE WHEN $2 = '' THEN NULL ELSE coalesce(failing_since, clock_timestamp()) END,
         last_error = nullif($2, '')
   WHERE chain_id = $1
     AND coalesce(last_error, '') <> $2)"};

constexpr Statement kLockShared{"timelock_scan_lock_shared",
                                "SELECT " FENCEPOST_SCAN_COLUMNS " FROM timelock_scan WHERE chain_id = $1 FOR SHARE"};
constexpr Statement kLockAlone{"timelock_scan_lock",
                               "SELECT " FENCEPOST_SCAN_COLUMNS " FROM timelock_scan WHERE chain_id = $1 FOR UPDATE"};

constexpr Statement kRead{"timelock_scan_read",
                          "SELECT " FENCEPOST_SCAN_COLUMNS " FROM timelock_scan WHERE chain_id = $1"};

constexpr Statement kReports{"timelock_scan_reports", R"(
  SELECT chain_id, block_number, block_hash, extract(epoch FROM block_timestamp)::bigint AS block_seconds, moved_at,
         owner_node, claimed_until > clock_timestamp() AS claimed, failing_since, last_error
    FROM timelock_scan
   ORDER BY chain_id)"};

ScanPoint point_of(const pg::Row& row) {
  return {.number = row.get<std::int64_t>("block_number"),
          .hash = row.get<std::string>("block_hash"),
          .timestamp = row.get<std::int64_t>("block_seconds")};
}

std::optional<ScanState> state_of(const pg::ResultSet& rows) {
  if (rows.empty()) return std::nullopt;
  const auto row = rows.one();
  return ScanState{.point = point_of(row),
                   .contracts = row.get<std::int64_t>("contracts"),
                   .reorgs = row.get<std::int64_t>("reorgs")};
}

}  // namespace

awaitable<std::optional<ScanState>> claim_scan(pg::Pool& pool, std::int64_t chain_id, std::string node,
                                               std::chrono::milliseconds duration) {
  co_return state_of(co_await pool.execute(kClaim, chain_id, node, duration.count()));
}

awaitable<> release_scan(pg::Pool& pool, std::int64_t chain_id, std::string node) {
  co_await pool.execute(kRelease, chain_id, node);
}

awaitable<> note_scan_failure(pg::Pool& pool, std::int64_t chain_id, std::string error) {
  co_await pool.execute(kNoteScanFailure, chain_id, error);
}

awaitable<std::optional<ScanState>> lock_scan(pg::Transaction& tx, std::int64_t chain_id, ScanLock lock) {
  co_return state_of(co_await tx.query(lock == ScanLock::kAlone ? kLockAlone : kLockShared, chain_id));
}

awaitable<std::optional<ScanState>> read_scan(pg::Transaction& tx, std::int64_t chain_id) {
  co_return state_of(co_await tx.query(kRead, chain_id));
}

awaitable<std::vector<ScanReport>> scan_reports(pg::Pool& pool) {
  const auto rows = co_await pool.query(kReports);
  std::vector<ScanReport> reports;
  reports.reserve(rows.size());
  for (const auto row : rows) {
    reports.push_back({.chain_id = row.get<std::int64_t>("chain_id"),
                       .point = point_of(row),
                       .moved_at = row.get<TimePoint>("moved_at"),
                       .owner_node = row.get<std::string>("owner_node"),
                       .claimed = row.get<bool>("claimed"),
                       .failing_since = row.get<std::optional<TimePoint>>("failing_since"),
                       .last_error = row.get<std::optional<std::string>>("last_error")});
  }
  co_return reports;
}

const Statement sql::kTouchContracts{"timelock_contracts_touch",
                                     "UPDATE timelock_scan SET contracts = contracts + 1 WHERE chain_id = $1"};

const Statement sql::kMoveScan{"timelock_scan_move", R"(
  UPDATE timelock_scan
     SET block_number = $2,
         block_hash = $3,
         block_timestamp = to_timestamp($4::bigint),
         reorgs = reorgs + CASE WHEN $5::bool THEN 1 ELSE 0 END,
         moved_at = CASE WHEN to_timestamp($4::bigint) > block_timestamp THEN clock_timestamp() ELSE moved_at END
   WHERE chain_id = $1)"};

}  // namespace fencepost::timelock

// A set of synchronous transfers on its way through economy.fn_transfer_set: each account that takes part is named
// once, and the transfers refer to it by its place. The database spends less time on small sets that way.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/uuid.hpp"
#include "pg/pool.hpp"
#include "transfer/transfer.hpp"

namespace fencepost::transfer {

enum class SyncOutcome {
  kCompleted,
  kExisting,
  kConflict,
  kInvalid,
  kInsufficientBalance,
  kCooldown,
  kDailyLimit,
  kAccountLocked,
};
struct SyncResult {
  SyncOutcome outcome = SyncOutcome::kInvalid;
  std::optional<Uuid> transfer_id;
  std::optional<TransferStatus> status;
  std::optional<std::int64_t> ledger_id;
  std::optional<std::int64_t> initiator_balance;  // after the transfer
  std::optional<std::int64_t> target_balance;
  std::optional<TimePoint> created_at;
  std::optional<std::int64_t> available;     // kInsufficientBalance
  std::optional<TimePoint> throttled_until;  // kCooldown
  std::optional<std::int64_t> used_today;    // kDailyLimit
  std::optional<std::int64_t> daily_limit;
};
struct SyncResults {
  std::vector<SyncResult> items;
  bool woken = false;  // waiting transfers became due: notify the nodes after the commit
};

class SyncSet {
 public:
  // Requires: the ids of the transfers were generated at random, and their terms make sense.
  explicit SyncSet(std::span<const NewTransfer> transfers);

  // One result for each transfer, in their order. Waits at most `patience` for locks, then runs without the transfers
  // whose accounts are locked. Throws as pg::Pool does.
  awaitable<SyncResults> run(pg::Pool& pool, std::chrono::milliseconds patience) const;

 private:
  awaitable<pg::ResultSet> call(pg::Pool& pool, std::chrono::milliseconds patience) const;
  awaitable<bool> open_accounts(pg::Pool& pool, std::chrono::milliseconds patience) const;
  SyncResults read(const pg::Row& row) const;

  // The parties, in order of guild and member.
  std::vector<std::int64_t> guilds_, members_;
  // The transfers. The places of their parties count from 1.
  std::vector<std::int32_t> payers_, targets_;
  std::vector<std::int64_t> amounts_;
  std::vector<Uuid> ids_;
  std::vector<std::optional<std::string>> reasons_, keys_;
  std::vector<std::string> metadata_;
};

}  // namespace fencepost::transfer

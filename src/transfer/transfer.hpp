// Value types of the economy: transfers, accounts, settings. The rules are in the database (db/migrations/0005 to 0008,
// and 0023) and nowhere else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <boost/json/object.hpp>

#include "base/clock.hpp"
#include "base/lifecycle.hpp"
#include "base/uuid.hpp"

namespace fencepost::transfer {

enum class TransferStatus { kPending, kChecking, kApproved, kCompleted, kRejected };

inline constexpr auto kPendingTransfer = lifecycle<TransferStatus>(
    "pending_transfer", {
                            {TransferStatus::kPending,
                             "pending",
                             {{TransferStatus::kChecking, "inserted"},
                              {TransferStatus::kApproved, "inserted, and its checks passed at once"},
                              {TransferStatus::kRejected, "expired or cancelled"}}},
                            {TransferStatus::kChecking,
                             "checking",
                             {{TransferStatus::kApproved, "all checks passed"},
                              {TransferStatus::kRejected, "out of retries, expired or cancelled"}}},
                            {TransferStatus::kApproved,
                             "approved",
                             {{TransferStatus::kCompleted, "executed"},
                              {TransferStatus::kRejected, "could not be executed, or failed by an operator"}}},
                            {TransferStatus::kCompleted, "completed", {}},
                            {TransferStatus::kRejected, "rejected", {}},
                        });

enum class Mode { kSync, kPool };

// As max_retries: the checks are retried until the transfer expires.
inline constexpr std::int32_t kUntilExpiry = -1;

// A requested transfer. The caller chooses the transfer id, so that it can look the transfer up after a lost answer.
struct NewTransfer {
  Uuid transfer_id;
  std::int64_t guild_id = 0;
  std::int64_t initiator_id = 0;
  std::int64_t target_id = 0;
  std::int64_t amount = 0;
  std::optional<std::string> reason;
  boost::json::object metadata;
  std::optional<std::int32_t> expires_hours;  // pool only; none: the guild's default
  std::optional<std::int32_t> max_retries;    // pool only; none: the guild's; or kUntilExpiry
  std::optional<std::string> idempotency_key;
};

// The current state of a transfer of either mode.
struct Transfer {
  Uuid transfer_id;
  Mode mode = Mode::kPool;
  std::int64_t guild_id = 0;
  std::int64_t initiator_id = 0;
  std::int64_t target_id = 0;
  std::int64_t amount = 0;
  TransferStatus status = TransferStatus::kPending;
  boost::json::object checks;  // {"balance": 1, …} of the last attempt
  std::int32_t retry_count = 0;
  // The request's, or else the guild's as it is now; none: until it expires. 0 for a synchronous transfer.
  std::optional<std::int32_t> max_retries;
  std::optional<TimePoint> expires_at;
  std::optional<TimePoint> next_attempt_at;  // while the transfer waits
  std::optional<std::string> denied_reason;  // when rejected
  std::optional<std::int64_t> ledger_id;     // when completed
  std::optional<std::string> reason;
  boost::json::object metadata;
  std::optional<std::string> idempotency_key;
  TimePoint created_at;
  TimePoint updated_at;
  std::int64_t seq = 0;  // position in the guild's list; 0 for a synchronous transfer, which is in no list
};
// The form of the API: camelCase, 64-bit numbers as strings, times in UTC.
boost::json::object to_json(const Transfer& transfer);

struct Account {
  std::int64_t guild_id = 0;
  std::int64_t member_id = 0;
  std::string kind = "member";
  std::int64_t balance = 0;
  std::int64_t reserved = 0;
  std::int64_t used_today = 0;
  std::optional<std::int64_t> daily_limit;  // none: no limit
  std::optional<TimePoint> throttled_until;
};
boost::json::object to_json(const Account& account);

struct GuildSettings {
  std::int64_t guild_id = 0;
  std::optional<std::int64_t> daily_limit;
  std::int32_t cooldown_seconds = 0;
  std::int32_t default_expiry_hours = 0;
  std::optional<std::int32_t> max_retries;  // none: until the transfer expires
};
boost::json::object to_json(const GuildSettings& settings);

// One leg of a movement, from the account's point of view.
struct Entry {
  std::int64_t ledger_id = 0;
  Uuid transfer_id;
  std::string kind;         // transfer, mint, burn
  std::int64_t amount = 0;  // negative: paid
  std::int64_t balance_after = 0;
  std::int64_t counterparty_id = 0;  // 0: the guild's own (minted, burnt)
  std::optional<std::string> reason;
  TimePoint created_at;
};
boost::json::object to_json(const Entry& entry);

}  // namespace fencepost::transfer

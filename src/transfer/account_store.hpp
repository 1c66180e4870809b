// AccountStore: accounts with their statements, mints and burns, and the settings of guilds, as calls of the functions
// of the schema `economy`.
//
// Business outcomes are returned, never thrown. Throws as pg::Pool does: then nothing was done, except that after
// CommitUnknown the outcome is not known.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <boost/json/object.hpp>

#include "pg/pool.hpp"
#include "transfer/transfer.hpp"

namespace fencepost::transfer {

enum class IssueOutcome { kCompleted, kExisting, kConflict, kInvalid, kSupplyOverflow, kInsufficientBalance };
struct IssueResult {
  IssueOutcome outcome = IssueOutcome::kInvalid;
  std::optional<Uuid> transfer_id;
  std::optional<std::int64_t> ledger_id;
  std::optional<std::int64_t> balance;  // after the mint or burn
  std::optional<std::int64_t> available;
};
struct Issue {
  std::string kind;  // mint, burn
  std::int64_t guild_id = 0;
  std::int64_t member_id = 0;
  std::int64_t amount = 0;
  std::string reason;
  std::string actor;
  std::optional<std::string> idempotency_key;
};

class AccountStore {
 public:
  explicit AccountStore(pg::Pool& pool) : pool_(pool) {}

  // Mints or burns.
  awaitable<IssueResult> issue(const Issue& issue);

  // Returns nothing if the member has no account yet.
  awaitable<std::optional<Account>> account(std::int64_t guild_id, std::int64_t member_id);
  awaitable<> set_account_kind(std::int64_t guild_id, std::int64_t member_id, std::string kind, std::string reason,
                               std::string actor);
  // Newest first; `before` is the ledger id of the last entry of the previous page.
  awaitable<std::vector<Entry>> statement(std::int64_t guild_id, std::int64_t member_id,
                                          std::optional<std::int64_t> before, std::size_t limit);

  // Returns the defaults for a guild without settings of its own.
  awaitable<GuildSettings> settings(std::int64_t guild_id);
  // `changes` by column name, e.g. {"daily_limit": null}.
  awaitable<GuildSettings> set_settings(std::int64_t guild_id, boost::json::object changes, std::string reason,
                                        std::string actor);

 private:
  pg::Pool& pool_;
};

}  // namespace fencepost::transfer

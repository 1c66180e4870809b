#include "transfer/account_store.hpp"

#include <array>

#include <boost/json/serialize.hpp>

#include "transfer/economy_call.hpp"

namespace fencepost::transfer {

using pg::Statement;

namespace {

constexpr Statement kMint{"transfer_mint", "SELECT * FROM economy.fn_mint($1, $2, $3, $4, $5, $6)"};
constexpr Statement kBurn{"transfer_burn", "SELECT * FROM economy.fn_burn($1, $2, $3, $4, $5, $6)"};

// The words of the SQL functions, in the order of the enumeration.
constexpr std::array<std::string_view, 6> kIssueOutcomes{"completed", "existing",        "conflict",
                                                         "invalid",   "supply_overflow", "insufficient_balance"};

}  // namespace

awaitable<IssueResult> AccountStore::issue(const Issue& issue) {
  const auto rows = co_await run_alone(pool_, issue.kind == "mint" ? kMint : kBurn, issue.guild_id, issue.member_id,
                                       issue.amount, issue.reason, issue.actor, issue.idempotency_key);
  const auto row = rows.one();
  co_return IssueResult{.outcome = outcome_of<IssueOutcome>(row, kIssueOutcomes),
                        .transfer_id = row.get<std::optional<Uuid>>("transfer_id"),
                        .ledger_id = row.get<std::optional<std::int64_t>>("ledger_id"),
                        .balance = row.get<std::optional<std::int64_t>>("balance"),
                        .available = row.get<std::optional<std::int64_t>>("available")};
}

constexpr Statement kAccount{"transfer_account", "SELECT * FROM economy.fn_get_account($1, $2)"};

awaitable<std::optional<Account>> AccountStore::account(std::int64_t guild_id, std::int64_t member_id) {
  const auto rows = co_await pool_.query(kAccount, guild_id, member_id);
  if (rows.empty()) co_return std::nullopt;
  const auto row = rows.one();
  co_return Account{.guild_id = guild_id,
                    .member_id = member_id,
                    .kind = row.get<std::string>("kind"),
                    .balance = row.get<std::int64_t>("balance"),
                    .reserved = row.get<std::int64_t>("reserved"),
                    .used_today = row.get<std::int64_t>("used_today"),
                    .daily_limit = row.get<std::optional<std::int64_t>>("daily_limit"),
                    .throttled_until = row.get<std::optional<TimePoint>>("throttled_until")};
}

constexpr Statement kSetKind{"transfer_set_kind", "SELECT economy.fn_set_account_kind($1, $2, $3, $4, $5)"};

awaitable<> AccountStore::set_account_kind(std::int64_t guild_id, std::int64_t member_id, std::string kind,
                                           std::string reason, std::string actor) {
  co_await run_alone(pool_, kSetKind, guild_id, member_id, kind, reason, actor);
}

constexpr Statement kEntries{"transfer_entries", R"(
  SELECT transaction_id, transfer_id, kind, amount, balance_after, counterparty_id, reason, created_at
    FROM economy.entries
   WHERE guild_id = $1
     AND member_id = $2
     AND transaction_id < coalesce($3, 9223372036854775807)
   ORDER BY transaction_id DESC
   LIMIT $4)"};

awaitable<std::vector<Entry>> AccountStore::statement(std::int64_t guild_id, std::int64_t member_id,
                                                      std::optional<std::int64_t> before, std::size_t limit) {
  std::vector<Entry> out;
  for (const auto row : co_await pool_.query(kEntries, guild_id, member_id, before, limit)) {
    out.push_back({.ledger_id = row.get<std::int64_t>("transaction_id"),
                   .transfer_id = row.get<Uuid>("transfer_id"),
                   .kind = row.get<std::string>("kind"),
                   .amount = row.get<std::int64_t>("amount"),
                   .balance_after = row.get<std::int64_t>("balance_after"),
                   .counterparty_id = row.get<std::int64_t>("counterparty_id"),
                   .reason = row.get<std::optional<std::string>>("reason"),
                   .created_at = row.get<TimePoint>("created_at")});
  }
  co_return out;
}

namespace {

constexpr Statement kSettings{"transfer_settings", R"(
  SELECT guild_id, daily_limit, cooldown_seconds, default_expiry_hours, max_retries
    FROM economy.fn_get_settings($1))"};

GuildSettings read_settings(const pg::Row& row) {
  return {.guild_id = row.get<std::int64_t>("guild_id"),
          .daily_limit = row.get<std::optional<std::int64_t>>("daily_limit"),
          .cooldown_seconds = row.get<std::int32_t>("cooldown_seconds"),
          .default_expiry_hours = row.get<std::int32_t>("default_expiry_hours"),
          .max_retries = row.get<std::optional<std::int32_t>>("max_retries")};
}

}  // namespace

awaitable<GuildSettings> AccountStore::settings(std::int64_t guild_id) {
  const auto rows = co_await pool_.query(kSettings, guild_id);
  co_return read_settings(rows.one());
}

namespace {

constexpr Statement kSetSettings{"transfer_set_settings", R"(
  SELECT guild_id, daily_limit, cooldown_seconds, default_expiry_hours, max_retries
    FROM economy.fn_set_settings($1, $2::jsonb, $3, $4))"};

}  // namespace

awaitable<GuildSettings> AccountStore::set_settings(std::int64_t guild_id, boost::json::object changes,
                                                    std::string reason, std::string actor) {
  const auto rows = co_await run_alone(pool_, kSetSettings, guild_id, boost::json::serialize(changes), reason, actor);
  co_return read_settings(rows.one());
}

}  // namespace fencepost::transfer

#include "transfer/sync_set.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "pg/array.hpp"
#include "transfer/economy_call.hpp"

namespace fencepost::transfer {

using pg::Statement;

namespace {

constexpr Statement kTransferSet{"transfer_now", R"(
  SELECT *
    FROM economy.fn_transfer_set($1::bigint[], $2::bigint[], $3::integer[], $4::integer[], $5::bigint[], $6::uuid[],
                                 $7::text[], $8::text[], $9::text[], p_patient => $10, p_new_ids => true))"};
constexpr Statement kOpenAccounts{"transfer_open_accounts", R"(
  SELECT economy.fn_open_accounts($1::bigint[], $2::bigint[]))"};

// The words of the SQL function, in the order of the enumeration.
constexpr std::array<std::string_view, 8> kOutcomes{
    "completed", "existing", "conflict", "invalid", "insufficient_balance", "cooldown", "daily_limit", "kept"};
// Of every transfer of the set, if an account is missing. Nothing was done then.
constexpr std::string_view kNoAccount = "no_account";

using Party = std::pair<std::int64_t, std::int64_t>;  // guild and member

std::int32_t place_of(const std::vector<Party>& parties, const Party& party) {
  return static_cast<std::int32_t>(std::ranges::lower_bound(parties, party) - parties.begin()) + 1;
}

// The details of an outcome that is not `completed`.
void read_details(const std::string& text, SyncResult& out) {
  const auto details = boost::json::parse(text).as_object();
  const auto member = [&](std::string_view name) -> const boost::json::value* {
    const auto* value = details.if_contains(name);
    return value == nullptr || value->is_null() ? nullptr : value;
  };
  const auto number = [&](std::string_view name) -> std::optional<std::int64_t> {
    const auto* value = member(name);
    return value == nullptr ? std::nullopt : std::optional(value->to_number<std::int64_t>());
  };
  const auto time = [&](std::string_view name) -> std::optional<TimePoint> {
    const auto* value = member(name);
    return value == nullptr ? std::nullopt : parse_rfc3339(value->as_string());
  };
  if (const auto* id = member("transfer_id")) out.transfer_id = Uuid::parse(id->as_string()).value();
  if (const auto* status = member("status")) out.status = kPendingTransfer.find(status->as_string()).value();
  out.ledger_id = number("ledger_id");
  out.initiator_balance = number("initiator_balance");
  out.target_balance = number("target_balance");
  out.created_at = time("created_at");
  out.available = number("available");
  out.throttled_until = time("throttled_until");
  out.used_today = number("used_today");
  out.daily_limit = number("daily_limit");
}

}  // namespace

SyncSet::SyncSet(std::span<const NewTransfer> transfers) {
  std::vector<Party> parties;
  parties.reserve(2 * transfers.size());
  for (const auto& t : transfers) {
    parties.emplace_back(t.guild_id, t.initiator_id);
    parties.emplace_back(t.guild_id, t.target_id);
  }
  std::ranges::sort(parties);
  const auto repeated = std::ranges::unique(parties);
  parties.erase(repeated.begin(), repeated.end());
  for (const auto& [guild, member] : parties) {
    guilds_.push_back(guild);
    members_.push_back(member);
  }
  for (const auto& t : transfers) {
    payers_.push_back(place_of(parties, {t.guild_id, t.initiator_id}));
    targets_.push_back(place_of(parties, {t.guild_id, t.target_id}));
    amounts_.push_back(t.amount);
    ids_.push_back(t.transfer_id);
    reasons_.push_back(t.reason);
    keys_.push_back(t.idempotency_key);
    metadata_.push_back(t.metadata.empty() ? "{}" : boost::json::serialize(t.metadata));
  }
}

awaitable<pg::ResultSet> SyncSet::call(pg::Pool& pool, std::chrono::milliseconds patience) const {
  co_return co_await run_set(pool, kTransferSet, patience, guilds_, members_, payers_, targets_, amounts_, ids_,
                             reasons_, metadata_, keys_);
}

// Returns false if another session is just opening one of them and does not commit.
awaitable<bool> SyncSet::open_accounts(pg::Pool& pool, std::chrono::milliseconds patience) const {
  pg::Batch batch;
  batch.add(kOpenAccounts, guilds_, members_).lock_timeout(patience);
  try {
    co_await run_batch(pool, std::move(batch));
    co_return true;
  } catch (const pg::QueryError& error) {
    if (!error.is_lock_timeout()) throw;
  }
  co_return false;
}

awaitable<SyncResults> SyncSet::run(pg::Pool& pool, std::chrono::milliseconds patience) const {
  auto rows = co_await call(pool, patience);
  if (pg::get_array<std::string>(rows.one(), "outcomes").at(0) == kNoAccount) {
    // Accounts are opened in a transaction of their own, and never deleted.
    if (co_await open_accounts(pool, patience)) {
      rows = co_await call(pool, patience);
    } else {
      rows = co_await run_alone(pool, kTransferSet, guilds_, members_, payers_, targets_, amounts_, ids_, reasons_,
                                metadata_, keys_, false);
    }
  }
  co_return read(rows.one());
}

SyncResults SyncSet::read(const pg::Row& row) const {
  const auto outcomes = pg::get_array<std::string>(row, "outcomes");
  const auto details = pg::get_array<std::optional<std::string>>(row, "details");
  const auto ledger_ids = pg::get_array<std::optional<std::int64_t>>(row, "ledger_ids");
  const auto payer_balances = pg::get_array<std::optional<std::int64_t>>(row, "payer_balances");
  const auto target_balances = pg::get_array<std::optional<std::int64_t>>(row, "target_balances");
  const auto at = row.get<TimePoint>("at");
  SyncResults out{.items = {}, .woken = row.get<std::int32_t>("woken") > 0};
  out.items.reserve(ids_.size());
  for (std::size_t n = 0; n < ids_.size(); ++n) {
    SyncResult result{.outcome = outcome_named<SyncOutcome>(outcomes.at(n), kOutcomes)};
    if (result.outcome == SyncOutcome::kCompleted) {
      result.transfer_id = ids_[n];
      result.status = TransferStatus::kCompleted;
      result.ledger_id = ledger_ids.at(n);
      result.initiator_balance = payer_balances.at(n);
      result.target_balance = target_balances.at(n);
      result.created_at = at;
    } else if (details.at(n)) {
      read_details(*details[n], result);
    }
    out.items.push_back(result);
  }
  return out;
}

}  // namespace fencepost::transfer

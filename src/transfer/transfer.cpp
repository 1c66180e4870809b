#include "transfer/transfer.hpp"

#include "base/json.hpp"

namespace fencepost::transfer {
namespace {

namespace json = boost::json;

// 64-bit numbers are strings: many JSON parsers round them.
std::string text(std::int64_t number) {
  return std::to_string(number);
}

json::value text(const std::optional<std::int64_t>& number) {
  return number ? json::value(text(*number)) : json::value(nullptr);
}

json::value text(const std::optional<TimePoint>& time) {
  return time ? json::value(to_rfc3339(*time)) : json::value(nullptr);
}

json::value text(const std::optional<std::string>& words) {
  return words ? json::value(*words) : json::value(nullptr);
}

}  // namespace

json::object to_json(const Transfer& transfer) {
  return {{"transferId", transfer.transfer_id.to_string()},
          {"mode", transfer.mode == Mode::kSync ? "sync" : "pool"},
          {"guildId", text(transfer.guild_id)},
          {"initiatorId", text(transfer.initiator_id)},
          {"targetId", text(transfer.target_id)},
          {"amount", text(transfer.amount)},
          {"status", kPendingTransfer.name(transfer.status)},
          {"checks", transfer.checks},
          {"retryCount", transfer.retry_count},
          {"maxRetries", optional_json(transfer.max_retries)},
          {"expiresAt", text(transfer.expires_at)},
          {"nextAttemptAt", text(transfer.next_attempt_at)},
          {"deniedReason", text(transfer.denied_reason)},
          {"ledgerId", text(transfer.ledger_id)},
          {"reason", text(transfer.reason)},
          {"metadata", transfer.metadata},
          {"idempotencyKey", text(transfer.idempotency_key)},
          {"createdAt", to_rfc3339(transfer.created_at)},
          {"updatedAt", to_rfc3339(transfer.updated_at)}};
}

json::object to_json(const Account& account) {
  return {{"guildId", text(account.guild_id)},
          {"memberId", text(account.member_id)},
          {"kind", account.kind},
          {"balance", text(account.balance)},
          {"reserved", text(account.reserved)},
          {"available", text(account.balance - account.reserved)},
          {"usedToday", text(account.used_today)},
          {"dailyLimit", text(account.daily_limit)},
          {"cooldownUntil", text(account.throttled_until)}};
}

json::object to_json(const GuildSettings& settings) {
  return {{"guildId", text(settings.guild_id)},
          {"dailyLimit", text(settings.daily_limit)},
          {"cooldownSeconds", settings.cooldown_seconds},
          {"defaultExpiryHours", settings.default_expiry_hours},
          {"maxRetries", optional_json(settings.max_retries)}};
}

json::object to_json(const Entry& entry) {
  return {{"ledgerId", text(entry.ledger_id)},
          {"transferId", entry.transfer_id.to_string()},
          {"kind", entry.kind},
          {"amount", text(entry.amount)},
          {"balanceAfter", text(entry.balance_after)},
          {"counterpartyId", text(entry.counterparty_id)},
          {"reason", text(entry.reason)},
          {"createdAt", to_rfc3339(entry.created_at)}};
}

}  // namespace fencepost::transfer

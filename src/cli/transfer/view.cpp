#include "cli/transfer/view.hpp"

#include <fmt/format.h>

#include <boost/json/object.hpp>

#include "base/duration_text.hpp"

#include "cli/answer_text.hpp"
#include "cli/text_table.hpp"

namespace fencepost::cli {
namespace {

namespace json = boost::json;

constexpr std::size_t kTransferReasonColumns = 40;

// "balance failed, cooldown ok": what failed comes first, because the end of a line may be cut.
std::string checks_text(const json::value& transfer) {
  const auto* checks = find_at(transfer, "checks");
  if (checks == nullptr || !checks->is_object()) return "";
  std::string out;
  for (const bool ok : {false, true}) {
    for (const auto& [name, passed] : checks->get_object()) {
      if ((passed == 1) != ok) continue;
      out += fmt::format("{}{} {}", out.empty() ? "" : ", ", std::string_view(name), ok ? "ok" : "failed");
    }
  }
  return out;
}

std::string retries_text(const json::value& transfer) {
  const auto retries = text_at(transfer, "retryCount");
  return retries == "0" ? "" : retries;
}

std::string detail_of(const json::value& transfer) {
  auto denied = text_at(transfer, "deniedReason");
  if (!denied.empty()) return denied;
  const auto ledger_id = text_at(transfer, "ledgerId");
  if (!ledger_id.empty()) return fmt::format("ledger id {}", ledger_id);
  if (text_at(transfer, "status") != "checking") return "";
  const auto next = when_utc(transfer, "nextAttemptAt");
  const auto checks = checks_text(transfer);
  return fmt::format("{}retry {}{}", checks.empty() ? "" : checks + "; ", text_at(transfer, "retryCount"),
                     next.empty() ? "" : ", next " + next);
}

}  // namespace

bool is_terminal(const json::value& transfer) {
  const auto status = text_at(transfer, "status");
  return status == "completed" || status == "rejected";
}

std::string transfer_details(const json::value& transfer, std::size_t width) {
  FactList facts;
  facts.add("transfer", text_at(transfer, "transferId"));
  facts.add("status", text_at(transfer, "status"));
  facts.add("denied", text_at(transfer, "deniedReason"));
  facts.add("mode", text_at(transfer, "mode"));
  facts.add("guild", text_at(transfer, "guildId"));
  facts.add("from", text_at(transfer, "initiatorId"));
  facts.add("to", text_at(transfer, "targetId"));
  facts.add("amount", text_at(transfer, "amount"));
  facts.add("reason", text_at(transfer, "reason"));
  const auto metadata = text_at(transfer, "metadata");
  facts.add("metadata", metadata == "{}" ? "" : metadata);
  facts.add("ledger id", text_at(transfer, "ledgerId"));
  facts.add("balance of payer", text_at(transfer, "initiatorBalance"));
  facts.add("balance of payee", text_at(transfer, "targetBalance"));
  facts.add("checks", checks_text(transfer));
  facts.add("retries", retries_text(transfer));
  if (!is_terminal(transfer)) {
    facts.add("next attempt", when_utc(transfer, "nextAttemptAt"));
    facts.add("expires", when_utc(transfer, "expiresAt"));
  }
  facts.add("key", text_at(transfer, "idempotencyKey"));
  facts.add("created", when_utc(transfer, "createdAt"));
  facts.add("updated", when_utc(transfer, "updatedAt"));
  return facts.text(width);
}

std::string transfer_table(const json::array& transfers, std::size_t width) {
  TextTable table({"TRANSFER",
                   "STATUS",
                   {"FROM", 2},
                   {"TO", 3},
                   {"AMOUNT", 1},
                   {"RETRIES", 6},
                   {"CREATED (UTC)", 4},
                   {"REASON", 5, 10}});
  for (const auto& transfer : transfers) {
    table.add({text_at(transfer, "transferId"), text_at(transfer, "status"), text_at(transfer, "initiatorId"),
               text_at(transfer, "targetId"), text_at(transfer, "amount"), retries_text(transfer),
               when(transfer, "createdAt"), shortened(text_at(transfer, "reason"), kTransferReasonColumns)});
  }
  return table.text(width);
}

std::string transfer_line(const json::value& transfer) {
  const auto at = text_at(transfer, "updatedAt");
  auto line = fmt::format("{}  {:<9}  {}", at.size() >= 23 ? at.substr(11, 12) : at, text_at(transfer, "status"),
                          detail_of(transfer));
  line.erase(line.find_last_not_of(' ') + 1);
  return printable(line);
}

std::string statement_table(const json::array& entries, std::size_t width) {
  TextTable table({{"LEDGER ID", 4},
                   "AT (UTC)",
                   {"KIND", 3},
                   "AMOUNT",
                   {"BALANCE", 1},
                   {"WITH", 2},
                   {"TRANSFER", 6},
                   {"REASON", 5, 12}});
  for (const auto& entry : entries) {
    table.add({text_at(entry, "ledgerId"), when(entry, "createdAt"), text_at(entry, "kind"), text_at(entry, "amount"),
               text_at(entry, "balanceAfter"), text_at(entry, "counterpartyId"), text_at(entry, "transferId"),
               shortened(text_at(entry, "reason"), kTransferReasonColumns)});
  }
  return table.text(width);
}

std::string issue_details(const json::value& issue, std::size_t width) {
  FactList facts;
  facts.add("kind", text_at(issue, "kind"));
  facts.add("guild", text_at(issue, "guildId"));
  facts.add("member", text_at(issue, "memberId"));
  facts.add("amount", text_at(issue, "amount"));
  facts.add("balance", text_at(issue, "balance"));
  facts.add("ledger id", text_at(issue, "ledgerId"));
  facts.add("transfer", text_at(issue, "transferId"));
  return facts.text(width);
}

std::string account_details(const json::value& account, std::size_t width) {
  const auto limit = text_at(account, "dailyLimit");
  FactList facts;
  facts.add("guild", text_at(account, "guildId"));
  facts.add("member", text_at(account, "memberId"));
  facts.add("kind", text_at(account, "kind"));
  facts.add("balance", text_at(account, "balance"));
  facts.add("reserved", text_at(account, "reserved"));
  facts.add("available", text_at(account, "available"));
  facts.add("used today", text_at(account, "usedToday"));
  facts.add("daily limit", limit.empty() ? "none" : limit);
  facts.add("cooldown until", when_utc(account, "cooldownUntil"));
  return facts.text(width);
}

std::string settings_details(const json::value& settings, std::size_t width) {
  const auto limit = text_at(settings, "dailyLimit");
  const auto retries = text_at(settings, "maxRetries");
  const auto cooldown = int_at(settings, "cooldownSeconds");
  FactList facts;
  facts.add("guild", text_at(settings, "guildId"));
  facts.add("daily limit", limit.empty() ? "none" : limit);
  facts.add("cooldown", cooldown ? duration_text(std::chrono::seconds(*cooldown)) : "");
  facts.add("expiry", text_at(settings, "defaultExpiryHours") + "h");
  facts.add("max retries", retries.empty() ? "none, until the transfer expires" : retries);
  return facts.text(width);
}

std::string audit_lines(const json::value& audit) {
  const auto* findings = find_at(audit, "findings");
  if (findings == nullptr || !findings->is_array()) return "";
  std::string out;
  for (const auto& finding : findings->get_array()) {
    const auto check = printable(text_at(finding, "check"));
    const auto wrong = text_at(finding, "wrong");
    if (wrong == "0") {
      out += fmt::format("ok     {}\n", check);
      continue;
    }
    const auto example = printable(text_at(finding, "example"));
    out += fmt::format("WRONG  {}  {}{}\n", check, printable(wrong), example.empty() ? "" : ", such as " + example);
  }
  return out;
}

}  // namespace fencepost::cli

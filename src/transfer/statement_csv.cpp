#include "transfer/statement_csv.hpp"

#include <fmt/format.h>

namespace fencepost::transfer {
namespace {

// First characters that make a spreadsheet evaluate a formula, in this cell or in the next one.
constexpr std::string_view kFormulaStarts = "=+-@\t\r\n";

}  // namespace

std::string csv_text(std::string_view text) {
  std::string safe;
  if (!text.empty() && kFormulaStarts.find(text.front()) != std::string_view::npos) safe = "'";
  safe += text;
  if (safe.find_first_of(",\"\r\n") == std::string::npos) return safe;
  std::string quoted = "\"";
  for (const char c : safe) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + '"';
}

std::string statement_csv(std::span<const Entry> entries) {
  std::string out = "ledgerId,createdAt,kind,amount,balanceAfter,counterpartyId,transferId,reason\r\n";
  for (const auto& entry : entries) {
    fmt::format_to(std::back_inserter(out), "{},{},{},{},{},{},{},{}\r\n", entry.ledger_id,
                   to_rfc3339(entry.created_at), csv_text(entry.kind), entry.amount, entry.balance_after,
                   entry.counterparty_id, entry.transfer_id.to_string(), csv_text(entry.reason.value_or("")));
  }
  return out;
}

}  // namespace fencepost::transfer

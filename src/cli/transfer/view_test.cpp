#include "cli/transfer/view.hpp"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

namespace fencepost::cli {
namespace {

namespace json = boost::json;

constexpr auto kWaiting = R"({
  "transferId": "0193309a-0000-7000-8000-000000000001", "mode": "pool", "guildId": "7", "initiatorId": "1",
  "targetId": "9223372036854775807", "amount": "40", "status": "checking",
  "checks": {"balance": 0, "cooldown": 1}, "retryCount": 2, "expiresAt": "2026-11-16T19:45:18.123456Z",
  "nextAttemptAt": "2026-11-15T19:45:22.000000Z", "deniedReason": null, "ledgerId": null, "reason": "rent",
  "metadata": {}, "idempotencyKey": "order-17", "createdAt": "2026-11-15T19:45:18.123456Z",
  "updatedAt": "2026-11-15T19:45:20.500000Z"})";

json::value status(const char* status, const char* more = R"("x": null)") {
  return json::parse(std::string(R"({"updatedAt": "2026-11-15T19:45:20.500000Z", "retryCount": 0, "status": ")") +
                     status + R"(", )" + more + "}");
}

TEST(transfer_view, a_waiting_transfer_shows_its_checks_and_next_attempt) {
  EXPECT_EQ(transfer_details(json::parse(kWaiting)),
            "transfer      0193309a-0000-7000-8000-000000000001\n"
            "status        checking\n"
            "mode          pool\n"
            "guild         7\n"
            "from          1\n"
            "to            9223372036854775807\n"
            "amount        40\n"
            "reason        rent\n"
            "checks        balance failed, cooldown ok\n"
            "retries       2\n"
            "next attempt  2026-11-15 19:45:22 UTC\n"
            "expires       2026-11-16 19:45:18 UTC\n"
            "key           order-17\n"
            "created       2026-11-15 19:45:18 UTC\n"
            "updated       2026-11-15 19:45:20 UTC\n");
}

TEST(transfer_view, a_completed_transfer_shows_its_result) {
  const auto done = json::parse(R"({"transferId": "t", "status": "completed", "mode": "sync", "ledgerId": "5",
    "initiatorBalance": "60", "targetBalance": "40", "createdAt": "2026-11-15T19:45:18.123456Z",
    "expiresAt": "2026-11-15T19:45:18.123456Z"})");
  EXPECT_EQ(transfer_details(done),
            "transfer          t\n"
            "status            completed\n"
            "mode              sync\n"
            "ledger id         5\n"
            "balance of payer  60\n"
            "balance of payee  40\n"
            "created           2026-11-15 19:45:18 UTC\n");
}

TEST(transfer_view, only_completed_and_rejected_are_the_end) {
  for (const auto* open : {"pending", "checking", "approved", "something new"}) {
    EXPECT_FALSE(is_terminal(status(open))) << open;
  }
  EXPECT_TRUE(is_terminal(status("completed")));
  EXPECT_TRUE(is_terminal(status("rejected")));
  EXPECT_FALSE(is_terminal(json::value(nullptr)));
}

TEST(transfer_view, a_change_is_a_line) {
  EXPECT_EQ(transfer_line(json::parse(kWaiting)),
            "19:45:20.500  checking   balance failed, cooldown ok; retry 2, next 2026-11-15 19:45:22 UTC");
  EXPECT_EQ(transfer_line(status("checking", R"("retryCount": 0, "checks": {"cooldown": 1, "dailyLimit": 0})")),
            "19:45:20.500  checking   dailyLimit failed, cooldown ok; retry 0");
  EXPECT_EQ(transfer_line(status("approved")), "19:45:20.500  approved");
  EXPECT_EQ(transfer_line(status("completed", R"("ledgerId": "5")")), "19:45:20.500  completed  ledger id 5");
  EXPECT_EQ(transfer_line(status("rejected", R"("deniedReason": "transfer_cancelled")")),
            "19:45:20.500  rejected   transfer_cancelled");
  EXPECT_EQ(transfer_line(status("completed", R"("ledgerId": "5\u001b[2J")")),
            "19:45:20.500  completed  ledger id 5 [2J");
}

TEST(transfer_view, a_list_has_one_line_per_item) {
  EXPECT_EQ(transfer_table({json::parse(kWaiting), json::parse(R"({"transferId": "t", "status": "completed"})")}),
            "TRANSFER                              STATUS     FROM  TO                   AMOUNT  RETRIES  "
            "CREATED (UTC)        REASON\n"
            "0193309a-0000-7000-8000-000000000001  checking   1     9223372036854775807  40      2        "
            "2026-11-15 19:45:18  rent\n"
            "t                                     completed\n");
}

TEST(transfer_view, a_statement_has_amounts_and_balances) {
  const auto entries = json::parse(R"([
    {"ledgerId": "5", "transferId": "t", "kind": "transfer", "amount": "-40", "balanceAfter": "60",
     "counterpartyId": "2", "reason": "rent\n", "createdAt": "2026-11-15T19:45:18.123456Z"},
    {"ledgerId": "4", "transferId": "u", "kind": "mint", "amount": "100", "balanceAfter": "100",
     "counterpartyId": "0", "reason": null, "createdAt": "2026-11-15T19:45:17.123456Z"}])");
  EXPECT_EQ(statement_table(entries.as_array()),
            "LEDGER ID  AT (UTC)             KIND      AMOUNT  BALANCE  WITH  TRANSFER  REASON\n"
            "5          2026-11-15 19:45:18  transfer  -40     60       2     t         rent\n"
            "4          2026-11-15 19:45:17  mint      100     100      0     u\n");
}

TEST(transfer_view, an_audit_is_a_line_a_check) {
  EXPECT_EQ(audit_lines(json::parse(R"({"ok": false, "findings": [
              {"check": "supply_balances", "wrong": 0, "example": null},
              {"check": "reserved_is_approved", "wrong": 2, "example": "guild 7"},
              {"check": "other", "wrong": 1, "example": null}]})")),
            "ok     supply_balances\n"
            "WRONG  reserved_is_approved  2, such as guild 7\n"
            "WRONG  other  1\n");
  EXPECT_EQ(audit_lines(json::value(nullptr)), "");
}

}  // namespace
}  // namespace fencepost::cli

// One mail of each kind, and the attempts to send it.
#pragma once

#include "notify/notify_test_support.hpp"

namespace fencepost::notify {

class OutgoingTest : public NotifyTest {
 protected:
  static constexpr auto kClaimed = 1h;

  static std::string_view table_of(MailKind kind) {
    if (kind == MailKind::kCode) return "email_verification_codes";
    return kind == MailKind::kFlow ? "email_send_logs" : "operator_email_logs";
  }

  std::int64_t add_code(std::int64_t user_email_id, std::string_view lifetime = "10 min") {
    return admin.value<std::int64_t>(
        "INSERT INTO email_verification_codes (user_email_id, code_hash, salt, expires_at) "
        "VALUES ($1, sha256('x'), '\\x00ff', clock_timestamp() + $2::interval) RETURNING id",
        pg::Params::of(user_email_id, lifetime));
  }
  void add_flow_mail(std::int64_t email_id, int flow = 1) {
    with_pool(
        [&](pg::Pool& pool) -> awaitable<> { co_await add_flow_mails(pool, claim, {{queued(flow), {email_id}}}); });
  }
  void add_report(std::int64_t seq = 1) {
    with_pool([&](pg::Pool& pool) -> awaitable<> {
      OperatorEvent event{
          .seq = seq, .type = "TxStuck", .subject = "tx/1", .at = at("2026-01-02T00:00:00Z"), .data = "{}"};
      co_await add_operator_mails(pool, claim, std::move(event), {"ops@example.org"});
    });
  }
  // A mail of that kind, and what it needs.
  void add_mail(MailKind kind) {
    if (kind == MailKind::kCode) add_code(add_address(add_user(1), "p1@example.org", false));
    if (kind == MailKind::kFlow) add_flow_mail(add_subscriber(1));
    if (kind == MailKind::kOperator) add_report();
  }

  Outgoing claim_due(std::size_t limit = 100) {
    Outgoing out;
    with_pool([&](pg::Pool& pool) -> awaitable<> { out = co_await claim_mails(pool, each(limit), kClaimed); });
    return out;
  }
  static std::vector<MailRow> rows_of(const Outgoing& mails) {
    std::vector<MailRow> out;
    for (const auto& mail : mails.codes) out.push_back(mail.row);
    for (const auto& mail : mails.flows) out.push_back(mail.row);
    for (const auto& mail : mails.operators) out.push_back(mail.row);
    return out;
  }
  MailRow claim_one() {
    const auto rows = rows_of(claim_due());
    EXPECT_EQ(rows.size(), 1U);
    return rows.at(0);
  }
  std::vector<bool> end(std::vector<MailEnd> ends) {
    std::vector<bool> out;
    with_pool([&](pg::Pool& pool) -> awaitable<> { out = co_await end_attempts(pool, ends); });
    return out;
  }
  bool end(const MailRow& row, SendDecision decision) { return end(std::vector{end_of(row, std::move(decision))})[0]; }
};

}  // namespace fencepost::notify

// What an attempt leaves behind.
#include "notify/store/address_store.hpp"
#include "notify/store/outgoing_test_support.hpp"
#include "pg/bytes.hpp"

namespace fencepost::notify {
namespace {

class OutgoingEnds : public OutgoingTest {};

struct Ending {
  std::string name;
  SendDecision decision;
  std::string status;
  std::string retries;
  std::string error;  // "-": none
  bool keeps_salt = false;
};

void PrintTo(const Ending& ending, std::ostream* out) {
  *out << ending.name;
}

class Endings : public OutgoingEnds, public ::testing::WithParamInterface<std::tuple<MailKind, Ending>> {};

TEST_P(Endings, are_stored) {
  const auto& [kind, ending] = GetParam();
  add_mail(kind);
  const auto table = table_of(kind);
  const auto row = claim_one();
  EXPECT_TRUE(end(row, ending.decision));
  EXPECT_EQ(only("send_status", table), ending.status);
  EXPECT_EQ(only("retry_count", table), ending.retries);
  EXPECT_EQ(only("coalesce(error_message, '-')", table), ending.error);
  EXPECT_EQ(only("maybe_sent", table), ending.decision.maybe_sent ? "true" : "false");
  EXPECT_EQ(only("claimed_until IS NULL", table), "true");
  EXPECT_EQ(only("sent_at IS NOT NULL", table), ending.status == "success" ? "true" : "false");
  if (kind == MailKind::kCode) {
    EXPECT_EQ(only("salt IS NOT NULL", table), ending.keeps_salt ? "true" : "false");
  }
  EXPECT_FALSE(end(row, sent())) << "an attempt ends once";
  EXPECT_EQ(only("send_status", table), ending.status);
}

std::vector<Ending> endings() {
  auto given_up = dead();
  given_up.maybe_sent = true;
  return {{"sent", sent(), "success", "0", "-"},
          {"failed", failed(1h), "failed", "1", "451 later", true},
          {"maybe_sent", failed(1h, true), "failed", "1", "451 later", true},
          {"dead", dead(), "dead", "1", "550 no"},
          {"given_up", given_up, "dead", "1", "550 no"},
          {"suppressed", {.status = SendStatus::kSuppressed, .error = "not wanted"}, "suppressed", "0", "not wanted"},
          {"given_back", given_back(), "pending", "0", "-", true}};
}

INSTANTIATE_TEST_SUITE_P(of, Endings,
                         ::testing::Combine(::testing::Values(MailKind::kCode, MailKind::kFlow, MailKind::kOperator),
                                            ::testing::ValuesIn(endings())),
                         [](const auto& info) {
                           const auto kind = std::get<0>(info.param);
                           return std::get<1>(info.param).name + (kind == MailKind::kCode   ? "_code"
                                                                  : kind == MailKind::kFlow ? "_flow_mail"
                                                                                            : "_report");
                         });

TEST_F(OutgoingEnds, that_failed_are_due_again_after_their_delay) {
  add_mail(MailKind::kFlow);
  EXPECT_TRUE(end(claim_one(), failed(90s)));
  EXPECT_EQ(only("next_attempt_at - clock_timestamp() BETWEEN interval '80 s' AND interval '90 s'"), "true");
  EXPECT_EQ(claim_due().size(), 0U);
  admin.must("UPDATE email_send_logs SET next_attempt_at = clock_timestamp()");
  const auto again = claim_one();
  EXPECT_EQ(again.failures, 1);
  EXPECT_TRUE(end(again, failed()));
  EXPECT_EQ(claim_one().failures, 2);
}

TEST_F(OutgoingEnds, that_give_a_failed_mail_back_leave_it_failed) {
  add_mail(MailKind::kFlow);
  EXPECT_TRUE(end(claim_one(), failed()));
  EXPECT_TRUE(end(claim_one(), given_back()));
  EXPECT_EQ(only("concat_ws(' ', send_status, retry_count, error_message, maybe_sent)"), "failed 1 451 later f");
}

TEST_F(OutgoingEnds, remember_that_an_earlier_attempt_may_have_sent_the_mail) {
  add_mail(MailKind::kFlow);
  EXPECT_TRUE(end(claim_one(), failed(0ms, true)));
  EXPECT_TRUE(end(claim_one(), failed(0ms, false)));
  EXPECT_TRUE(end(claim_one(), given_back()));
  EXPECT_EQ(only("maybe_sent"), "true");
}

TEST_F(OutgoingEnds, do_not_revive_a_mail_that_was_stopped_meanwhile) {
  for (const auto& decision : {sent(), failed(), given_back(), dead()}) {
    SCOPED_TRACE(static_cast<int>(decision.status));
    admin.must("DELETE FROM users");
    add_mail(MailKind::kCode);
    const auto row = claim_one();
    admin.must("UPDATE email_verification_codes SET send_status = 'suppressed', is_used = true, salt = NULL");
    EXPECT_FALSE(end(row, decision));
    EXPECT_EQ(only("send_status", "email_verification_codes"), "suppressed");
    EXPECT_EQ(claim_due().size(), 0U);
  }
}

TEST_F(OutgoingEnds, of_all_kinds_are_stored_together_and_a_lost_one_fails_alone) {
  for (const auto kind : {MailKind::kCode, MailKind::kOperator}) add_mail(kind);
  const auto email = add_subscriber(2);
  for (int flow = 1; flow <= 2; ++flow) add_flow_mail(email, flow);
  const auto rows = rows_of(claim_due());
  ASSERT_EQ(rows.size(), 4U);
  std::vector<MailEnd> ends;
  for (const auto& row : rows) ends.push_back(end_of(row, sent()));
  std::ranges::reverse(ends);
  ends[2].token -= 1;  // the first flow's
  EXPECT_EQ(end(ends), (std::vector{true, true, false, true}));
  EXPECT_EQ(mails(), "pending|change|0 success|change|0");
}

TEST_F(OutgoingEnds, without_a_mailbox_mark_the_address_until_it_is_verified_again) {
  add_mail(MailKind::kFlow);
  subscribe(add_address(add_user(2), "other@example.org"), {.scope = "all"});
  add_flow_mail(email_id("p1@example.org"), 2);
  auto mails = claim_due().flows;
  EXPECT_TRUE(end(mails.at(0).row, dead()));
  EXPECT_EQ(count("emails WHERE NOT is_deliverable"), 0) << "refused, but the mailbox exists";
  EXPECT_TRUE(end(mails.at(1).row, dead(true)));
  EXPECT_EQ(only("email", "emails WHERE NOT is_deliverable"), "p1@example.org");
  add_flow_mail(email_id("p1@example.org"), 3);
  EXPECT_FALSE(claim_due().flows.at(0).is_deliverable);

  const auto user =
      admin.value<std::int64_t>("SELECT id FROM users WHERE wallet_address = $1", pg::Params::of(wallet(1)));
  const auto mine = admin.value<std::int64_t>("SELECT id FROM user_emails WHERE user_id = $1", pg::Params::of(user));
  const Digest256 hash{1};
  admin.must(
      "INSERT INTO email_verification_codes (user_email_id, code_hash, expires_at) VALUES ($1, $2, now() + interval '1 "
      "h')",
      pg::Params::of(mine, pg::to_bytes(hash)));
  with_pool([&](pg::Pool& pool) -> awaitable<> { EXPECT_TRUE(co_await mark_verified(pool, user, mine, hash)); });
  EXPECT_EQ(count("emails WHERE NOT is_deliverable"), 0);
}

TEST_F(OutgoingEnds, without_a_mailbox_mark_the_address_of_a_code) {
  add_mail(MailKind::kCode);
  EXPECT_TRUE(end(claim_one(), dead(true)));
  EXPECT_EQ(only("is_deliverable", "emails"), "false");
}

TEST_F(OutgoingEnds, under_an_old_token_mark_no_address) {
  add_mail(MailKind::kFlow);
  const auto old = claim_one();
  expire_claims();
  claim_one();
  EXPECT_FALSE(end(old, dead(true)));
  EXPECT_EQ(only("is_deliverable", "emails"), "true");
}

}  // namespace
}  // namespace fencepost::notify

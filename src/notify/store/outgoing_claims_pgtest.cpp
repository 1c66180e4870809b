// Which mails a sender gets: each row has one sender at a time, and comes with what the person wants now.
#include <set>

#include "notify/store/outgoing_test_support.hpp"
#include "runtime/gather.hpp"

namespace fencepost::notify {
namespace {

class OutgoingClaims : public OutgoingTest {
 protected:
  FlowMail only_flow_mail() {
    const auto mails = claim_due();
    EXPECT_EQ(mails.flows.size(), 1U);
    expire_claims();
    return mails.flows.at(0);
  }
};

TEST_F(OutgoingClaims, never_give_one_mail_to_two_senders) {
  constexpr int kMails = 300;
  const auto email = add_subscriber(1);
  admin.must(
      "INSERT INTO email_send_logs (email_id, flow_id, timelock_standard, chain_id, contract_address, generation, "
      "status_to, kind, retraction, changed_at, initiator_address) SELECT $1, n::text, 'compound', 1, $2, 1, "
      "'waiting', "
      "'change', 0, now(), $3 FROM generate_series(1, $4) AS n",
      pg::Params::of(email, kContract, wallet(1), kMails));
  test::with_pool(db.dsn(), {.shared_connections = 8}, [&](pg::Pool& pool) -> awaitable<> {
    std::vector<awaitable<Outgoing>> senders;
    for (int i = 0; i < 60; ++i) senders.push_back(claim_mails(pool, each(7), kClaimed));
    const auto claimed = co_await gather(std::move(senders));
    std::multiset<std::int64_t> ids;
    for (const auto& mails : claimed) {
      for (const auto& mail : mails.flows) ids.insert(mail.row.id);
    }
    const auto left = co_await claim_mails(pool, each(kMails), kClaimed);
    for (const auto& mail : left.flows) ids.insert(mail.row.id);
    EXPECT_EQ(ids.size(), std::size_t{kMails});
    EXPECT_EQ((std::set<std::int64_t>(ids.begin(), ids.end()).size()), std::size_t{kMails});
  });
}

TEST_F(OutgoingClaims, do_not_wait_for_a_sender_that_is_claiming) {
  const auto email = add_subscriber(1);
  for (int flow = 1; flow <= 3; ++flow) add_flow_mail(email, flow);
  interleaving::Theatre theatre(db.dsn());
  interleaving::Session a(db.dsn(), "a"), b(db.dsn(), "b");
  const auto two = pg::Params::of(2, 60'000);
  a.must("BEGIN");
  EXPECT_EQ(a.must(sql::kClaimFlowMails.sql, two).size(), 2);
  b.send(sql::kClaimFlowMails.sql, two);
  EXPECT_TRUE(theatre.settled(b));
  EXPECT_EQ(b.take().rows.size(), 1);
}

class MailClaims : public OutgoingClaims, public ::testing::WithParamInterface<MailKind> {};

TEST_P(MailClaims, are_not_due_while_they_last_and_are_repeated_under_a_higher_token_when_they_expire) {
  add_mail(GetParam());
  const auto table = table_of(GetParam());
  const auto first = claim_one();
  EXPECT_EQ(first.kind, GetParam());
  EXPECT_EQ(claim_due().size(), 0U);
  EXPECT_EQ(only("maybe_sent", table), "false");
  expire_claims();
  const auto second = claim_one();
  EXPECT_EQ(second.id, first.id);
  EXPECT_EQ(second.token, first.token + 1);
  EXPECT_EQ(only("maybe_sent", table), "true") << "the node may have died after the mail left";
  EXPECT_FALSE(end(first, sent())) << "the slow node is too late";
  EXPECT_EQ(only("send_status", table), "pending");
  EXPECT_TRUE(end(second, sent()));
  EXPECT_EQ(only("send_status", table), "success");
  EXPECT_EQ(claim_due().size(), 0U);
}

TEST_P(MailClaims, are_made_of_mails_that_are_due) {
  add_mail(GetParam());
  admin.must(fmt::format("UPDATE {} SET next_attempt_at = clock_timestamp() + interval '1 min'", table_of(GetParam())));
  EXPECT_EQ(claim_due().size(), 0U);
  admin.must(fmt::format("UPDATE {} SET next_attempt_at = clock_timestamp()", table_of(GetParam())));
  EXPECT_EQ(claim_due().size(), 1U);
}

INSTANTIATE_TEST_SUITE_P(of, MailClaims, ::testing::Values(MailKind::kCode, MailKind::kFlow, MailKind::kOperator),
                         [](const auto& info) {
                           return std::string(info.param == MailKind::kCode   ? "codes"
                                              : info.param == MailKind::kFlow ? "flow_mails"
                                                                              : "reports");
                         });

TEST_F(OutgoingClaims, take_the_longest_due_first_and_hand_out_codes_in_the_order_of_requests) {
  const auto user = add_user(1);
  std::vector<std::int64_t> codes;
  for (int i = 0; i < 4; ++i) codes.push_back(add_code(add_address(user, fmt::format("a{}@example.org", i), false)));
  // The second was asked for first of all that are due, and the third was put off.
  admin.must("UPDATE email_verification_codes SET next_attempt_at = now() - interval '1 h' WHERE id = $1",
             pg::Params::of(codes[1]));
  admin.must("UPDATE email_verification_codes SET next_attempt_at = now() + interval '1 h' WHERE id = $1",
             pg::Params::of(codes[2]));
  const auto mails = claim_due(2).codes;
  EXPECT_EQ(mails.size(), 2U);
  EXPECT_EQ(mails.at(0).row.id, codes[0]);
  EXPECT_EQ(mails.at(1).row.id, codes[1]);
  EXPECT_EQ(claim_due().codes.at(0).row.id, codes[3]);
}

TEST_F(OutgoingClaims, of_codes_say_what_to_mail_in_which_language) {
  const auto mine = add_address(add_user(1, "zh"), "p1@example.org", false);
  add_code(mine);
  add_code(mine, "-1 s");
  admin.must(
      "UPDATE email_verification_codes SET salt = NULL WHERE id = (SELECT max(id) FROM email_verification_codes)");
  const auto codes = claim_due().codes;
  EXPECT_EQ(codes.at(0).row.address, "p1@example.org");
  EXPECT_EQ(codes.at(0).salt, "00ff");
  EXPECT_FALSE(codes.at(0).expired);
  EXPECT_EQ(codes.at(0).language, "zh");
  EXPECT_EQ(codes.at(1).salt, std::nullopt);
  EXPECT_TRUE(codes.at(1).expired);
}

TEST_F(OutgoingClaims, of_flow_mails_say_what_changed) {
  const auto email = add_subscriber(1);
  auto change = queued();
  change.via = wallet(2);
  with_pool([&](pg::Pool& pool) -> awaitable<> { co_await add_flow_mails(pool, claim, {{change, {email}}}); });
  const auto mail = only_flow_mail();
  EXPECT_EQ(mail.ref, change.ref);
  EXPECT_EQ(mail.change.from, change.from);
  EXPECT_EQ(mail.change.to, change.to);
  EXPECT_FALSE(mail.change.correction);
  EXPECT_EQ(mail.change.tx_hash, change.tx_hash);
  EXPECT_EQ(mail.change.changed_at, change.changed_at);
  EXPECT_EQ(mail.initiator, change.initiator);
  EXPECT_EQ(mail.via, change.via);
  EXPECT_EQ(mail.email_id, email);
  EXPECT_EQ(mail.readers.size(), 1U);
  EXPECT_TRUE(mail.is_deliverable);
}

// What a person can do between the change and the mail.
TEST_F(OutgoingClaims, name_no_reader_of_a_mail_that_is_not_wanted_any_more) {
  const std::pair<std::string, std::string> changes[]{
      {"UPDATE user_email_subscriptions SET is_active = false", "UPDATE user_email_subscriptions SET is_active = true"},
      {"UPDATE user_email_subscriptions SET notify_on = '[\"ready\"]'",
       "UPDATE user_email_subscriptions SET notify_on = '[\"waiting\"]'"},
      {"UPDATE user_emails SET is_verified = false", "UPDATE user_emails SET is_verified = true"},
      {"UPDATE email_send_logs SET initiator_address = 'x'",
       "UPDATE email_send_logs SET initiator_address = '" + wallet(1) + "'"},
      {"UPDATE user_email_subscriptions SET since_block = 101",
       "UPDATE user_email_subscriptions SET since_block = 100"},
      {"DELETE FROM user_email_subscriptions", ""},
  };
  add_flow_mail(add_subscriber(1));
  for (const auto& [change, undo] : changes) {
    EXPECT_EQ(only_flow_mail().readers.size(), 1U) << change;
    admin.must(change);
    EXPECT_EQ(only_flow_mail().readers.size(), 0U) << change;
    if (!undo.empty()) admin.must(undo);
  }
}

TEST_F(OutgoingClaims, count_the_person_who_logs_in_as_the_safe_and_everyone_who_follows_all_flows) {
  for (const int number : {1, 2}) subscribe(add_address(add_user(number), "team@example.org"));
  subscribe(add_address(add_user(3), "team@example.org"), {.scope = "all"});
  subscribe(add_address(add_user(4), "team@example.org"));
  auto change = queued();
  change.via = wallet(2);
  with_pool([&](pg::Pool& pool) -> awaitable<> {
    co_await add_flow_mails(pool, claim, {{change, {email_id("team@example.org")}}});
  });
  EXPECT_EQ(only_flow_mail().readers.size(), 3U);
}

TEST_F(OutgoingClaims, say_what_each_reader_asked_for) {
  const auto mine = add_address(add_user(1, "zh"), "team@example.org", true, "mine");
  const auto filters = fmt::format(R"({{"targets": ["{}"]}})", kOtherContract);
  subscribe(mine, {.scope = "all", .filters = filters});
  add_address(add_user(2), "team@example.org", true, "has no subscription");
  add_flow_mail(email_id("team@example.org"));
  const auto readers = only_flow_mail().readers;
  ASSERT_EQ(readers.size(), 1U);
  EXPECT_EQ(readers.at(0).language, "zh");
  EXPECT_EQ(readers.at(0).remark, "mine");
  EXPECT_EQ(readers.at(0).filters.targets, std::vector<std::string>{kOtherContract});
}

TEST_F(OutgoingClaims, of_a_correction_name_all_who_still_subscribe) {
  add_flow_mail(add_subscriber(1));
  admin.must(
      "INSERT INTO email_send_logs (email_id, flow_id, timelock_standard, chain_id, contract_address, generation, "
      "status_to, kind, retraction, changed_at, initiator_address, corrects) "
      "SELECT email_id, flow_id, timelock_standard, chain_id, contract_address, generation, status_to, 'correction', "
      "1, "
      "changed_at, initiator_address, id FROM email_send_logs");
  admin.must("UPDATE email_send_logs SET send_status = 'success' WHERE kind = 'change'");
  admin.must("UPDATE user_email_subscriptions SET notify_on = '[\"executed\"]', since_block = 1000");
  EXPECT_EQ(only_flow_mail().readers.size(), 1U) << "it was told, so it is told that it was wrong";
  admin.must("UPDATE user_email_subscriptions SET is_active = false");
  EXPECT_EQ(only_flow_mail().readers.size(), 0U);
}

TEST_F(OutgoingClaims, take_the_mails_about_one_flow_to_one_address_in_their_order) {
  const auto email = add_subscriber(1);
  auto later = queued();
  later.to = "ready";
  with_pool([&](pg::Pool& pool) -> awaitable<> {
    co_await add_flow_mails(pool, claim, {{queued(), {email}}, {later, {email}}, {queued(2), {email}}});
    auto first = (co_await claim_mails(pool, each(10), 1h)).flows;
    EXPECT_EQ(first.size(), 2U) << "one of each flow";
    EXPECT_EQ(first.at(0).change.to, "waiting");
    const std::vector<MailEnd> put_off{end_of(first.at(0).row, failed(1h))};
    co_await end_attempts(pool, put_off);
    EXPECT_EQ((co_await claim_mails(pool, each(10), 1h)).flows.size(), 0U) << "the later one waits for the retry";
  });
}

TEST_F(OutgoingClaims, leave_a_backlog_of_the_mails_that_are_due_and_not_being_sent) {
  for (const auto kind : {MailKind::kCode, MailKind::kOperator}) add_mail(kind);
  add_flow_mail(add_subscriber(2));
  admin.must("UPDATE email_send_logs SET next_attempt_at = clock_timestamp() - interval '1 h'");
  const auto backlog = [&] {
    Backlog out;
    with_pool([&](pg::Pool& pool) -> awaitable<> { out = co_await mail_backlog(pool); });
    return out;
  };
  EXPECT_EQ(backlog().mails, 3);
  EXPECT_GE(backlog().oldest, 1h);
  EXPECT_LT(backlog().oldest, 2h);
  claim_due();
  EXPECT_EQ(backlog().mails, 0);
  EXPECT_EQ(backlog().oldest, 0ms);
  expire_claims();
  EXPECT_EQ(backlog().mails, 3) << "their node died: they are due again";
}

}  // namespace
}  // namespace fencepost::notify

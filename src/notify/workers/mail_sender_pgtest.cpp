// Sending on a real database: how fast, how often, and what happens when the transport fails or the node stops.
#include <ranges>
#include <set>

#include "notify/mail_node_test_support.hpp"
#include "notify/store/outgoing_test_support.hpp"

namespace fencepost::notify {
namespace {

using test::eventually;

SendOutcome not_sent() {
  return {.result = SendResult::kNotSent, .detail = "451 later"};
}
SendOutcome transport_down() {
  return {.result = SendResult::kNotSent, .detail = "no connection", .transport_failed = true};
}

class MailSenders : public OutgoingTest {
 protected:
  // `count` people with one mail each; person i has an address at the domain `domain`(i).
  void add_mails(int count, std::string (*domain)(int) = [](int) { return std::string("example.org"); }) {
    std::vector<std::int64_t> emails;
    for (int i = 1; i <= count; ++i) {
      const auto address = fmt::format("p{}@{}", i, domain(i));
      subscribe(add_address(add_user(i), address), {.scope = "all"});
      emails.push_back(email_id(address));
    }
    with_pool([&](pg::Pool& pool) -> awaitable<> { co_await add_flow_mails(pool, claim, {{queued(), emails}}); });
  }
  bool all_sent() {
    return eventually([&] { return count("email_send_logs WHERE send_status <> 'success'") == 0; });
  }
  // Waits until the only mail has that status and is not being sent.
  bool becomes(const std::string& status) {
    return eventually([&] { return only("send_status || coalesce(claimed_until::text, '')") == status; });
  }
  void make_due() { admin.must("UPDATE email_send_logs SET next_attempt_at = clock_timestamp()"); }
};

TEST_F(MailSenders, send_every_mail_once_from_two_nodes) {
  auto options = mail_options();
  options.rate_per_second = options.domain_rate_per_second = 10'000;
  add_mails(120);
  MailNode a(db.dsn(), options), b(db.dsn(), options);
  a.transport.stuck = b.transport.stuck = true;  // until both have claimed some
  a.start();
  b.start();
  ASSERT_TRUE(eventually([&] { return !a.transport.attempts().empty() && !b.transport.attempts().empty(); }));
  a.transport.stuck = b.transport.stuck = false;
  ASSERT_TRUE(all_sent());
  auto ids = a.transport.message_ids();
  const auto more = b.transport.message_ids();
  ids.insert(ids.end(), more.begin(), more.end());
  EXPECT_EQ(ids.size(), 120U);
  EXPECT_EQ((std::set<std::string>(ids.begin(), ids.end()).size()), 120U);
}

TEST_F(MailSenders, fail_only_the_mails_of_a_flow_that_cannot_be_read) {
  add_mails(2);
  const auto ref = queued(2).ref;
  subscribe(add_address(add_user(3), "other@example.org"), {.scope = "all"});
  with_pool([&](pg::Pool& pool) -> awaitable<> {
    co_await add_flow_mails(pool, claim, {{queued(2), {email_id("other@example.org")}}});
  });
  MailNode node(db.dsn(), mail_options());
  node.flows.broken.insert(ref);
  node.start();
  ASSERT_TRUE(eventually([&] { return count("email_send_logs WHERE send_status = 'pending'") == 0; }));
  EXPECT_EQ(only("string_agg(send_status || coalesce(' ' || error_message, ''), ', ' ORDER BY id)", "email_send_logs"),
            "success, success, failed the row is damaged");
}

// A second of rest earns a burst of a second.
void expect_pace(const std::vector<StubTransport::Attempt>& attempts, std::size_t per_second) {
  for (std::size_t i = 0; i < attempts.size(); ++i) {
    const std::chrono::duration<double> after = attempts[i].at - attempts.front().at;
    EXPECT_LE(static_cast<double>(i), (after.count() + 1) * static_cast<double>(per_second) + 2) << i;
  }
}

TEST_F(MailSenders, keep_the_rate_of_the_node) {
  auto options = mail_options();
  options.rate_per_second = 20;
  options.domain_rate_per_second = 10'000;
  add_mails(50);
  MailNode node(db.dsn(), options, nullptr, 2);
  node.start();
  ASSERT_TRUE(all_sent());
  EXPECT_EQ(node.transport.attempts().size(), 50U);
  expect_pace(node.transport.attempts(), 20);
}

TEST_F(MailSenders, keep_the_rate_of_a_domain_and_put_its_mails_off_uncounted) {
  auto options = mail_options();
  options.rate_per_second = 10'000;
  options.domain_rate_per_second = 4;
  add_mails(40, [](int i) { return i % 2 == 0 ? fmt::format("d{}.example.org", i) : std::string("slow.example.org"); });
  MailNode node(db.dsn(), options, nullptr, 2);
  node.start();
  ASSERT_TRUE(all_sent());
  std::vector<StubTransport::Attempt> slow;
  for (const auto& attempt : node.transport.attempts()) {
    if (attempt.mail.to.ends_with("@slow.example.org")) slow.push_back(attempt);
  }
  EXPECT_EQ(slow.size(), 20U);
  EXPECT_EQ(node.transport.attempts().size(), 40U);
  expect_pace(slow, 4);
  EXPECT_EQ(count("email_send_logs WHERE retry_count > 0 OR maybe_sent"), 0);
}

TEST_F(MailSenders, pause_when_the_transport_fails_as_a_whole_and_count_only_what_was_tried) {
  auto options = mail_options();
  options.retry_initial = 1ms;
  add_mails(12);
  MailNode node(db.dsn(), options);
  node.transport.answer_with([](const Mail&) { return transport_down(); });
  node.start();
  ASSERT_TRUE(eventually([&] { return count("email_send_logs WHERE send_status = 'failed'") > 0; }));
  EXPECT_LE(node.transport.attempts().size(), 2U) << "only those that were in flight together";
  EXPECT_GE(count("email_send_logs WHERE send_status = 'pending' AND claim_token = 0"), 8)
      << "no row is claimed in vain";
  ASSERT_TRUE(eventually([&] { return node.transport.attempts().size() >= 3; })) << "it is tried again";
  node.transport.answer_with([](const Mail&) { return SendOutcome{.result = SendResult::kSent, .detail = ""}; });
  ASSERT_TRUE(all_sent());
  const auto failures = admin.value<std::int64_t>("SELECT sum(retry_count) FROM email_send_logs");
  EXPECT_EQ(failures + 12, static_cast<std::int64_t>(node.transport.attempts().size()));
  EXPECT_EQ(count("email_send_logs WHERE maybe_sent"), 0);
}

TEST_F(MailSenders, try_a_mail_again_after_a_wait_that_doubles_until_its_time_is_over) {
  auto options = mail_options();
  options.retry_initial = 60s;
  options.retry_for = 24h;
  add_mails(1);
  MailNode node(db.dsn(), options);
  node.transport.answer_with([](const Mail&) { return not_sent(); });
  node.start();
  for (const int failures : {1, 2, 3}) {
    ASSERT_TRUE(eventually([&] { return only("retry_count") == std::to_string(failures); }));
    EXPECT_EQ(only("send_status || ' ' || error_message"), "failed 451 later");
    const auto longest = 60 * (1 << (failures - 1));
    EXPECT_EQ(only(fmt::format("next_attempt_at - clock_timestamp() BETWEEN interval '{} s' AND interval '{} s'",
                               longest / 2 - 10, longest)),
              "true")
        << failures;
    if (failures == 3) admin.must("UPDATE email_send_logs SET created_at = clock_timestamp() - interval '24 h'");
    make_due();
    node.sender.wake();
  }
  ASSERT_TRUE(becomes("dead"));
  EXPECT_EQ(only("error_message"), "given up after 1d: 451 later");
  EXPECT_EQ(node.transport.attempts().size(), 4U);
}

TEST_F(MailSenders, repeat_a_mail_that_may_have_been_sent_under_the_same_message_id) {
  auto options = mail_options();
  options.retry_initial = 1ms;
  add_mails(1);
  std::string first;
  {
    MailNode node(db.dsn(), options);
    node.transport.answer_with(
        [](const Mail&) { return SendOutcome{.result = SendResult::kMaybeSent, .detail = "lost"}; });
    node.start();
    ASSERT_TRUE(eventually([&] { return node.transport.attempts().size() >= 2; }));
    node.stop();
    EXPECT_EQ(only("maybe_sent"), "true");
    EXPECT_EQ(node.transport.message_ids()[0], node.transport.message_ids()[1]);
    first = node.transport.message_ids()[0];
  }
  add_flow_mail(email_id("p1@example.org"), 2);
  MailNode other(db.dsn(), options);
  other.start();
  ASSERT_TRUE(all_sent());
  const auto ids = other.transport.message_ids();
  EXPECT_EQ(ids.size(), 2U);
  EXPECT_EQ(std::ranges::count(ids, first), 1) << "also from another node; the other mail has its own";
}

// Cut off, an attempt would be repeated.
TEST_F(MailSenders, let_the_attempts_end_when_the_node_stops) {
  add_mails(5);
  MailNode node(db.dsn(), mail_options());
  node.transport.stuck = true;
  node.start();
  ASSERT_TRUE(eventually([&] { return node.transport.attempts().size() == 2; })) << "as many as there are lanes";
  EXPECT_EQ(count("email_send_logs WHERE claimed_until IS NOT NULL"), 2) << "a claim means an attempt";
  node.sends = false;
  auto stopped = asio::co_spawn(node.runtime.loop(0), node.sender.stop(20s), asio::use_future);
  EXPECT_EQ(stopped.wait_for(4s), std::future_status::timeout) << "within email.timeout";
  node.transport.stuck = false;
  stopped.get();
  EXPECT_EQ(node.transport.attempts().size(), 2U);
  EXPECT_EQ(count("email_send_logs WHERE send_status = 'success' AND NOT maybe_sent"), 2);
  EXPECT_EQ(count("email_send_logs WHERE send_status = 'pending' AND claim_token = 0"), 3);
}

TEST_F(MailSenders, begin_a_new_mail_while_another_one_takes_its_time) {
  add_mails(1);
  MailNode node(db.dsn(), mail_options());
  node.transport.stuck = true;
  node.start();
  ASSERT_TRUE(eventually([&] { return node.transport.attempts().size() == 1; }));
  const auto user = add_user(50);
  node.run([&] { return node.addresses.add(user, "new@example.org", std::nullopt); });
  node.sender.wake();
  EXPECT_TRUE(eventually([&] { return node.transport.attempts().size() == 2; })) << "the code does not wait";
  node.transport.stuck = false;
  ASSERT_TRUE(all_sent());
}

TEST_F(MailSenders, do_not_send_a_mail_whose_turn_comes_while_the_node_stops) {
  auto options = mail_options();
  options.rate_per_second = 1;
  add_mails(3);
  MailNode node(db.dsn(), options);
  node.start();
  ASSERT_TRUE(eventually([&] { return node.transport.attempts().size() == 2; }))
      << "a second's rest earned two at once";
  node.stop();
  EXPECT_EQ(node.transport.attempts().size(), 2U);
  EXPECT_EQ(count("email_send_logs WHERE send_status = 'pending' AND claimed_until IS NULL AND NOT maybe_sent"), 1);
}

TEST_F(MailSenders, send_codes_first_and_write_the_code_that_verifies) {
  add_mails(1);
  add_report();
  MailNode node(db.dsn(), mail_options());
  const auto user = add_user(50);
  const auto added = node.run([&] { return node.addresses.add(user, "new@example.org", std::nullopt); });
  node.start();
  ASSERT_TRUE(eventually([&] { return node.transport.attempts().size() == 3; }));
  const auto mails = node.transport.attempts();
  EXPECT_EQ(mails[0].mail.to, "new@example.org");
  EXPECT_EQ(mails[1].mail.to, "ops@example.org");
  EXPECT_EQ(mails[2].mail.to, "p1@example.org");
  ASSERT_TRUE(eventually([&] { return only("send_status", "email_verification_codes") == "success"; }));
  EXPECT_EQ(only("salt IS NULL", "email_verification_codes"), "true");
  std::string digits;
  for (const auto& line : std::views::split(mails[0].mail.text, '\n')) {
    const std::string_view text(line.begin(), line.end());
    if (text.size() == 6 && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; })) digits = text;
  }
  const auto verified = node.run([&] { return node.addresses.verify(user, added->email.id, digits); });
  EXPECT_TRUE(verified) << mails[0].mail.text;
}

TEST_F(MailSenders, do_not_send_what_is_not_wanted_any_more) {
  add_mails(3);
  admin.must("UPDATE user_email_subscriptions SET is_active = false WHERE id = 1");
  admin.must("UPDATE emails SET is_deliverable = false WHERE email = 'p2@example.org'");
  const auto mine = add_address(add_user(50), "new@example.org", false);
  add_code(mine, "-1 s");
  add_code(mine);
  admin.must("UPDATE email_verification_codes SET salt = NULL WHERE expires_at > clock_timestamp()");
  MailNode node(db.dsn(), mail_options());
  node.start();
  ASSERT_TRUE(eventually([&] { return count("email_send_logs WHERE send_status = 'pending'") == 0; }));
  EXPECT_EQ(mails(), "suppressed|change|0 suppressed|change|0 success|change|0");
  ASSERT_TRUE(eventually([&] { return count("email_verification_codes WHERE send_status = 'suppressed'") == 2; }));
  EXPECT_EQ(node.transport.attempts().size(), 1U);
}

TEST_F(MailSenders, fail_a_mail_that_is_refused_alone) {
  add_mails(3);
  MailNode node(db.dsn(), mail_options());
  node.transport.answer_with([](const Mail& mail) -> SendOutcome {
    if (mail.to.starts_with("p1@")) return {.result = SendResult::kUnknownAddress, .detail = "550 no such user"};
    if (mail.to.starts_with("p2@")) throw Exception(invalid("bad_mail", "To: is no address"));
    return {.result = SendResult::kSent, .detail = ""};
  });
  node.start();
  ASSERT_TRUE(eventually([&] { return count("email_send_logs WHERE send_status = 'pending'") == 0; }));
  EXPECT_EQ(mails(), "dead|change|0 dead|change|0 success|change|0");
  EXPECT_EQ(only("email", "emails WHERE NOT is_deliverable"), "p1@example.org");
}

}  // namespace
}  // namespace fencepost::notify

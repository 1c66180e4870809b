// A reorg undoes a change that was announced: mails that have not left are stopped, the others are corrected once.
#include "notify/notify_test_support.hpp"

namespace fencepost::notify {
namespace {

class Retraction : public NotifyTest {
 protected:
  void announce(FlowChange change) {
    with_pool([&](pg::Pool& pool) -> awaitable<> {
      EXPECT_EQ(co_await add_flow_mails(pool, claim, {{change, {email_}}}), 1);
    });
  }
  // How many mails it concerned; nothing: the claim is lost.
  std::optional<std::int64_t> retract(FlowChange change, std::int64_t limit = 100) {
    std::optional<std::int64_t> out;
    with_pool([&](pg::Pool& pool) -> awaitable<> { out = co_await retract_flow_mails(pool, claim, change, limit); });
    return out;
  }
  FlowMail begin_attempt() {
    std::optional<FlowMail> out;
    with_pool([&](pg::Pool& pool) -> awaitable<> { out = (co_await claim_mails(pool, each(1), 1h)).flows.at(0); });
    return *out;
  }
  bool end_attempt(const FlowMail& mail, const SendDecision& decision) {
    bool out = false;
    with_pool([&](pg::Pool& pool) -> awaitable<> {
      const std::vector<MailEnd> ends{end_of(mail.row, decision)};
      out = (co_await end_attempts(pool, ends)).at(0);
    });
    return out;
  }
  std::size_t due() {
    std::size_t out = 0;
    with_pool([&](pg::Pool& pool) -> awaitable<> { out = (co_await claim_mails(pool, each(10), 1h)).flows.size(); });
    return out;
  }
  void send() { EXPECT_TRUE(end_attempt(begin_attempt(), sent())); }

  int flow_ = 0;
  const std::int64_t email_ = add_subscriber(1);
};

TEST_F(Retraction, stops_a_mail_that_has_not_left_and_corrects_nothing) {
  announce(queued());
  EXPECT_EQ(retract(taken_back(queued())), 1);
  EXPECT_EQ(mails(), "suppressed|change|0");
  EXPECT_EQ(only("error_message"), "a reorg undid the change");
  EXPECT_EQ(retract(taken_back(queued())), 0);
  EXPECT_EQ(mails(), "suppressed|change|0");
}

TEST_F(Retraction, stops_a_mail_whose_attempts_failed) {
  announce(queued());
  EXPECT_TRUE(end_attempt(begin_attempt(), failed()));
  EXPECT_EQ(retract(taken_back(queued())), 1);
  EXPECT_EQ(mails(), "suppressed|change|0");
}

TEST_F(Retraction, corrects_a_mail_that_was_sent_once) {
  announce(queued());
  send();
  EXPECT_EQ(retract(taken_back(queued())), 1);
  EXPECT_EQ(mails(), "success|change|0 pending|correction|1");
  EXPECT_EQ(retract(taken_back(queued())), 0);
  send();
  EXPECT_EQ(retract(taken_back(queued())), 0) << "nor when the correction was sent";
  EXPECT_EQ(mails(), "success|change|0 success|correction|1");
  EXPECT_EQ(count("email_send_logs AS c JOIN email_send_logs AS l ON l.id = c.corrects WHERE l.kind = 'change'"), 1);
}

TEST_F(Retraction, corrects_a_mail_whose_attempt_is_under_way_once_it_was_sent) {
  announce(queued());
  const auto attempt = begin_attempt();
  EXPECT_EQ(retract(taken_back(queued())), 1);
  EXPECT_EQ(mails(), "pending|change|0 pending|correction|1");
  EXPECT_EQ(due(), 0U) << "the correction waits for the mail";
  EXPECT_EQ(retract(taken_back(queued())), 0);
  EXPECT_TRUE(end_attempt(attempt, sent()));
  EXPECT_EQ(begin_attempt().voided, std::nullopt) << "the correction";
}

TEST_F(Retraction, stops_a_mail_whose_attempt_failed_meanwhile_and_its_correction) {
  for (const auto& decision : {failed(), given_back()}) {
    const auto change = queued(++flow_);
    announce(change);
    const auto attempt = begin_attempt();
    EXPECT_EQ(retract(taken_back(change)), 1);
    EXPECT_TRUE(end_attempt(attempt, decision));
    for (const auto* why : {"a reorg undid the change", "the mail that it corrects was not sent"}) {
      const auto next = begin_attempt();
      EXPECT_EQ(next.voided, why);
      EXPECT_TRUE(end_attempt(next, {.status = SendStatus::kSuppressed, .error = why}));
    }
    EXPECT_EQ(due(), 0U);
  }
}

TEST_F(Retraction, stops_and_corrects_a_mail_whose_node_died_during_the_attempt) {
  announce(queued());
  const auto attempt = begin_attempt();
  expire_claims();
  EXPECT_EQ(retract(taken_back(queued())), 1);
  const auto next = begin_attempt();
  EXPECT_EQ(next.voided, "a reorg undid the change");
  EXPECT_FALSE(end_attempt(attempt, sent())) << "the node was only slow";
  EXPECT_TRUE(end_attempt(next, {.status = SendStatus::kSuppressed, .error = ""}));
  EXPECT_EQ(begin_attempt().voided, std::nullopt) << "the mail may have left: it is corrected";
  EXPECT_EQ(mails(), "suppressed|change|0 pending|correction|1");
}

TEST_F(Retraction, stops_and_corrects_a_mail_that_waits_to_be_repeated_because_it_may_have_been_sent) {
  announce(queued());
  EXPECT_TRUE(end_attempt(begin_attempt(), failed(0ms, true)));
  EXPECT_EQ(retract(taken_back(queued())), 1);
  EXPECT_EQ(mails(), "suppressed|change|0 pending|correction|1");
  EXPECT_EQ(retract(taken_back(queued())), 0);
}

TEST_F(Retraction, corrects_a_mail_that_was_given_up_after_it_may_have_been_sent) {
  announce(queued());
  auto given_up = dead();
  given_up.maybe_sent = true;
  EXPECT_TRUE(end_attempt(begin_attempt(), given_up));
  EXPECT_EQ(retract(taken_back(queued())), 1);
  EXPECT_EQ(mails(), "dead|change|0 pending|correction|1");
}

TEST_F(Retraction, corrects_nothing_if_the_mail_was_refused) {
  announce(queued());
  EXPECT_TRUE(end_attempt(begin_attempt(), dead()));
  EXPECT_EQ(retract(taken_back(queued())), 0);
  EXPECT_EQ(mails(), "dead|change|0");
}

TEST_F(Retraction, is_of_one_change_only) {
  announce(queued());
  for (int i = 0; i < 5; ++i) {
    auto other = taken_back(queued());
    if (i == 0) other.to = "ready";
    if (i == 1) other.ref.generation = 2;
    if (i == 2) other.ref.chain_id = 10;
    if (i == 3) other.ref.contract = kOtherContract;
    if (i == 4) other.ref.standard = "openzeppelin";
    EXPECT_EQ(retract(other), 0) << i;
  }
  EXPECT_EQ(mails(), "pending|change|0");
}

TEST_F(Retraction, lets_the_change_be_mailed_again_when_it_happens_again) {
  announce(queued());
  send();
  const auto first = taken_back(queued());
  EXPECT_EQ(retract(first), 1);
  announce(again(first));
  EXPECT_EQ(mails(), "success|change|0 pending|correction|1 pending|change|1");
  send();
  send();
  const auto second = taken_back(again(first));
  EXPECT_EQ(retract(second), 1);
  EXPECT_EQ(mails(), "success|change|0 success|correction|1 success|change|1 pending|correction|2");
  EXPECT_EQ(retract(second), 0);
}

TEST_F(Retraction, that_is_offered_late_leaves_a_newer_announcement_alone) {
  announce(queued());
  const auto first = taken_back(queued());
  EXPECT_EQ(retract(first), 1);
  announce(again(first));
  EXPECT_EQ(retract(first), 0);
  EXPECT_EQ(mails(), "suppressed|change|0 pending|change|1");
}

TEST_F(Retraction, takes_many_mails_in_parts) {
  std::vector<std::int64_t> emails{email_};
  for (int i = 2; i <= 5; ++i) emails.push_back(add_subscriber(i));
  with_pool([&](pg::Pool& pool) -> awaitable<> { co_await add_flow_mails(pool, claim, {{queued(), emails}}); });
  for (const int handled : {2, 2, 1, 0}) EXPECT_EQ(retract(taken_back(queued()), 2), handled);
  EXPECT_EQ(count("email_send_logs WHERE send_status = 'suppressed'"), 5);
}

// The sender stores an outcome while the retraction runs: in each order the person is informed.
TEST_F(Retraction, in_every_order_with_an_outcome_leaves_no_sent_mail_uncorrected) {
  interleaving::Theatre theatre(db.dsn());
  interleaving::Session notifier(db.dsn(), "notifier"), sender(db.dsn(), "sender");
  int flow = 0;
  for (const auto& order : interleaving::all_orders({2, 2})) {
    const auto change = queued(++flow);
    announce(change);
    const auto mail = begin_attempt();
    const auto retraction = pg::Params::of(claim.consumer, claim.node, claim.token, "compound", 1, kContract,
                                           flow_id(flow), 1, nullptr, "waiting", 1, nullptr, "2026-01-02", 100);
    const auto outcome = pg::Params::of(std::vector{mail.row.id}, std::vector{mail.row.token},
                                        std::vector<std::string>{"success"}, std::vector<std::int64_t>{0},
                                        std::vector{false}, std::vector{false}, std::vector<std::string>{""});
    using interleaving::commit, interleaving::opening, interleaving::statement;
    theatre.play({{notifier, {opening(statement("retract", sql::kRetract.sql, retraction)), commit()}},
                  {sender, {opening(statement("end", sql::kEndFlowMails.sql, outcome)), commit()}}},
                 order);
    EXPECT_EQ(admin.value<std::string>("SELECT string_agg(send_status || '|' || kind, ' ' ORDER BY id) FROM "
                                       "email_send_logs WHERE flow_id = $1",
                                       pg::Params::of(flow_id(flow))),
              "success|change pending|correction")
        << theatre.trace();
    admin.must("UPDATE email_send_logs SET send_status = 'success'");
  }
}

}  // namespace
}  // namespace fencepost::notify

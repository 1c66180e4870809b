// Sending mail when parts fail: three nodes and a mail server, of which some die, refuse or fall silent.
#include <map>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/mail_fixture.hpp"
#include "tests/support/smtp_server.hpp"

namespace fencepost::test {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

constexpr std::int64_t kDay = CompoundTimelock::kDay;
const std::vector<std::string> kAll{"waiting", "ready", "executed", "cancelled", "expired"};

class MailSending : public MailTest {
 protected:
  // By default with a short timeout.
  void start_smtp(std::size_t nodes = 1, const std::vector<std::string>& email = {"timeout: 1s"}) {
    TxClusterOptions options;
    options.settings.more =
        fmt::format("email:\n  smtp_url: {}\n  from: fencepost@example.org\n  retry_initial: 100ms\n", smtp_.url());
    for (const auto& line : email) options.settings.more += "  " + line + "\n";
    start(0, nodes, std::move(options));
  }
  std::vector<ReceivedMail> received(const std::string& email, std::string_view kind = "flow-") const {
    auto out = smtp_.mails();
    std::erase_if(out, [&](const ReceivedMail& mail) {
      return mail.recipients != std::vector{email} || !mail.message_id().starts_with(kind);
    });
    return out;
  }
  // Waits for the newest code of the address.
  std::string code_for(const std::string& email, std::size_t count = 1) const {
    if (!eventually([&] { return received(email, "code-").size() >= count; })) return "";
    return code_in(notify::read_eml(received(email, "code-").back().raw).value());
  }
  std::string add_verified_by_smtp(const Person& person, const std::string& email) const {
    const auto id = add(person, email);
    const auto answer = verify(person, id, code_for(email));
    if (answer.status != 200) throw Exception(internal("verify_email", answer.body));
    return id;
  }
  bool log_becomes(const std::string& expression, const std::string& wanted) const {
    return cluster_->sql_becomes(
        "SELECT coalesce(string_agg(" + expression + ", ',' ORDER BY id), '') FROM email_send_logs", wanted);
  }
  // Every mail of the log was received; how often, by Message-ID.
  std::map<std::string, int> counts() const {
    std::map<std::string, int> out;
    for (const auto& mail : smtp_.mails()) {
      if (mail.message_id().starts_with("flow-")) ++out[mail.message_id()];
    }
    return out;
  }

  SmtpServer smtp_;
};

// The acceptance of the design under failures: each mail arrives, no row is lost, and only the mails that the killed
// node had between their last byte and their stored outcome are repeated, under the same Message-ID.
TEST_F(MailSending, three_nodes_lose_one_and_their_mail_server_and_each_mail_arrives) {
  start_smtp(3, {"timeout: 10s"});
  const OpenZeppelinTimelock timelock(*chain_, signer(0), 100);
  import(timelock.address());
  const auto alice = person(0);
  const std::vector<std::string> addresses{"a@example.org", "b@example.net", "c@example.com", "d@example.edu"};
  for (const auto& address : addresses) {
    const auto answer = subscribe(alice, add_verified_by_smtp(alice, address), timelock.address(), "openzeppelin",
                                  {"waiting", "cancelled"});
    ASSERT_EQ(answer.status, 201U) << answer.body;
  }
  constexpr std::size_t kFlows = 6;
  const auto schedule = [&](std::uint64_t number) { timelock.schedule({recipient(1)}, salt(number), 1000); };

  // Only one node runs while mails are in flight that the server has taken and does not answer: it is the one to kill.
  for (const std::size_t other : {1U, 2U}) EXPECT_EQ(cluster_->node(other).stop().code, 0);
  smtp_.behave({{.at = SmtpStep::kTaken, .fault = SmtpFault::kHang, .times = 2}});
  schedule(0);
  ASSERT_TRUE(eventually([&] { return counts().size() == addresses.size(); })) << describe();
  const auto doubtful =
      std::stoll(cluster_->sql("SELECT count(*) FROM email_send_logs WHERE claimed_until IS NOT NULL"));
  EXPECT_GE(doubtful, 2);
  cluster_->node(0).kill();
  smtp_.behave({});
  cluster_->node(1).start();
  cluster_->node(2).start();

  // Then the server is away for a while, also while the killed node comes back.
  smtp_.stop();
  for (std::size_t i = 1; i < kFlows; ++i) schedule(i);
  const auto all = std::to_string(kFlows * addresses.size());
  ASSERT_TRUE(cluster_->sql_becomes("SELECT count(*) FROM email_send_logs", all)) << describe();
  cluster_->node(0).start();
  smtp_.restart();
  ASSERT_TRUE(cluster_->sql_becomes("SELECT count(*) FROM email_send_logs WHERE send_status = 'success'", all, 120s))
      << describe();
  const auto arrived = counts();
  EXPECT_EQ(arrived.size(), kFlows * addresses.size()) << "each mail";
  std::int64_t repeats = 0;
  for (const auto& [id, times] : arrived) {
    EXPECT_LE(times, 2) << id << ": one node was killed";
    repeats += times - 1;
  }
  EXPECT_LE(repeats, doubtful) << "only what the killed node had in flight";
  EXPECT_GE(repeats, 2) << "the test proves nothing if none was";
  for (const auto& address : addresses) {
    std::set<std::string> ids;
    for (const auto& mail : received(address)) ids.insert(mail.message_id());
    EXPECT_EQ(ids.size(), kFlows) << address;
  }
}

TEST_F(MailSending, a_mail_that_was_perhaps_taken_is_sent_again_under_the_same_message_id) {
  start_smtp();
  const CompoundTimelock timelock(*chain_, signer(0));
  import(timelock.address());
  const auto alice = person(0);
  ASSERT_EQ(subscribe(alice, add_verified_by_smtp(alice, "a@example.org"), timelock.address(), "compound", kAll).status,
            201U);
  smtp_.behave({{.at = SmtpStep::kTaken, .fault = SmtpFault::kDrop, .times = 1}});
  timelock.queue({recipient(1)}, "", chain_->now() + 3 * kDay);
  ASSERT_TRUE(log_becomes("concat_ws(' ', send_status, retry_count, maybe_sent)", "success 1 t")) << describe();
  const auto mails = received("a@example.org");
  ASSERT_EQ(mails.size(), 2U);
  EXPECT_EQ(mails[0].message_id(), mails[1].message_id());
  EXPECT_FALSE(mails[0].message_id().empty());
}

TEST_F(MailSending, greylisting_and_other_4xx_are_tried_again) {
  start_smtp();
  const CompoundTimelock timelock(*chain_, signer(0));
  import(timelock.address());
  const auto alice = person(0);
  ASSERT_EQ(subscribe(alice, add_verified_by_smtp(alice, "a@example.org"), timelock.address(), "compound", kAll).status,
            201U);
  smtp_.behave({{.at = SmtpStep::kRcpt, .reply = "450 4.2.0 greylisted", .times = 2, .each_recipient = true}});
  timelock.queue({recipient(1)}, "", chain_->now() + 3 * kDay);
  ASSERT_TRUE(log_becomes("concat_ws(' ', send_status, retry_count, error_message)", "success 2")) << describe();
  EXPECT_EQ(received("a@example.org").size(), 1U);
}

TEST_F(MailSending, an_unknown_mailbox_gets_nothing_until_its_address_is_verified_again) {
  start_smtp(1, {"code_resend_interval: 0ms"});
  const CompoundTimelock timelock(*chain_, signer(0));
  import(timelock.address());
  const auto alice = person(0);
  const auto id = add_verified_by_smtp(alice, "a@example.org");
  ASSERT_EQ(subscribe(alice, id, timelock.address(), "compound", kAll).status, 201U);
  const auto eta = chain_->now() + 3 * kDay;
  const auto deliverable = [&] { return alice.get("/api/v1/me/emails").json().at("items").at(0).at("isDeliverable"); };

  smtp_.behave({{.at = SmtpStep::kRcpt, .reply = "550 5.1.1 no such user"}});
  timelock.queue({recipient(1)}, "", eta);
  ASSERT_TRUE(log_becomes("concat_ws(' ', send_status, retry_count)", "dead 1")) << describe();
  EXPECT_TRUE(cluster_->sql("SELECT error_message FROM email_send_logs").contains("550 5.1.1 no such user"));
  EXPECT_EQ(deliverable(), false);
  smtp_.behave({});
  timelock.queue({recipient(2)}, "", eta);
  ASSERT_TRUE(becomes(CompoundTimelock::id({recipient(2)}, "", eta), "waiting"));
  ASSERT_TRUE(settled());
  EXPECT_EQ(received("a@example.org").size(), 0U);

  ASSERT_EQ(alice.call("POST", "/api/v1/me/emails/" + id + "/code", "").status, 202U);
  ASSERT_EQ(verify(alice, id, code_for("a@example.org", 2)).status, 200U);
  EXPECT_EQ(deliverable(), true);
  timelock.queue({recipient(3)}, "", eta);
  ASSERT_TRUE(eventually([&] { return received("a@example.org").size() == 1; })) << describe();
}

TEST_F(MailSending, another_refusal_ends_the_mail_and_leaves_the_address) {
  start_smtp();
  const CompoundTimelock timelock(*chain_, signer(0));
  import(timelock.address());
  const auto alice = person(0);
  ASSERT_EQ(subscribe(alice, add_verified_by_smtp(alice, "a@example.org"), timelock.address(), "compound", kAll).status,
            201U);
  smtp_.behave({{.at = SmtpStep::kEnd, .reply = "554 5.7.1 looks like spam"}});
  timelock.queue({recipient(1)}, "", chain_->now() + 3 * kDay);
  ASSERT_TRUE(log_becomes("concat_ws(' ', send_status, retry_count)", "dead 1")) << describe();
  EXPECT_EQ(cluster_->sql("SELECT is_deliverable FROM emails"), "t");
}

TEST_F(MailSending, a_mail_is_given_up_after_its_time) {
  start_smtp(1, {"retry_for: 500ms"});
  const CompoundTimelock timelock(*chain_, signer(0));
  import(timelock.address());
  const auto alice = person(0);
  ASSERT_EQ(subscribe(alice, add_verified_by_smtp(alice, "a@example.org"), timelock.address(), "compound", kAll).status,
            201U);
  smtp_.behave({{.at = SmtpStep::kRcpt, .reply = "452 4.2.2 mailbox full"}});
  timelock.queue({recipient(1)}, "", chain_->now() + 3 * kDay);
  ASSERT_TRUE(log_becomes("send_status", "dead")) << describe();
  EXPECT_TRUE(cluster_->sql("SELECT error_message FROM email_send_logs").contains("452 4.2.2 mailbox full"));
}

// What is taken back before it could be sent is not sent, and needs no correction.
TEST_F(MailSending, a_reorg_while_the_mail_server_is_away_stops_the_mail) {
  start_smtp();
  const OpenZeppelinTimelock timelock(*chain_, signer(0), 100);
  import(timelock.address());
  const auto alice = person(0);
  ASSERT_EQ(
      subscribe(alice, add_verified_by_smtp(alice, "a@example.org"), timelock.address(), "openzeppelin", {"waiting"})
          .status,
      201U);
  smtp_.stop();
  timelock.schedule({recipient(1)}, salt(1), 1000);
  ASSERT_TRUE(cluster_->sql_becomes("SELECT count(*) FROM email_send_logs", "1")) << describe();
  cluster_->reorg(1);
  cluster_->mine(2);
  ASSERT_TRUE(log_becomes("concat_ws(' ', kind, send_status)", "change suppressed")) << describe();
  smtp_.restart();
  ASSERT_TRUE(settled());
  EXPECT_EQ(received("a@example.org").size(), 0U);
}

TEST_F(MailSending, an_orderly_stop_loses_and_repeats_nothing) {
  start_smtp(2, {"timeout: 10s"});
  const OpenZeppelinTimelock timelock(*chain_, signer(0), 100);
  import(timelock.address());
  const auto alice = person(0);
  for (int i = 0; i < 10; ++i) {
    const auto id = add_verified_by_smtp(alice, fmt::format("a{}@example.org", i));
    ASSERT_EQ(subscribe(alice, id, timelock.address(), "openzeppelin", {"waiting"}).status, 201U);
  }
  for (std::uint64_t i = 0; i < 5; ++i) timelock.schedule({recipient(1)}, salt(i), 1000);
  ASSERT_TRUE(eventually([&] { return !counts().empty(); })) << describe();
  EXPECT_EQ(cluster_->node(0).stop().code, 0);
  cluster_->node(0).start();
  EXPECT_EQ(cluster_->node(1).stop().code, 0);
  ASSERT_TRUE(cluster_->sql_becomes("SELECT count(*) FROM email_send_logs WHERE send_status = 'success'", "50"))
      << describe();
  const auto arrived = counts();
  EXPECT_EQ(arrived.size(), 50U);
  for (const auto& [id, times] : arrived) EXPECT_EQ(times, 1) << id;
}

}  // namespace
}  // namespace fencepost::test

// What a server can do to a mail, and what the transport makes of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "notify/transport/smtp_transport_test_support.hpp"

namespace fencepost::notify {
namespace {

using namespace std::chrono_literals;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using enum SendResult;
using enum test::SmtpFault;
using enum test::SmtpStep;
using test::SmtpRule;
using test::SmtpServer;
using testing::mail_to;
using testing::options_for;
using testing::send;
using Steady = std::chrono::steady_clock;

struct Case {
  std::vector<SmtpRule> rules;
  SendResult result;
  bool transport_failed;

  friend void PrintTo(const Case& test, std::ostream* out) {
    const auto& rule = test.rules.front();
    *out << "step " << static_cast<int>(rule.at) << ", fault " << static_cast<int>(rule.fault) << ", " << rule.reply;
  }
};

// Each case on a new connection, and then a mail to the recovered server through the same transport.
void check(SmtpServer& server, const Case& test, const EmailOptions& options) {
  SCOPED_TRACE(::testing::PrintToString(test));
  SmtpTransport transport(options);
  server.behave(test.rules);
  const auto before = server.received();
  const auto outcome = send(transport, mail_to("alice@example.org", 1));
  EXPECT_EQ(outcome.result, test.result) << outcome.detail;
  EXPECT_EQ(outcome.transport_failed, test.transport_failed) << outcome.detail;
  EXPECT_FALSE(outcome.detail.empty());
  const auto& reply = test.rules.front().reply;
  if (!reply.empty()) EXPECT_THAT(outcome.detail, HasSubstr(reply));
  const std::size_t taken = test.rules.front().at == kTaken ? 1 : 0;
  EXPECT_EQ(server.received() - before, taken);

  server.behave({});
  const auto next = send(transport, mail_to("alice@example.org", 2));
  EXPECT_EQ(next.result, kSent) << next.detail;
}

TEST(smtp_failure, a_reply_says_what_becomes_of_the_mail) {
  const Case cases[] = {
      {{{.at = kConnect, .reply = "554 5.7.1 no service for you"}}, kNotSent, true},
      {{{.at = kConnect, .reply = "421 4.3.2 too busy"}}, kNotSent, true},
      {{{.at = kEhlo, .reply = "421 4.3.2 too busy"}}, kNotSent, true},
      {{{.at = kHelo, .reply = "550 5.7.1 bad name"}, {.at = kEhlo, .reply = "502 5.5.1 what?"}}, kNotSent, true},
      {{{.at = kMail, .reply = "450 4.7.1 later"}}, kNotSent, true},
      {{{.at = kMail, .reply = "421 4.3.2 shutting down"}}, kNotSent, true},
      {{{.at = kMail, .reply = "550 5.7.1 this sender is unknown"}}, kNotSent, true},
      {{{.at = kMail, .reply = "530 5.7.0 authentication required"}}, kNotSent, true},
      {{{.at = kMail, .reply = "552 5.3.4 the mail is too large"}}, kRefused, false},
      {{{.at = kRcpt, .reply = "450 4.2.0 greylisted"}}, kNotSent, false},
      {{{.at = kRcpt, .reply = "452 4.2.2 mailbox full"}}, kNotSent, false},
      {{{.at = kRcpt, .reply = "421 4.3.2 shutting down"}}, kNotSent, true},
      {{{.at = kRcpt, .reply = "550 5.1.1 no such user"}}, kUnknownAddress, false},
      {{{.at = kRcpt, .reply = "550 no such user"}}, kUnknownAddress, false},
      {{{.at = kRcpt, .reply = "550 5.7.1 blocked"}}, kRefused, false},
      {{{.at = kRcpt, .reply = "550 5.1.8 sender rejected"}}, kRefused, false},
      {{{.at = kRcpt, .reply = "550 relay not permitted"}}, kRefused, false},
      {{{.at = kRcpt, .reply = "552 5.2.2 over quota"}}, kRefused, false},
      {{{.at = kData, .reply = "451 4.3.0 later"}}, kNotSent, false},
      {{{.at = kData, .reply = "421 4.3.2 shutting down"}}, kNotSent, true},
      {{{.at = kData, .reply = "554 5.5.1 no valid recipients"}}, kRefused, false},
      {{{.at = kEnd, .reply = "451 4.7.1 later"}}, kNotSent, false},
      {{{.at = kEnd, .reply = "421 4.3.2 shutting down"}}, kNotSent, true},
      {{{.at = kEnd, .reply = "554 5.7.1 spam"}}, kRefused, false},
      {{{.at = kEnd, .reply = "550 5.1.1 no such user"}}, kRefused, false},
  };
  SmtpServer server;
  for (const auto& test : cases) check(server, test, options_for(server));
}

TEST(smtp_failure, a_lost_connection_is_only_unclear_after_the_final_dot) {
  const Case cases[] = {
      {{{.at = kConnect, .fault = kDrop}}, kNotSent, true}, {{{.at = kEhlo, .fault = kDrop}}, kNotSent, true},
      {{{.at = kMail, .fault = kDrop}}, kNotSent, true},    {{{.at = kRcpt, .fault = kDrop}}, kNotSent, true},
      {{{.at = kData, .fault = kDrop}}, kNotSent, true},    {{{.at = kEnd, .fault = kDrop}}, kMaybeSent, true},
      {{{.at = kTaken, .fault = kDrop}}, kMaybeSent, true},
  };
  SmtpServer server;
  for (const auto& test : cases) check(server, test, options_for(server));
}

TEST(smtp_failure, a_silent_server_costs_the_timeout) {
  const Case cases[] = {
      {{{.at = kConnect, .fault = kHang}}, kNotSent, true}, {{{.at = kEhlo, .fault = kHang}}, kNotSent, true},
      {{{.at = kMail, .fault = kHang}}, kNotSent, true},    {{{.at = kRcpt, .fault = kHang}}, kNotSent, true},
      {{{.at = kData, .fault = kHang}}, kNotSent, true},    {{{.at = kEnd, .fault = kHang}}, kMaybeSent, true},
      {{{.at = kTaken, .fault = kHang}}, kMaybeSent, true},
  };
  SmtpServer server;
  auto options = options_for(server);
  options.timeout = 1s;
  for (const auto& test : cases) {
    SCOPED_TRACE(::testing::PrintToString(test));
    SmtpTransport transport(options);
    server.behave(test.rules);
    const auto begin = Steady::now();
    const auto outcome = send(transport, mail_to("alice@example.org"));
    const auto took = Steady::now() - begin;
    EXPECT_EQ(outcome.result, test.result) << outcome.detail;
    EXPECT_EQ(outcome.transport_failed, test.transport_failed) << outcome.detail;
    EXPECT_GE(took, options.timeout - 100ms);
    EXPECT_LT(took, options.timeout + 2s);
    // A late reply must not pass for the reply to another mail.
    server.behave({});
    const auto connections = server.connections();
    EXPECT_EQ(send(transport, mail_to("alice@example.org", 2)).result, kSent);
    EXPECT_EQ(server.connections(), connections + 1);
  }
}

// The bytes of a small mail may all be on their way when the connection breaks; those of a large one cannot.
TEST(smtp_failure, a_connection_lost_within_a_mail_leaves_it_unsent_if_bytes_are_missing) {
  SmtpServer server;
  auto options = options_for(server);
  options.timeout = 2s;
  for (const auto fault : {kDrop, kHang}) {
    server.behave({{.at = kBody, .fault = fault}});
    SmtpTransport transport(options);
    auto large = mail_to("alice@example.org");
    for (int i = 0; i < 200'000; ++i) large.text += "a line of about fifty bytes, many of which make up\n";
    const auto lost = send(transport, large);
    EXPECT_EQ(lost.result, kNotSent) << lost.detail;
    EXPECT_TRUE(lost.transport_failed);
    const auto small = send(transport, mail_to("alice@example.org"));
    EXPECT_THAT(small.result, AnyOf(kNotSent, kMaybeSent)) << small.detail;
    EXPECT_TRUE(small.transport_failed);
  }
  EXPECT_EQ(server.received(), 0U);
}

TEST(smtp_failure, a_greylisted_mail_arrives_with_the_second_try) {
  SmtpServer server;
  server.behave({{.at = kRcpt, .reply = "450 4.2.0 greylisted", .times = 1, .each_recipient = true}});
  SmtpTransport transport(options_for(server));
  for (const auto* address : {"alice@example.org", "bob@example.org"}) {
    const auto first = send(transport, mail_to(address));
    EXPECT_EQ(first.result, kNotSent);
    EXPECT_EQ(first.detail, "450 4.2.0 greylisted (in reply to RCPT)");
    EXPECT_EQ(send(transport, mail_to(address)).result, kSent);
  }
  EXPECT_EQ(server.received(), 2U);
}

TEST(smtp_failure, a_refused_recipient_does_not_affect_the_next_mail) {
  SmtpServer server;
  server.behave({{.at = kRcpt, .reply = "550 5.1.1 no such user", .recipient = "nobody@example.org"}});
  SmtpTransport transport(options_for(server));
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(send(transport, mail_to("nobody@example.org")).result, kUnknownAddress);
    EXPECT_EQ(send(transport, mail_to("alice@example.org", i)).result, kSent);
  }
  EXPECT_EQ(server.received(), 10U);
}

TEST(smtp_failure, a_server_that_is_down_is_a_failure_of_the_transport_until_it_is_back) {
  SmtpServer server;
  SmtpTransport transport(options_for(server));
  EXPECT_EQ(send(transport, mail_to("alice@example.org", 1)).result, kSent);
  server.stop();
  for (int i = 0; i < 3; ++i) {
    const auto down = send(transport, mail_to("alice@example.org", 2));
    EXPECT_EQ(down.result, kNotSent);
    EXPECT_TRUE(down.transport_failed);
    EXPECT_THAT(down.detail, HasSubstr("Connection refused"));
  }
  server.restart();
  EXPECT_EQ(send(transport, mail_to("alice@example.org", 2)).result, kSent);
  EXPECT_EQ(server.received(), 2U);
}

TEST(smtp_failure, an_unknown_host_is_a_failure_of_the_transport) {
  SmtpTransport transport(options_for("smtp://nowhere.invalid:25"));
  const auto outcome = send(transport, mail_to("alice@example.org"));
  EXPECT_EQ(outcome.result, kNotSent);
  EXPECT_TRUE(outcome.transport_failed);
  EXPECT_THAT(outcome.detail, HasSubstr("nowhere.invalid"));
}

}  // namespace
}  // namespace fencepost::notify

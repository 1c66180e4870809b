// Mails through a real SMTP server: what arrives, over which connections, and how a transport ends.
#include <future>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/bind_cancellation_slot.hpp>

#include "notify/transport/smtp_transport.hpp"
#include "notify/transport/smtp_transport_test_support.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/tcp_proxy.hpp"

namespace fencepost::notify {
namespace {

using namespace std::chrono_literals;
using test::eventually;
using test::SmtpFault;
using test::SmtpServer;
using test::SmtpStep;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using testing::mail_to;
using testing::options_for;
using testing::send;
using testing::send_all;
using Steady = std::chrono::steady_clock;

MATCHER(WasSent, "") {
  *result_listener << arg.detail;
  return arg.result == SendResult::kSent && arg.detail.empty() && !arg.transport_failed;
}

std::vector<Mail> mails_to(const std::string& to, int count) {
  std::vector<Mail> out;
  for (int i = 1; i <= count; ++i) out.push_back(mail_to(to, i));
  return out;
}

std::set<std::string> message_ids(const SmtpServer& server) {
  std::set<std::string> out;
  for (const auto& mail : server.mails()) out.insert(mail.message_id());
  return out;
}

// --- what arrives -----------------------------------------------------------------------------------------------

TEST(smtp_transport, a_mail_arrives_as_it_was_written) {
  const SmtpServer server;
  SmtpTransport transport(options_for(server));
  auto mail = mail_to("alice@example.org");
  mail.subject = "时间锁：流程 7 已就绪";
  mail.text = ".\n..\n.a\nFrom here\n" + std::string(3000, 'x') + "\n你好\n.";
  mail.html = "<p>.</p>\n.\n";
  ASSERT_THAT(send(transport, mail), WasSent());
  const auto arrived = server.mails();
  ASSERT_EQ(arrived.size(), 1U);
  EXPECT_EQ(arrived[0].raw, to_eml(mail));
  EXPECT_EQ(arrived[0].from, "no-reply@example.org");
  EXPECT_EQ(arrived[0].recipients, std::vector<std::string>{"alice@example.org"});
  EXPECT_EQ(arrived[0].message_id(), mail.message_id);
}

// Raw text instead of a Mail, whose encoding avoids some of these lines.
TEST(smtp_transport, dots_at_any_place_arrive_unchanged) {
  const SmtpServer server;
  SmtpSession session(options_for(server));
  std::string large;  // several of libcurl's buffers, so that dots meet their borders
  for (int i = 0; large.size() < 300'000; ++i) large += std::string(static_cast<std::size_t>(i % 7), '.') + "\r\n";
  const std::string texts[] = {".\r\n", "..\r\n.\r\n\r\n.\r\n", ".x\r\n\r\n", std::string(998, '.') + "\r\n", large};
  for (const auto& text : texts) {
    ASSERT_THAT(session.send("no-reply@example.org", "alice@example.org", text), WasSent());
    EXPECT_TRUE(server.mails().back().raw == text) << text.substr(0, 100);
  }
}

TEST(smtp_transport, an_address_with_a_line_break_is_refused_before_anything_is_sent) {
  const SmtpServer server;
  SmtpTransport transport(options_for(server));
  for (const auto* address : {"a@example.org\r\nRCPT TO:<eve@example.org>", "a@example.org\n", "a@example.org>",
                              "<a@example.org>", "a@example.org b@example.org", "a@example.org\r", ""}) {
    auto to = mail_to(address);
    EXPECT_THROW(send(transport, to), Exception) << address;
    auto from = mail_to("alice@example.org");
    from.from = address;
    EXPECT_THROW(send(transport, from), Exception) << address;
  }
  EXPECT_EQ(server.connections(), 0U);
}

TEST(smtp_transport, a_url_that_is_none_is_refused_at_once) {
  for (const auto* url : {"", "not a url", "smtp://", "http://mail.example.org", "smtp://me:geheim@mail.example.org"}) {
    EXPECT_THROW(SmtpTransport{options_for(std::string(url))}, Exception) << url;
  }
}

// --- connections ------------------------------------------------------------------------------------------------

TEST(smtp_transport, many_mails_share_one_connection) {
  const SmtpServer server;
  SmtpTransport transport(options_for(server));
  EXPECT_THAT(send_all(transport, mails_to("alice@example.org", 100)), Each(WasSent()));
  EXPECT_EQ(server.received(), 100U);
  EXPECT_EQ(message_ids(server).size(), 100U);
  EXPECT_EQ(server.connections(), 1U);
}

TEST(smtp_transport, several_connections_share_the_mails) {
  const SmtpServer server;
  auto options = options_for(server);
  options.connections = 4;
  SmtpTransport transport(options);
  EXPECT_EQ(transport.connections(), 4U);
  EXPECT_THAT(send_all(transport, mails_to("alice@example.org", 200)), Each(WasSent()));
  EXPECT_EQ(message_ids(server).size(), 200U);
  EXPECT_EQ(server.connections(), 4U);
  std::set<std::size_t> used;
  for (const auto& mail : server.mails()) used.insert(mail.connection);
  EXPECT_EQ(used.size(), 4U);
}

TEST(smtp_transport, a_slow_recipient_delays_only_its_own_connection) {
  SmtpServer server;
  server.behave({{.at = SmtpStep::kEnd, .fault = SmtpFault::kHang, .recipient = "slow@example.org"}});
  auto options = options_for(server);
  options.connections = 2;
  options.timeout = 2s;
  SmtpTransport transport(options);
  auto mails = mails_to("alice@example.org", 20);
  mails.insert(mails.begin(), mail_to("slow@example.org", 99));
  const auto outcomes = send_all(transport, std::move(mails));
  EXPECT_EQ(outcomes[0].result, SendResult::kMaybeSent);
  EXPECT_EQ(server.received(), 20U);
  EXPECT_EQ(server.connections(), 2U);
}

TEST(smtp_transport, a_restarted_server_costs_a_connection_and_no_failure) {
  SmtpServer server;
  SmtpTransport transport(options_for(server));
  for (int i = 1; i <= 3; ++i) {
    EXPECT_THAT(send(transport, mail_to("alice@example.org", i)), WasSent());
    server.stop();
    server.restart();
  }
  EXPECT_THAT(send(transport, mail_to("alice@example.org", 4)), WasSent());
  EXPECT_EQ(server.received(), 4U);
  EXPECT_EQ(message_ids(server).size(), 4U);
  EXPECT_EQ(server.connections(), 4U);
}

TEST(smtp_transport, a_server_that_closes_after_each_mail_costs_connections_and_no_failure) {
  SmtpServer server;
  for (const auto& rule : std::vector<test::SmtpRule>{
           {.at = SmtpStep::kIdle, .reply = "421 4.4.2 timeout"},
           {.at = SmtpStep::kIdle, .fault = SmtpFault::kDrop},
       }) {
    server.behave({rule});
    const auto before = server.connections();
    SmtpTransport transport(options_for(server));
    EXPECT_THAT(send_all(transport, mails_to("alice@example.org", 10)), Each(WasSent()));
    EXPECT_EQ(server.connections() - before, 10U);
  }
  EXPECT_EQ(server.received(), 20U);
}

// The server closes at the command, not before it: the transport cannot see the end of the connection earlier.
TEST(smtp_transport, a_connection_that_ends_at_the_next_mail_is_replaced_once) {
  SmtpServer server;
  SmtpTransport transport(options_for(server));
  EXPECT_THAT(send(transport, mail_to("alice@example.org", 1)), WasSent());
  server.behave({{.at = SmtpStep::kMail, .fault = SmtpFault::kDrop, .times = 1}});
  EXPECT_THAT(send(transport, mail_to("alice@example.org", 2)), WasSent());
  server.behave({{.at = SmtpStep::kMail, .reply = "421 4.7.0 too many mails in this connection", .times = 1}});
  EXPECT_THAT(send(transport, mail_to("alice@example.org", 3)), WasSent());
  EXPECT_EQ(server.connections(), 3U);
  server.behave({{.at = SmtpStep::kMail, .fault = SmtpFault::kDrop}});
  const auto outcome = send(transport, mail_to("alice@example.org", 4));
  EXPECT_EQ(outcome.result, SendResult::kNotSent);
  EXPECT_TRUE(outcome.transport_failed);
  EXPECT_EQ(server.connections(), 4U);
  EXPECT_EQ(server.received(), 3U);
}

TEST(smtp_transport, says_quit_on_an_idle_connection_when_it_ends) {
  const SmtpServer server;
  {
    SmtpTransport transport(options_for(server));
    ASSERT_THAT(send(transport, mail_to("alice@example.org")), WasSent());
  }
  EXPECT_TRUE(eventually([&] { return server.commands().back() == "QUIT"; }));
}

// --- the end, and what bounds it --------------------------------------------------------------------------------

// A transport on whose loop sends are under way.
class Sending {
 public:
  explicit Sending(const EmailOptions& options) : transport_(std::make_unique<SmtpTransport>(options)) {
    runtime_.start();
  }

  std::future<SendOutcome> start(Mail mail, MailTransport::Time start_by = MailTransport::Time::max()) {
    return asio::co_spawn(runtime_.loop(0), transport_->send(std::move(mail), start_by), asio::use_future);
  }
  // Cancelled as soon as `cancel` is set.
  std::future<SendOutcome> start(Mail mail, asio::cancellation_signal& cancel) {
    return asio::co_spawn(runtime_.loop(0), transport_->send(std::move(mail)),
                          asio::bind_cancellation_slot(cancel.slot(), asio::use_future));
  }
  void cancel(asio::cancellation_signal& signal) {
    asio::post(runtime_.loop(0), [&] { signal.emit(asio::cancellation_type::terminal); });
  }

  // Returns how long it took.
  Steady::duration end() {
    const auto begin = Steady::now();
    transport_.reset();
    return Steady::now() - begin;
  }

 private:
  Runtime runtime_{{.threads = 1}};
  std::unique_ptr<SmtpTransport> transport_;
};

bool is_ready(const std::future<SendOutcome>& future, std::chrono::milliseconds patience) {
  return future.wait_for(patience) == std::future_status::ready;
}

// A claim is not for ever: an attempt that began after its end would be a second one.
TEST(smtp_transport, a_mail_that_waited_too_long_for_a_connection_is_not_tried) {
  SmtpServer server;
  server.behave({{.at = SmtpStep::kConnect, .fault = SmtpFault::kHang, .times = 1}});
  auto options = options_for(server);
  options.timeout = 1s;
  options.connections = 1;
  Sending sending(options);
  auto running = sending.start(mail_to("alice@example.org"));
  ASSERT_TRUE(eventually([&] { return server.connections() == 1; }));
  auto late = sending.start(mail_to("alice@example.org", 1), Steady::now() + 10ms);
  auto patient = sending.start(mail_to("alice@example.org", 2), Steady::now() + 1min);
  EXPECT_EQ(late.get().result, SendResult::kNotTried);
  EXPECT_EQ(patient.get().result, SendResult::kSent);
  EXPECT_EQ(server.received(), 1U);
}

TEST(smtp_transport, a_thousand_mails_may_wait_and_no_more) {
  SmtpServer server;
  server.behave({{.at = SmtpStep::kConnect, .fault = SmtpFault::kHang}});
  auto options = options_for(server);
  options.timeout = 1min;
  Sending sending(options);
  auto running = sending.start(mail_to("alice@example.org"));
  ASSERT_TRUE(eventually([&] { return server.connections() == 1; }));
  std::vector<std::future<SendOutcome>> waiting;
  for (int i = 0; i < 1000; ++i) waiting.push_back(sending.start(mail_to("alice@example.org", i)));
  auto surplus = sending.start(mail_to("alice@example.org", 1001));
  ASSERT_TRUE(is_ready(surplus, 10s));
  const auto refused = surplus.get();
  EXPECT_EQ(refused.result, SendResult::kNotTried);
  EXPECT_EQ(refused.detail, kTransportFull);
  EXPECT_FALSE(is_ready(waiting.front(), 0ms));
  EXPECT_FALSE(is_ready(running, 0ms));

  EXPECT_LT(sending.end(), 3s);
  EXPECT_THAT(running.get().detail, HasSubstr("this node stops"));
  for (auto& mail : waiting) EXPECT_EQ(mail.get().detail, kTransportFull);
  EXPECT_EQ(server.connections(), 1U);
}

TEST(smtp_transport, ends_promptly_at_every_step_of_a_dialogue) {
  const struct {
    SmtpStep at;
    std::size_t commands;  // that the server has read by then
    SendResult result;
  } cases[] = {
      {SmtpStep::kConnect, 0, SendResult::kNotSent}, {SmtpStep::kEhlo, 1, SendResult::kNotSent},
      {SmtpStep::kMail, 2, SendResult::kNotSent},    {SmtpStep::kRcpt, 3, SendResult::kNotSent},
      {SmtpStep::kData, 4, SendResult::kNotSent},    {SmtpStep::kTaken, 4, SendResult::kMaybeSent},
  };
  for (const auto& [at, commands, result] : cases) {
    SCOPED_TRACE(commands);
    SmtpServer server;
    server.behave({{.at = at, .fault = SmtpFault::kHang}});
    auto options = options_for(server);
    options.timeout = 1min;
    Sending sending(options);
    auto outcome = sending.start(mail_to("alice@example.org"));
    const std::size_t taken = at == SmtpStep::kTaken ? 1 : 0;
    ASSERT_TRUE(eventually([&] {
      return server.connections() == 1 && server.commands().size() == commands && server.received() == taken;
    }));
    EXPECT_LT(sending.end(), 1s);
    EXPECT_EQ(outcome.get().result, result);
  }
}

TEST(smtp_transport, a_server_that_ignores_quit_delays_the_end_by_a_second) {
  SmtpServer server;
  test::TcpProxy proxy("127.0.0.1", server.port());
  Sending sending(options_for(fmt::format("smtp://127.0.0.1:{}", proxy.port())));
  ASSERT_THAT(sending.start(mail_to("alice@example.org")).get(), WasSent());
  proxy.half_open();
  EXPECT_LT(sending.end(), 3s);
}

TEST(smtp_transport, a_cancelled_caller_returns_at_once_and_the_connection_serves_the_next_mail) {
  SmtpServer server;
  server.behave({{.at = SmtpStep::kRcpt, .fault = SmtpFault::kHang, .times = 1}});
  auto options = options_for(server);
  options.timeout = 2s;
  Sending sending(options);
  asio::cancellation_signal cancel;
  auto cancelled = sending.start(mail_to("alice@example.org", 1), cancel);
  ASSERT_TRUE(eventually([&] { return server.connections() == 1; }));
  const auto begin = Steady::now();
  sending.cancel(cancel);
  EXPECT_THROW(cancelled.get(), boost::system::system_error);
  EXPECT_LT(Steady::now() - begin, 1s);
  EXPECT_THAT(sending.start(mail_to("alice@example.org", 2)).get(), WasSent());
  EXPECT_EQ(message_ids(server), std::set<std::string>{mail_to("alice@example.org", 2).message_id});
}

}  // namespace
}  // namespace fencepost::notify

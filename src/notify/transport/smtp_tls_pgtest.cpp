// Encryption and login: whom the transport trusts, and who gets to see the password.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "http/tls_test_support.hpp"
#include "notify/transport/smtp_transport_test_support.hpp"

namespace fencepost::notify {
namespace {

using namespace std::chrono_literals;
using http::testing::TestCertificate;
using test::SmtpFault;
using test::SmtpServer;
using test::SmtpServerOptions;
using test::SmtpStep;
using ::testing::Contains;
using ::testing::HasSubstr;
using testing::mail_to;
using ::testing::Not;
using testing::options_for;
using testing::send;
using ::testing::StartsWith;
using testing::with_login;

// Names of the loopback address. libcurl resolves all of .localhost itself, and the second one counts as another
// machine.
constexpr auto kHere = "localhost";
constexpr auto kElsewhere = "mail.localhost";

SmtpServerOptions server_with(const TestCertificate& certificate, bool implicit = false) {
  return {.username = "me",
          .password = "geheim",
          .certificate_file = certificate.certificate_file(),
          .key_file = certificate.key_file(),
          .implicit_tls = implicit};
}

EmailOptions options_at(const SmtpServer& server, const std::string& host, const std::string& ca_file,
                        const std::string& scheme = "smtp") {
  auto options = options_for(fmt::format("{}://{}:{}", scheme, host, server.port()));
  options.ca_file = ca_file;
  return options;
}

bool heard_login(const SmtpServer& server) {
  return std::ranges::any_of(server.commands(), [](const std::string& line) { return line.starts_with("AUTH"); });
}

void expect_transport_failure(const SendOutcome& outcome) {
  EXPECT_EQ(outcome.result, SendResult::kNotSent) << outcome.detail;
  EXPECT_TRUE(outcome.transport_failed);
  EXPECT_FALSE(outcome.detail.empty());
  EXPECT_THAT(outcome.detail, Not(HasSubstr("geheim")));
}

TEST(smtp_login, the_right_password_is_accepted_once_for_each_connection) {
  const SmtpServer server({.username = "me", .password = "geheim"});
  SmtpTransport transport(with_login(options_for(server), "geheim"));
  for (int i = 1; i <= 3; ++i) EXPECT_EQ(send(transport, mail_to("alice@example.org", i)).result, SendResult::kSent);
  EXPECT_EQ(server.received(), 3U);
  EXPECT_EQ(server.connections(), 1U);
}

TEST(smtp_login, a_wrong_or_missing_password_is_a_failure_of_the_transport) {
  const SmtpServer server({.username = "me", .password = "geheim"});
  SmtpTransport wrong(with_login(options_for(server), "falsch"));
  const auto refused = send(wrong, mail_to("alice@example.org"));
  expect_transport_failure(refused);
  EXPECT_THAT(refused.detail, StartsWith("535 "));
  EXPECT_THAT(refused.detail, Not(HasSubstr("falsch")));
  SmtpTransport none(options_for(server));
  expect_transport_failure(send(none, mail_to("alice@example.org")));
  EXPECT_EQ(server.received(), 0U);
}

TEST(smtp_login, a_temporary_failure_of_the_login_is_a_failure_of_the_transport) {
  SmtpServer server({.username = "me", .password = "geheim"});
  for (const auto* reply : {"454 4.7.0 later", "421 4.3.2 shutting down"}) {
    server.behave({{.at = SmtpStep::kAuth, .reply = reply}});
    SmtpTransport transport(with_login(options_for(server), "geheim"));
    expect_transport_failure(send(transport, mail_to("alice@example.org")));
    server.behave({});
    EXPECT_EQ(send(transport, mail_to("alice@example.org")).result, SendResult::kSent);
  }
}

TEST(smtp_tls, mails_go_through_starttls_and_through_implicit_tls) {
  for (const auto* host : {kHere, kElsewhere}) {
    const TestCertificate certificate(host);
    for (const bool implicit : {false, true}) {
      const SmtpServer server(server_with(certificate, implicit));
      const auto options = options_at(server, host, certificate.certificate_file(), implicit ? "smtps" : "smtp");
      SmtpTransport transport(with_login(options, "geheim"));
      for (int i = 1; i <= 3; ++i) {
        const auto outcome = send(transport, mail_to("alice@example.org", i));
        EXPECT_EQ(outcome.result, SendResult::kSent) << options.smtp_url << ": " << outcome.detail;
      }
      EXPECT_EQ(server.received(), 3U);
      EXPECT_EQ(server.connections(), 1U);
      EXPECT_EQ(std::ranges::count(server.commands(), "STARTTLS"), implicit ? 0 : 1);
    }
  }
}

TEST(smtp_tls, a_certificate_of_an_unknown_authority_is_refused) {
  const TestCertificate certificate(kElsewhere);
  const TestCertificate other(kElsewhere);
  for (const bool implicit : {false, true}) {
    for (const auto& authorities : {std::string(), other.certificate_file()}) {
      const SmtpServer server(server_with(certificate, implicit));
      const auto options = options_at(server, kElsewhere, authorities, implicit ? "smtps" : "smtp");
      SmtpTransport with_password(with_login(options, "geheim"));
      expect_transport_failure(send(with_password, mail_to("alice@example.org")));
      SmtpTransport without(options);
      expect_transport_failure(send(without, mail_to("alice@example.org")));
      EXPECT_FALSE(heard_login(server));
      EXPECT_EQ(server.received(), 0U);
    }
  }
}

TEST(smtp_tls, a_certificate_for_another_host_is_refused) {
  const TestCertificate certificate("elsewhere.test");
  for (const bool implicit : {false, true}) {
    const SmtpServer server(server_with(certificate, implicit));
    for (const auto* host : {kHere, kElsewhere, "127.0.0.1"}) {
      const auto options = options_at(server, host, certificate.certificate_file(), implicit ? "smtps" : "smtp");
      SmtpTransport transport(with_login(options, "geheim"));
      expect_transport_failure(send(transport, mail_to("alice@example.org")));
    }
    EXPECT_FALSE(heard_login(server));
    EXPECT_EQ(server.received(), 0U);
  }
}

TEST(smtp_tls, a_password_never_goes_to_another_machine_in_clear_text) {
  // The server offers a login and no TLS: as an attacker on the way would have it.
  const SmtpServer plain({.username = "me", .password = "geheim"});
  SmtpTransport stripped(with_login(options_at(plain, kElsewhere, ""), "geheim"));
  expect_transport_failure(send(stripped, mail_to("alice@example.org")));
  EXPECT_FALSE(heard_login(plain));
  EXPECT_EQ(plain.received(), 0U);

  // The server offers TLS and then refuses it, or breaks the connection.
  const TestCertificate certificate(kElsewhere);
  SmtpServer failing(server_with(certificate));
  const auto options = options_at(failing, kElsewhere, certificate.certificate_file());
  for (const auto& rule : std::vector<test::SmtpRule>{
           {.at = SmtpStep::kStartTls, .reply = "454 4.7.0 TLS not available"},
           {.at = SmtpStep::kStartTls, .fault = SmtpFault::kDrop},
       }) {
    failing.behave({rule});
    SmtpTransport transport(with_login(options, "geheim"));
    expect_transport_failure(send(transport, mail_to("alice@example.org")));
  }
  EXPECT_FALSE(heard_login(failing));
  EXPECT_EQ(failing.received(), 0U);
}

TEST(smtp_tls, a_handshake_that_hangs_costs_the_timeout) {
  const TestCertificate certificate(kElsewhere);
  SmtpServer server(server_with(certificate));
  server.behave({{.at = SmtpStep::kStartTls, .fault = SmtpFault::kHang}});
  auto options = options_at(server, kElsewhere, certificate.certificate_file());
  options.timeout = 1s;
  SmtpTransport transport(options);
  const auto begin = std::chrono::steady_clock::now();
  expect_transport_failure(send(transport, mail_to("alice@example.org")));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 3s);
}

}  // namespace
}  // namespace fencepost::notify

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/asio/ip/tcp.hpp>

#include "http/tls_test_support.hpp"
#include "tests/support/smtp_server.hpp"
#include "tests/support/tcp_proxy.hpp"
#include "tests/support/temp_dir.hpp"

#include "doctor/email.hpp"

namespace fencepost::doctor {
namespace {

using namespace std::chrono_literals;
using http::testing::TestCertificate;
using test::SmtpServer;

notify::EmailOptions email_at(const std::string& url) {
  return {.transport = notify::TransportKind::kSmtp, .smtp_url = url, .from = "no-reply@example.org", .timeout = 5s};
}

notify::EmailOptions trusting(notify::EmailOptions email, const TestCertificate& certificate) {
  email.ca_file = certificate.certificate_file();
  return email;
}

notify::EmailOptions with_login(notify::EmailOptions email, std::string password) {
  email.username = "me";
  email.password = Secret(password);
  return email;
}

TEST(smtp_probe, speaks_with_a_server_and_sends_nothing) {
  const SmtpServer server;
  const auto finding = check_email(email_at(server.url()));
  EXPECT_EQ(finding, passed("email", server.url() + ", not encrypted"));
  EXPECT_EQ(server.received(), 0U);
}

TEST(smtp_probe, logs_in_and_says_so) {
  const SmtpServer server({.username = "me", .password = "geheim"});
  const auto finding = check_email(with_login(email_at(server.url()), "geheim"));
  EXPECT_EQ(finding.status, Status::kWarn);  // without TLS
  EXPECT_NE(finding.detail.find("logged in as me"), std::string::npos) << finding.detail;
}

TEST(smtp_probe, a_wrong_password_is_the_servers_535) {
  const SmtpServer server({.username = "me", .password = "geheim"});
  const auto finding = check_email(with_login(email_at(server.url()), "falsch"));
  EXPECT_EQ(finding.status, Status::kFail);
  EXPECT_NE(finding.detail.find(": 535 "), std::string::npos) << finding.detail;
  EXPECT_NE(finding.fix.find("email.password"), std::string::npos);
  EXPECT_EQ(finding.detail.find("falsch"), std::string::npos);
}

TEST(smtp_probe, a_server_without_login_differs_from_a_refused_login) {
  const SmtpServer server;
  const auto finding = check_email(with_login(email_at(server.url()), "geheim"));
  EXPECT_EQ(finding.status, Status::kFail);
  EXPECT_NE(finding.detail.find("offers no login"), std::string::npos) << finding.detail;
}

TEST(smtp_probe, uses_tls_where_it_is_offered) {
  const TestCertificate certificate("localhost");
  for (const bool implicit : {false, true}) {
    const SmtpServer server({.username = "me",
                             .password = "geheim",
                             .certificate_file = certificate.certificate_file(),
                             .key_file = certificate.key_file(),
                             .implicit_tls = implicit});
    const auto url = fmt::format("{}://localhost:{}", implicit ? "smtps" : "smtp", server.port());
    const auto outcome = probe_smtp(trusting(with_login(email_at(url), "geheim"), certificate));
    EXPECT_EQ(outcome.failure, SmtpFailure::kNone) << url << ": " << outcome.reason;
    EXPECT_TRUE(outcome.encrypted) << url;
    EXPECT_TRUE(outcome.authenticated) << url;
  }
}

TEST(smtp_probe, a_certificate_of_an_unknown_authority_is_refused) {
  const TestCertificate certificate("localhost");
  for (const bool implicit : {false, true}) {
    const SmtpServer server({.certificate_file = certificate.certificate_file(),
                             .key_file = certificate.key_file(),
                             .implicit_tls = implicit});
    const auto url = fmt::format("{}://localhost:{}", implicit ? "smtps" : "smtp", server.port());
    const auto finding = check_email(email_at(url));
    EXPECT_EQ(finding.status, Status::kFail) << url;
    EXPECT_NE(finding.fix.find("certificate must be for this host"), std::string::npos) << finding.detail;
  }
}

TEST(smtp_probe, a_certificate_for_another_host_is_refused) {
  const TestCertificate certificate("elsewhere.test");
  const SmtpServer server({.certificate_file = certificate.certificate_file(), .key_file = certificate.key_file()});
  const auto outcome = probe_smtp(trusting(email_at(server.url()), certificate));
  EXPECT_EQ(outcome.failure, SmtpFailure::kTls) << outcome.reason;
}

TEST(smtp_probe, a_closed_port_is_refused) {
  boost::asio::io_context context;
  const auto loopback = boost::asio::ip::make_address("127.0.0.1");
  const auto port = boost::asio::ip::tcp::acceptor(context, {loopback, 0}).local_endpoint().port();
  const auto finding = check_email(email_at(fmt::format("smtp://127.0.0.1:{}", port)));
  EXPECT_EQ(finding.status, Status::kFail);
  EXPECT_EQ(finding.detail, fmt::format("smtp://127.0.0.1:{}: Connection refused", port));
}

TEST(smtp_probe, an_unknown_host_differs_from_a_closed_port) {
  const auto outcome = probe_smtp(email_at("smtp://nowhere.invalid:25"));
  EXPECT_EQ(outcome.failure, SmtpFailure::kUnknownHost) << outcome.reason;
}

TEST(smtp_probe, a_server_that_never_answers_costs_the_timeout) {
  const SmtpServer server;
  test::TcpProxy proxy("127.0.0.1", server.port());
  proxy.blackhole();
  auto email = email_at(fmt::format("smtp://127.0.0.1:{}", proxy.port()));
  email.timeout = 500ms;
  const auto started = std::chrono::steady_clock::now();
  const auto finding = check_email(email);
  EXPECT_LT(std::chrono::steady_clock::now() - started, 5s);
  EXPECT_EQ(finding.status, Status::kFail);
  EXPECT_EQ(finding.detail, email.smtp_url + ": no answer within 500ms");
}

TEST(smtp_probe, a_server_that_hangs_up_is_a_refusal) {
  const SmtpServer server;
  test::TcpProxy proxy("127.0.0.1", server.port());
  proxy.cut_after(test::Direction::kToServer, 3);  // in the middle of EHLO: the connection stands by then
  const auto outcome = probe_smtp(email_at(fmt::format("smtp://127.0.0.1:{}", proxy.port())));
  EXPECT_EQ(outcome.failure, SmtpFailure::kRejected) << outcome.reason;
  EXPECT_NE(outcome.reason, "");
}

TEST(email_check, mail_as_files_needs_a_directory_that_can_be_written) {
  const test::TempDir dir("mail");
  const auto file = [](const std::string& directory) {
    return notify::EmailOptions{
        .transport = notify::TransportKind::kFile, .directory = directory, .from = "no-reply@example.org"};
  };
  EXPECT_EQ(check_email(file(dir / "new")), passed("email", "mails are files in " + (dir / "new").string()));
  const auto finding = check_email(file("/dev/null/mail"));
  EXPECT_EQ(finding.status, Status::kFail);
  EXPECT_NE(finding.detail.find("/dev/null/mail"), std::string::npos) << finding.detail;
}

}  // namespace
}  // namespace fencepost::doctor

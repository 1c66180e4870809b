// Keys of mail.
#include "config/key_builder.hpp"

namespace fencepost::config {
namespace {

using namespace std::chrono_literals;
using notify::EmailOptions;
using notify::TransportKind;

constexpr Choice<TransportKind, 3> kTransport{
    {{{"none", TransportKind::kNone}, {"smtp", TransportKind::kSmtp}, {"file", TransportKind::kFile}}}};
constexpr Url kSmtpUrl{"smtp", "smtps", true};
constexpr Uint32 kRate{1, 1'000'000};

constexpr auto email = [](auto member) { return at(&Config::email, member); };

std::vector<Key> transport_keys() {
  return {
      key("email.transport", email(&EmailOptions::transport), kTransport,
          "How mail leaves: by a mail server, or as files for development. smtp if email.smtp_url is set; `up` uses "
          "file."),
      key("email.from", email(&EmailOptions::from), MailAddress{}, "Sender of all mail; required to send mail."),
      key("email.smtp_url", email(&EmailOptions::smtp_url), kSmtpUrl,
          "Mail server, such as smtp://mail.example.org:587, which must offer TLS if there is a password."),
      key("email.username", email(&EmailOptions::username), Text{256}, "Login at the mail server, if it requires one."),
      key("email.password", email(&EmailOptions::password), SecretText{}, "Password at the mail server."),
      key("email.tls_ca_path", email(&EmailOptions::ca_file), Text{4096},
          "Authorities that sign the mail server's certificate, in PEM; the system's if not set."),
      key("email.directory", email(&EmailOptions::directory), Text{4096},
          "Directory of the transport `file`: one .eml for each mail."),
      key("email.timeout", email(&EmailOptions::timeout), Duration{100ms, 10min},
          "How long the delivery of one mail to the server may take."),
      key("email.connections", email(&EmailOptions::connections), Count{1, 64},
          "Connections of this node to the mail server."),
      key("email.rate_per_second", email(&EmailOptions::rate_per_second), kRate,
          "Mails per second that this node sends."),
      key("email.domain_rate_per_second", email(&EmailOptions::domain_rate_per_second), kRate,
          "Mails per second that this node sends to the addresses of one domain."),
      key("email.retry_initial", email(&EmailOptions::retry_initial), Duration{1ms, 1h},
          "How long to wait after the first failed attempt to send a mail; twice as long after each further one."),
      key("email.retry_cap", email(&EmailOptions::retry_cap), Duration{1ms, 24h},
          "The longest wait between two attempts."),
      key("email.retry_for", email(&EmailOptions::retry_for), Duration{1ms, 30 * 24h},
          "How long to try a mail before it is given up."),
      key("email.log_retention", email(&EmailOptions::log_retention),
          Duration{std::chrono::days(1), std::chrono::days(10'000)},
          "How long to keep the rows of mails that were sent, refused or not wanted any more."),
  };
}

std::vector<Key> people_keys() {
  return {
      key("email.code_ttl", email(&EmailOptions::code_ttl), Duration{10s, 24h},
          "How long the code that verifies an address may be used."),
      key("email.code_resend_interval", email(&EmailOptions::code_resend_interval), Duration{0ms, 24h},
          "How long a person waits before asking for another code for the same address."),
      key("email.codes_per_address_per_day", email(&EmailOptions::codes_per_address_per_day), Uint32{1, 10'000},
          "Codes that are mailed to one address in 24 hours, for all people together."),
      key("email.codes_per_user_per_day", email(&EmailOptions::codes_per_user_per_day), Uint32{1, 10'000},
          "Codes that one person may ask for in 24 hours."),
      key("email.operators", email(&EmailOptions::operators), MailAddresses{},
          "Addresses that get a mail when a transaction is stuck or a verification of timelocks fails."),
      key("email.dashboard_url", email(&EmailOptions::dashboard_url), Url{"http", "https"},
          "Where flows are shown: mails link to <url>/flows/<standard>/<chain>/<contract>/<flow>. No link if not set."),
  };
}

}  // namespace

std::vector<Key> email_keys() {
  auto out = transport_keys();
  for (auto& key : people_keys()) out.push_back(std::move(key));
  return out;
}

}  // namespace fencepost::config

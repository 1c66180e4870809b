// Mails and settings for tests of the SMTP transport.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "notify/transport/smtp_transport.hpp"
#include "runtime/gather.hpp"
#include "runtime/runtime.hpp"
#include "tests/support/smtp_server.hpp"

namespace fencepost::notify::testing {

inline Mail mail_to(const std::string& to, int number = 1) {
  return {.message_id = fmt::format("{:04}@fencepost.example.org", number),
          .from = "no-reply@example.org",
          .to = to,
          .subject = "Flow 7 is ready",
          .text = "Hello\n",
          .html = "<p>Hello</p>\n",
          .unsubscribe_url = "https://fencepost.example.org/unsubscribe?token=abc",
          .date = *parse_rfc3339("2026-11-18T08:30:01.123456Z")};
}

// One connection, so that a test knows which mail goes through which connection.
inline EmailOptions options_for(const std::string& url) {
  EmailOptions options;
  options.transport = TransportKind::kSmtp;
  options.smtp_url = url;
  options.from = "no-reply@example.org";
  options.timeout = std::chrono::seconds{5};
  options.connections = 1;
  return options;
}

inline EmailOptions options_for(const test::SmtpServer& server) {
  return options_for(server.url());
}

inline EmailOptions with_login(EmailOptions options, const std::string& password) {
  options.username = "me";
  options.password = Secret(password);
  return options;
}

inline SendOutcome send(MailTransport& transport, Mail mail) {
  return run_blocking(transport.send(std::move(mail)));
}

// All at once; the results in the order of the mails.
inline std::vector<SendOutcome> send_all(MailTransport& transport, std::vector<Mail> mails) {
  std::vector<awaitable<SendOutcome>> sends;
  for (auto& mail : mails) sends.push_back(transport.send(std::move(mail)));
  return run_blocking(gather(std::move(sends)));
}

}  // namespace fencepost::notify::testing

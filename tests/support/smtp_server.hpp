// A real SMTP server for tests: aiosmtpd, on a free port of 127.0.0.1, stopped and forgotten at the end.
//
//   test::SmtpServer mail;                                             // takes all mail, wants no login
//   test::SmtpServer mail({.username = "u", .password = "p"});         // wants that login
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "runtime/child_process.hpp"
#include "tests/support/temp_dir.hpp"

namespace fencepost::test {

struct SmtpServerOptions {
  std::string username;  // empty: AUTH is not offered (but by STARTTLS, where aiosmtpd always offers it)
  std::string password;
  std::string certificate_file;  // with key_file: STARTTLS is offered, or, with `implicit_tls`, TLS from the start
  std::string key_file;
  bool implicit_tls = false;
};

class SmtpServer {
 public:
  // Returns when it answers; throws when it does not.
  explicit SmtpServer(const SmtpServerOptions& options = {});
  ~SmtpServer();

  std::uint16_t port() const { return port_; }
  // "smtp://127.0.0.1:2525", or smtps.
  std::string url() const;
  // How many mails it has taken.
  std::size_t received() const;

 private:
  TempDir dir_{"smtp"};
  std::optional<ChildProcess> child_;
  std::uint16_t port_ = 0;
  bool implicit_tls_;
};

}  // namespace fencepost::test

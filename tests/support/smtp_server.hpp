// A real SMTP server for tests: aiosmtpd on a free port of 127.0.0.1. The destructor stops it; its mail is lost.
//
//   test::SmtpServer mail;                                             // accepts all mail without a login
//   test::SmtpServer mail({.username = "u", .password = "p"});         // requires that login
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "runtime/child_process.hpp"
#include "tests/support/temp_dir.hpp"

namespace fencepost::test {

struct SmtpServerOptions {
  std::string username;  // empty: no AUTH (except after STARTTLS, where aiosmtpd always offers it)
  std::string password;
  std::string certificate_file;  // with key_file: offers STARTTLS, or TLS from the start with `implicit_tls`
  std::string key_file;
  bool implicit_tls = false;
};

class SmtpServer {
 public:
  // Returns when the server answers. Throws if it does not.
  explicit SmtpServer(const SmtpServerOptions& options = {});
  ~SmtpServer();

  std::uint16_t port() const { return port_; }
  // "smtp://127.0.0.1:2525", or smtps.
  std::string url() const;
  // The number of accepted mails.
  std::size_t received() const;

 private:
  TempDir dir_{"smtp"};
  std::optional<ChildProcess> child_;
  std::uint16_t port_ = 0;
  bool implicit_tls_;
};

}  // namespace fencepost::test

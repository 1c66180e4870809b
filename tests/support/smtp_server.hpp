// A real SMTP server for tests: aiosmtpd on a free port of 127.0.0.1, which misbehaves on request. The destructor stops
// it; its mail is lost.
//
//   test::SmtpServer mail;                                             // accepts all mail without a login
//   test::SmtpServer mail({.username = "u", .password = "p"});         // requires that login
//
//   mail.behave({{.at = SmtpStep::kRcpt, .reply = "450 4.2.0 greylisted", .times = 1, .each_recipient = true}});
//   mail.behave({{.at = SmtpStep::kTaken, .fault = SmtpFault::kDrop, .recipient = "bob@example.org"}});
//   mail.behave({});                                                   // well again
//
//   mail.stop();      // "connection refused" for a while
//   mail.restart();   // on the same port, with the same rules and the mail from before
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

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

// Where a dialogue can go wrong.
enum class SmtpStep {
  kConnect,  // instead of the first line of the server
  kEhlo,     // instead of the reply to that command
  kHelo,
  kStartTls,
  kAuth,
  kMail,
  kRcpt,
  kData,
  kBody,   // after the first bytes of the mail
  kEnd,    // after the final dot: the server has not taken the mail
  kTaken,  // the same, but the server has taken the mail
  kIdle,   // after the reply to a mail, before the next one
};

enum class SmtpFault {
  kReply,  // sends `reply`; with a 421, or instead of the first line, closes the connection after it
  kDrop,   // resets the connection
  kHang,   // is silent until the client leaves
};

struct SmtpRule {
  SmtpStep at;
  SmtpFault fault = SmtpFault::kReply;
  std::string reply = {};
  std::string recipient = {};  // only mails to this address: from kRcpt to kTaken. Empty: all
  std::uint32_t times = std::numeric_limits<std::uint32_t>::max();
  bool each_recipient = false;  // `times` for each recipient
};

struct ReceivedMail {
  std::size_t connection = 0;  // counts from 1
  std::string from;
  std::vector<std::string> recipients;
  std::string raw;  // with CRLF, dots unstuffed

  // Without angle brackets; empty if the mail has none.
  std::string message_id() const;
};

class SmtpServer {
 public:
  // Returns when the server answers. Throws if it does not.
  explicit SmtpServer(SmtpServerOptions options = {});
  ~SmtpServer();

  std::uint16_t port() const { return port_; }
  // "smtp://127.0.0.1:2525", or smtps.
  std::string url() const;

  // Replaces the rules, for the next step of each dialogue on. The first rule that matches applies.
  void behave(const std::vector<SmtpRule>& rules);

  // The accepted mails, in order, and their number.
  std::vector<ReceivedMail> mails() const;
  std::size_t received() const;
  // The number of connections since the start.
  std::size_t connections() const;
  // All commands, without the lines of a mail: "MAIL FROM:<a@example.org> SIZE=512".
  std::vector<std::string> commands() const;

  // SIGKILL, and waits for its end.
  void stop();
  // Starts it again. Requires: stopped. Throws if it does not start.
  void restart();

 private:
  void start();

  TempDir dir_{"smtp"};
  SmtpServerOptions options_;
  std::optional<ChildProcess> child_;
  std::uint16_t port_ = 0;
  std::uint64_t rules_version_ = 0;
};

}  // namespace fencepost::test

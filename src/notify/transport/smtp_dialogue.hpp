// What was said during one attempt to send one mail by SMTP, and what that means for the mail. Pure: no I/O.
#pragma once

#include <string>
#include <string_view>

#include "notify/transport/mail_transport.hpp"

namespace fencepost::notify {

// The last command that was sent.
enum class SmtpStage {
  kConnect,  // none, or a command that has nothing to do with the mail: EHLO, STARTTLS, AUTH
  kMail,
  kRcpt,
  kData,
  kBody,
};

class SmtpDialogue {
 public:
  // One line, as it was sent. Other commands than MAIL, RCPT, DATA and QUIT change nothing.
  void on_command(std::string_view line);
  // One line of a reply. After QUIT it is ignored: 221 says nothing about the mail, and would hide the reply that does.
  void on_reply(std::string_view line);
  // A piece of the body was sent; after the last one the server may take the mail.
  void on_body(bool last);

  // Whether the last command was QUIT. Another command may follow, on a new connection.
  bool over() const { return over_; }
  SmtpStage stage() const { return stage_; }
  // The code of the last reply to the last command; 0: none was read.
  int code() const { return code_; }
  // All lines of that reply, as one line; empty if there was none.
  const std::string& reply() const { return reply_; }

  // What a transfer means that libcurl reports as failed, with libcurl's or the system's reason.
  SendOutcome failure(std::string_view reason) const;

 private:
  SendResult refusal() const;
  std::string detail(std::string_view reason) const;
  std::string brief() const;

  SmtpStage stage_ = SmtpStage::kConnect;
  int code_ = 0;
  std::string reply_;
  bool body_left_ = false;
  bool over_ = false;
};

}  // namespace fencepost::notify

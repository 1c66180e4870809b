// How mail leaves this node.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "notify/model/mail.hpp"
#include "notify/options.hpp"
#include "runtime/async.hpp"

namespace fencepost::notify {

enum class SendResult {
  kSent,            // the receiver has taken responsibility for the mail
  kNotSent,         // it was certainly not taken; a later try may succeed (4xx, no connection, refused before RCPT)
  kMaybeSent,       // the connection was lost after the mail's last byte may have left: it may have been taken
  kRefused,         // 5xx for this mail or this recipient: no try will succeed
  kUnknownAddress,  // 5xx because there is no such mailbox
  kNotTried,        // the attempt was not begun: it would have been too late, or too many mails wait
};

inline constexpr std::size_t kDetailMaxBytes = 500;

struct SendOutcome {
  SendResult result = SendResult::kNotSent;
  std::string detail;  // what the server or the system said, one line; empty when sent
  // The failure has nothing to do with this mail: no connection, no TLS, no login, no sender. Others would fail, too.
  bool transport_failed = false;
  // `detail` for the log: without the words of a reply about the recipient, which usually quote the mailbox. Empty:
  // `detail` itself names no mailbox.
  std::string brief = {};

  const std::string& log_text() const { return brief.empty() ? detail : brief; }
};

// The `detail` of a mail that was not tried.
inline constexpr auto kTransportFull = "not tried: too many mails wait for the mail server, or this node stops";
inline constexpr auto kTooLate = "not tried: no connection was free in time";

class MailTransport {
 public:
  virtual ~MailTransport() = default;
  using Time = std::chrono::steady_clock::time_point;

  // Any loop may call; at most `connections()` calls at a time make progress, further ones wait in order, and one that
  // has to wait beyond `start_by` is not tried: its claim might end before the attempt. Resumes on the caller's loop.
  // With 1,000 calls waiting, returns kNotTried at once. Never throws for what a server does. Throws Exception
  // `bad_mail` as to_eml does, and system_error operation_aborted when cancelled: then the mail may still be sent.
  virtual awaitable<SendOutcome> send(Mail mail, Time start_by = Time::max()) = 0;
  virtual std::size_t connections() const = 0;
  // "smtp" or "file".
  virtual std::string_view name() const = 0;
};

// Requires: options.configured(). Throws if the URL of the mail server is not one. Destroy the transport before the
// loops of its callers.
std::unique_ptr<MailTransport> make_mail_transport(const EmailOptions& options);

}  // namespace fencepost::notify

// Opens a session with a mail server without sending mail: connect, EHLO, TLS, AUTH if there is a user name, NOOP,
// QUIT.
#pragma once

#include <string>
#include <string_view>

#include "config/config.hpp"

namespace fencepost {

enum class SmtpFailure { kNone, kUnknownHost, kUnreachable, kTimeout, kTls, kAuthentication, kRejected };

struct SmtpOutcome {
  SmtpFailure failure = SmtpFailure::kNone;
  std::string reason;          // why it failed: the message of the system, of curl or of the server
  bool encrypted = false;      // smtps, or STARTTLS was offered and done
  bool authenticated = false;  // false, with a user name and no failure: the server does not offer AUTH
};

// The kind of failure that a libcurl result code stands for.
SmtpFailure smtp_failure_of(int curl_code);

// Blocks for at most `email.timeout`, and as long again if the server does not answer QUIT. Any thread that may block;
// calls may overlap. Ignores the proxies of the environment.
SmtpOutcome probe_smtp(const notify::EmailOptions& email);

}  // namespace fencepost

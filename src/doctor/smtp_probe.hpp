// Speaks with a mail server as far as one can without sending mail: connect, EHLO, TLS, AUTH if there is a user
// name, NOOP, QUIT.
#pragma once

#include <string>
#include <string_view>

#include "config/config.hpp"

namespace fencepost {

enum class SmtpFailure { kNone, kUnknownHost, kUnreachable, kTimeout, kTls, kAuthentication, kRejected };

struct SmtpOutcome {
  SmtpFailure failure = SmtpFailure::kNone;
  std::string reason;          // of the failure: the system's, curl's or the server's words
  bool encrypted = false;      // smtps, or STARTTLS was offered and done
  bool authenticated = false;  // false with a user name and no failure: the server does not offer AUTH at all
};

// What a libcurl result code means.
SmtpFailure smtp_failure_of(int curl_code);

// Blocks for at most `email.timeout`, and as long again where the server does not answer to QUIT. Call it on a
// thread that may block; several may call at once. Certificates are verified, against those in `ca_file` if one is
// given and the system's otherwise; proxies of the environment are not used.
SmtpOutcome probe_smtp(const EmailConfig& email, const std::string& ca_file = "");

}  // namespace fencepost

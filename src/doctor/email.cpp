#include "doctor/email.hpp"

#include <filesystem>

#include <fmt/format.h>
#include <unistd.h>

#include "base/duration_text.hpp"

namespace fencepost::doctor {
namespace {

constexpr auto kEmailCheck = "email";

std::string fix_for(SmtpFailure failure) {
  switch (failure) {
    case SmtpFailure::kNone:
      return "";
    case SmtpFailure::kUnknownHost:
      return "check the host in email.smtp_url, and that this machine can resolve it";
    case SmtpFailure::kUnreachable:
      return "check that the mail server is running, and the port in email.smtp_url; many providers block port 25";
    case SmtpFailure::kTimeout:
      return "check for a firewall; use smtps:// for port 465, smtp:// for ports 25 and 587; or raise email.timeout";
    case SmtpFailure::kTls:
      return "the certificate must be for this host, not expired, and signed by an authority that this machine trusts; "
             "use smtps:// for port 465, smtp:// for ports 25 and 587";
    case SmtpFailure::kAuthentication:
      return "check email.username and email.password; some providers require an app password";
    case SmtpFailure::kRejected:
      return "check that this is a mail server, and that it accepts mail from this machine";
  }
  std::unreachable();
}

std::string login_text(const notify::EmailOptions& email, const SmtpOutcome& outcome) {
  return outcome.authenticated ? fmt::format(", logged in as {}", email.username) : "";
}

// The first mail creates the directory: what counts is the nearest one that exists.
Finding check_directory(const std::string& directory) {
  auto nearest = std::filesystem::absolute(directory);
  std::error_code none;
  while (!std::filesystem::exists(nearest, none) && nearest.has_relative_path()) nearest = nearest.parent_path();
  if (std::filesystem::is_directory(nearest, none) && ::access(nearest.c_str(), W_OK | X_OK) == 0) {
    return passed(kEmailCheck, fmt::format("mails are files in {}", directory));
  }
  return failed(kEmailCheck,
                fmt::format("{}: {} is not a directory that this user can write", directory, nearest.string()),
                "change email.directory, or the rights of that directory");
}

}  // namespace

Finding assess_email(const notify::EmailOptions& email, const SmtpOutcome& outcome) {
  if (outcome.failure == SmtpFailure::kTimeout) {
    return failed(kEmailCheck, fmt::format("{}: no answer within {}", email.smtp_url, duration_text(email.timeout)),
                  fix_for(outcome.failure));
  }
  if (outcome.failure != SmtpFailure::kNone) {
    return failed(kEmailCheck, fmt::format("{}: {}", email.smtp_url, one_line(outcome.reason)),
                  fix_for(outcome.failure));
  }
  if (!email.username.empty() && !outcome.authenticated) {
    return failed(kEmailCheck, fmt::format("{} offers no login, but email.username is set", email.smtp_url),
                  outcome.encrypted
                      ? "use the server's submission port (587 or 465), or unset email.username"
                      : "the server may require TLS before login: use a port that offers TLS, or unset email.username");
  }
  auto detail =
      fmt::format("{}, {}{}", email.smtp_url, outcome.encrypted ? "TLS" : "not encrypted", login_text(email, outcome));
  if (outcome.authenticated && !outcome.encrypted) {
    return warned(kEmailCheck, detail + ": the password is sent unencrypted",
                  "use a port of the server that offers TLS");
  }
  return passed(kEmailCheck, std::move(detail));
}

Finding check_email(const notify::EmailOptions& email) {
  if (!email.configured()) return passed(kEmailCheck, "not configured: no mail is sent");
  if (email.transport == notify::TransportKind::kFile) return check_directory(email.directory);
  return assess_email(email, probe_smtp(email));
}

}  // namespace fencepost::doctor

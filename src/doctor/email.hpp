// Checks that the mail server accepts a session. No mail is sent.
#pragma once

#include "config/config.hpp"
#include "doctor/doctor.hpp"
#include "doctor/smtp_probe.hpp"

namespace fencepost::doctor {

Finding assess_email(const notify::EmailOptions& email, const SmtpOutcome& outcome);

// Blocks as probe_smtp does. If no mail server is configured, passes without connecting and says so.
Finding check_email(const notify::EmailOptions& email);

}  // namespace fencepost::doctor

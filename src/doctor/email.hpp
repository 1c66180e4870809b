// Whether mail can be handed over. No mail is sent.
#pragma once

#include "config/config.hpp"
#include "doctor/doctor.hpp"
#include "doctor/smtp_probe.hpp"

namespace fencepost::doctor {

Finding assess_email(const EmailConfig& email, const SmtpOutcome& outcome);

// Blocks as probe_smtp does. Without a mail server configured it asks nobody and says so.
Finding check_email(const EmailConfig& email);

}  // namespace fencepost::doctor

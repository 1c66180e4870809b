// The mails that the transport `file` wrote, as `fencepost mail list|show` show them.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "notify/model/eml_reader.hpp"

#include "cli/text_table.hpp"

namespace fencepost::cli {

struct MailFile {
  std::filesystem::path path;
  notify::ReadMail mail;

  // "flow-12": the beginning of the Message-ID, unique in one installation.
  std::string name() const;
  // nullopt if the mail's date cannot be read.
  std::optional<TimePoint> sent_at() const;
};

// Newest last; files that are not mails are left out. Empty if there is no such directory: the first mail makes it.
// Errors: kInvalid `mails_unreadable`.
Result<std::vector<MailFile>> read_mail_files(const std::filesystem::path& directory);

// The mail with that name, or the newest one for an empty name. Errors: kNotFound `no_such_mail`.
Result<MailFile> choose_mail(const std::vector<MailFile>& mails, std::string_view name);

// "MAIL  SENT  TO  SUBJECT", a row each.
std::string mail_table(const std::vector<MailFile>& mails, std::size_t width = kFullWidth);

}  // namespace fencepost::cli

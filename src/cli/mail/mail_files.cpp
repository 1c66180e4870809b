#include "cli/mail/mail_files.hpp"

#include <algorithm>
#include <ctime>

#include <fmt/format.h>

#include "base/text.hpp"
#include "runtime/read_file.hpp"

#include "cli/text_table.hpp"

namespace fencepost::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kSubjectColumns = 70;

std::string time_of(const notify::ReadMail& mail) {
  // "Wed, 18 Nov 2026 08:30:01 +0000"
  constexpr std::size_t kBegin = 5;
  constexpr std::size_t kLength = 20;
  return mail.date.size() > kBegin ? mail.date.substr(kBegin, kLength) : mail.date;
}

}  // namespace

std::string MailFile::name() const {
  return mail.message_id.substr(0, mail.message_id.find('.'));
}

std::optional<TimePoint> MailFile::sent_at() const {
  // "Wed, 18 Nov 2026 08:30:01 +0000", as Fencepost writes it; always UTC.
  std::tm parts{};
  const auto* end = ::strptime(mail.date.c_str(), "%a, %d %b %Y %H:%M:%S +0000", &parts);
  if (end == nullptr || *end != '\0') return std::nullopt;
  return TimePoint(std::chrono::seconds(::timegm(&parts)));
}

Result<std::vector<MailFile>> read_mail_files(const fs::path& directory) {
  std::error_code failure;
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(directory, failure)) {
    if (entry.path().extension() == ".eml") paths.push_back(entry.path());
  }
  if (failure && failure != std::errc::no_such_file_or_directory) {
    return fail(invalid("mails_unreadable", fmt::format("cannot read the directory {}: {}. Name another with --dir.",
                                                        quote(directory.string(), 256), failure.message())));
  }
  std::ranges::sort(paths);  // names begin with the time
  std::vector<MailFile> out;
  for (const auto& path : paths) {
    if (auto mail = notify::read_eml(read_file(path))) out.push_back({path, std::move(*mail)});
  }
  return out;
}

Result<MailFile> choose_mail(const std::vector<MailFile>& mails, std::string_view name) {
  if (name.empty() && !mails.empty()) return mails.back();
  const auto found = std::ranges::find(mails, name, &MailFile::name);
  if (found != mails.end()) return *found;
  return fail(not_found("no_such_mail", name.empty()
                                            ? "There are no mails."
                                            : fmt::format("There is no mail {}; 'mail list' shows them.", name)));
}

std::string mail_table(const std::vector<MailFile>& mails, std::size_t width) {
  TextTable table({"MAIL", {"SENT (UTC)", 2}, {"TO", 1, 12}, {"SUBJECT", 0, 20}});
  for (const auto& file : mails) {
    table.add({file.name(), time_of(file.mail), file.mail.to, shortened(file.mail.subject, kSubjectColumns)});
  }
  return table.text(width);
}

}  // namespace fencepost::cli

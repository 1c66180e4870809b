#include "notify/transport/file_transport.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <sys/stat.h>

#include "base/digest.hpp"
#include "base/text.hpp"
#include "runtime/private_file.hpp"

namespace fencepost::notify {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kNamePartMax = 120;  // with the rest of the name below the 255 bytes of file systems

bool is_safe_in_name(char c) {
  const bool alphanumeric = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return alphanumeric || std::string_view("@.-_+").contains(c);
}

// Different ids give different names, also if a character had to be replaced.
std::string name_part(std::string_view message_id) {
  std::string out(message_id.substr(0, kNamePartMax));
  std::ranges::replace_if(out, [](char c) { return !is_safe_in_name(c); }, '_');
  return out == message_id ? out : fmt::format("{}-{}", out, sha256_hex(message_id).substr(0, 16));
}

Result<void> make_private_directory(const fs::path& directory) {
  std::error_code error;
  if (directory.has_parent_path()) fs::create_directories(directory.parent_path(), error);
  if (::mkdir(directory.c_str(), S_IRWXU) == 0 || errno == EEXIST) return {};
  return fail(internal("cannot_write", fmt::format("cannot create {}: {}", directory.string(), std::strerror(errno))));
}

SendOutcome write_mail(const fs::path& directory, const Mail& mail) {
  const auto eml = to_eml(mail);
  auto written = make_private_directory(directory);
  if (written) written = write_private_file(directory / eml_file_name(mail), eml);
  if (written) return {SendResult::kSent, "", false};
  return {SendResult::kNotSent, plain_text(written.error().message, kDetailMaxBytes), true};
}

}  // namespace

std::string eml_file_name(const Mail& mail) {
  auto time = to_rfc3339(mail.date);
  std::erase_if(time, [](char c) { return c == '-' || c == ':'; });
  return fmt::format("{}-{}.eml", time, name_part(mail.message_id));
}

FileTransport::FileTransport(fs::path directory) : directory_(std::move(directory)), jobs_({.name = "fp-mail"}) {}

awaitable<SendOutcome> FileTransport::send(Mail mail, Time start_by) {
  auto work = [this, mail = std::move(mail), start_by](std::size_t) {
    if (std::chrono::steady_clock::now() > start_by) return SendOutcome{SendResult::kNotTried, kTooLate, false};
    return write_mail(directory_, mail);
  };
  auto outcome = co_await jobs_.run(std::move(work));
  if (outcome) co_return std::move(*outcome);
  co_return SendOutcome{SendResult::kNotTried, kTransportFull, true};
}

}  // namespace fencepost::notify

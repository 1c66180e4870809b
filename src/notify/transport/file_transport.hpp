// Mail as files: one .eml in a folder for each mail, for development and for tests.
//
// The name sorts by time and depends only on the mail, so that sending the same mail again replaces the file:
// 20261118T083001.123456Z-0193@fencepost.example.org.eml
#pragma once

#include <filesystem>

#include "notify/transport/blocking_jobs.hpp"
#include "notify/transport/mail_transport.hpp"

namespace fencepost::notify {

class FileTransport final : public MailTransport {
 public:
  // The first mail creates the folder, readable by its owner only.
  explicit FileTransport(std::filesystem::path directory);

  awaitable<SendOutcome> send(Mail mail, Time start_by = Time::max()) override;
  std::size_t connections() const override { return 1; }
  std::string_view name() const override { return "file"; }

 private:
  const std::filesystem::path directory_;
  BlockingJobs jobs_;
};

std::string eml_file_name(const Mail& mail);

}  // namespace fencepost::notify

#include "notify/transport/file_transport.hpp"

#include <atomic>
#include <fstream>
#include <iterator>
#include <set>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/error.hpp"
#include "runtime/gather.hpp"
#include "runtime/runtime.hpp"
#include "tests/support/temp_dir.hpp"

namespace fencepost::notify {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

Mail mail_with(std::string message_id, std::string text = "Hello\n") {
  return {.message_id = std::move(message_id),
          .from = "no-reply@example.org",
          .to = "alice@example.org",
          .subject = "Flow 7 is ready",
          .text = std::move(text),
          .html = "<p>Hello</p>\n",
          .unsubscribe_url = std::nullopt,
          .date = *parse_rfc3339("2026-11-18T08:30:01.123456Z")};
}

SendOutcome send(FileTransport& transport, const Mail& mail) {
  return run_blocking(transport.send(mail));
}

std::set<std::string> names_in(const fs::path& directory) {
  std::set<std::string> out;
  for (const auto& entry : fs::directory_iterator(directory)) out.insert(entry.path().filename());
  return out;
}

std::string read_all(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

mode_t mode_of(const fs::path& path) {
  struct stat status{};
  EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
  return status.st_mode & 0777U;
}

TEST(file_transport, each_mail_becomes_a_private_file_that_sorts_by_time) {
  const test::TempDir dir;
  const auto folder = dir / "new" / "mail";
  FileTransport transport(folder);
  auto later = mail_with("0002@fencepost.example.org");
  later.date += std::chrono::microseconds(1);
  const auto first = mail_with("0193@fencepost.example.org");
  EXPECT_EQ(send(transport, first).result, SendResult::kSent);
  EXPECT_EQ(send(transport, later).result, SendResult::kSent);

  const std::string name = "20261118T083001.123456Z-0193@fencepost.example.org.eml";
  EXPECT_EQ(names_in(folder), (std::set<std::string>{name, "20261118T083001.123457Z-0002@fencepost.example.org.eml"}));
  EXPECT_EQ(read_all(folder / name), to_eml(first));
  EXPECT_EQ(mode_of(folder / name), 0600U);
  EXPECT_EQ(mode_of(folder), 0700U);
}

TEST(file_transport, the_same_mail_replaces_its_file) {
  const test::TempDir dir;
  FileTransport transport(dir.path());
  const auto mail = mail_with("0193@fencepost.example.org");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(send(transport, mail).result, SendResult::kSent);
  EXPECT_EQ(names_in(dir.path()), std::set<std::string>{eml_file_name(mail)});
}

TEST(file_transport, a_reader_never_sees_part_of_a_mail) {
  const test::TempDir dir;
  FileTransport transport(dir.path());
  const std::string line = "a line of a long mail\n";
  std::string text;
  while (text.size() < 200'000) text += line;
  const auto mail = mail_with("0193@fencepost.example.org", text);
  const auto whole = to_eml(mail).size();
  std::atomic<bool> done = false;
  std::set<std::size_t> seen;
  std::thread reader([&] {
    while (!done) {
      for (const auto& entry : fs::directory_iterator(dir.path())) {
        if (entry.path().extension() == ".eml") seen.insert(read_all(entry.path()).size());
      }
    }
  });
  for (int i = 0; i < 10; ++i) EXPECT_EQ(send(transport, mail).result, SendResult::kSent);
  done = true;
  reader.join();
  seen.insert(whole);
  EXPECT_EQ(seen, std::set<std::size_t>{whole});
}

TEST(file_transport, the_name_of_a_file_cannot_leave_the_folder) {
  const test::TempDir dir;
  FileTransport transport(dir / "mail");
  const std::string ids[] = {
      "../../evil@example.org", "a/b@example.org", "a_b@example.org", std::string(900, 'x') + "@example.org", "..",
      "a*b@example.org"};
  for (const auto& id : ids) EXPECT_EQ(send(transport, mail_with(id)).result, SendResult::kSent) << id;
  EXPECT_EQ(names_in(dir.path()), std::set<std::string>{"mail"});
  EXPECT_EQ(names_in(dir / "mail").size(), std::size(ids));
}

TEST(file_transport, a_folder_that_cannot_be_written_is_a_failure_of_the_transport) {
  const test::TempDir dir;
  const auto file = dir / "file";
  std::ofstream(file) << "not a folder";
  for (const auto& folder : {file, file / "below"}) {
    FileTransport transport(folder);
    const auto outcome = send(transport, mail_with("0193@fencepost.example.org"));
    EXPECT_EQ(outcome.result, SendResult::kNotSent);
    EXPECT_TRUE(outcome.transport_failed);
    EXPECT_THAT(outcome.detail, HasSubstr(folder.string()));
    EXPECT_THAT(outcome.detail, HasSubstr("Not a directory"));
  }
}

// Not by permissions, which do not stop root.
TEST(file_transport, a_file_that_cannot_be_written_is_a_failure_of_the_transport) {
  const test::TempDir dir;
  const auto mail = mail_with("0193@fencepost.example.org");
  fs::create_directory(dir / (eml_file_name(mail) + ".new"));
  FileTransport transport(dir.path());
  const auto outcome = send(transport, mail);
  EXPECT_EQ(outcome.result, SendResult::kNotSent);
  EXPECT_TRUE(outcome.transport_failed);
  EXPECT_THAT(outcome.detail, HasSubstr("Is a directory"));
}

TEST(file_transport, a_folder_that_disappears_is_made_again) {
  const test::TempDir dir;
  const auto folder = dir / "mail";
  FileTransport transport(folder);
  EXPECT_EQ(send(transport, mail_with("0193@fencepost.example.org")).result, SendResult::kSent);
  fs::remove_all(folder);
  EXPECT_EQ(send(transport, mail_with("0194@fencepost.example.org")).result, SendResult::kSent);
  EXPECT_EQ(names_in(folder).size(), 1U);
}

TEST(file_transport, an_unsafe_address_writes_nothing) {
  const test::TempDir dir;
  FileTransport transport(dir / "mail");
  auto mail = mail_with("0193@fencepost.example.org");
  mail.to = "a@example.org\r\nBcc: eve@example.org";
  EXPECT_THROW(send(transport, mail), Exception);
  EXPECT_FALSE(fs::exists(dir / "mail"));
}

TEST(file_transport, many_mails_at_once_are_all_written) {
  const test::TempDir dir;
  FileTransport transport(dir.path());
  std::vector<awaitable<SendOutcome>> sends;
  for (int i = 0; i < 50; ++i) sends.push_back(transport.send(mail_with(std::to_string(i) + "@example.org")));
  for (const auto& outcome : run_blocking(gather(std::move(sends)))) EXPECT_EQ(outcome.result, SendResult::kSent);
  EXPECT_EQ(names_in(dir.path()).size(), 50U);
}

}  // namespace
}  // namespace fencepost::notify

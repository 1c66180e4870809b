#include "cli/mail/mail_files.hpp"

#include <fstream>

#include <gtest/gtest.h>

#include "tests/support/temp_dir.hpp"

namespace fencepost::cli {
namespace {

std::string sent_at(const std::string& date) {
  MailFile file;
  file.mail.date = date;
  const auto at = file.sent_at();
  return at ? to_rfc3339(*at) : "none";
}

TEST(mail_files, the_date_of_a_mail_is_a_point_in_time) {
  EXPECT_EQ(sent_at("Wed, 18 Nov 2026 08:30:01 +0000"), "2026-11-18T08:30:01.000000Z");
  for (const auto* other :
       {"", "18 Nov 2026", "Wed, 18 Nov 2026 08:30:01 +0100", "Wed, 18 Nov 2026 08:30:01 +0000 x"}) {
    EXPECT_EQ(sent_at(other), "none") << other;
  }
}

TEST(mail_files, there_are_none_before_the_first_mail_makes_the_directory) {
  const test::TempDir dir("mail_files");
  for (const auto& directory : {dir / "none", dir.path()}) {
    const auto mails = read_mail_files(directory);
    ASSERT_TRUE(mails) << directory << mails.error().message;
    EXPECT_TRUE(mails->empty()) << directory;
  }
}

TEST(mail_files, a_directory_that_cannot_be_read_is_an_error) {
  const test::TempDir dir("mail_files");
  std::ofstream(dir / "file") << "x";
  const auto mails = read_mail_files(dir / "file");
  ASSERT_FALSE(mails);
  EXPECT_EQ(mails.error().code, "mails_unreadable");
  EXPECT_TRUE(mails.error().message.ends_with("/file\": Not a directory. Name another with --dir."))
      << mails.error().message;
}

}  // namespace
}  // namespace fencepost::cli

#include "notify/model/mail_header.hpp"

#include <gtest/gtest.h>

#include "base/text.hpp"

namespace fencepost::notify {
namespace {

TEST(mail_header, dates_are_in_utc) {
  const struct {
    std::string_view time;
    std::string_view date;
  } cases[] = {
      {"2026-11-18T08:30:01.999999Z", "Wed, 18 Nov 2026 08:30:01 +0000"},
      {"2024-02-29T23:59:59Z", "Thu, 29 Feb 2024 23:59:59 +0000"},
      {"2027-01-01T01:00:00+08:00", "Thu, 31 Dec 2026 17:00:00 +0000"},
      {"1970-01-01T00:00:00Z", "Thu, 01 Jan 1970 00:00:00 +0000"},
  };
  for (const auto& [time, date] : cases) EXPECT_EQ(header_date(*parse_rfc3339(time)), date) << time;
}

TEST(mail_header, ascii_text_that_fits_stays_readable) {
  EXPECT_EQ(header_text("Subject", "Flow 7 (ready): 100%"), "Subject: Flow 7 (ready): 100%\r\n");
  EXPECT_EQ(header_text("Subject", ""), "Subject: \r\n");
}

TEST(mail_header, text_that_a_reader_would_change_is_encoded) {
  const std::string_view cases[] = {"é", "=?UTF-8?B?eA==?=", " leading", "trailing "};
  for (const auto text : cases) {
    EXPECT_TRUE(header_text("Subject", text).starts_with("Subject: =?UTF-8?B?")) << quote(text);
  }
  EXPECT_TRUE(header_text("Subject", std::string(100, 'x')).starts_with("Subject: =?UTF-8?B?"));
}

TEST(mail_header, an_encoded_word_ends_between_characters) {
  // 13 characters of 3 bytes fill a word; the ASCII letter in front shifts the cut into a character.
  std::string text = "x";
  for (int i = 0; i < 14; ++i) text += "链";
  EXPECT_EQ(header_text("Subject", text),
            "Subject: =?UTF-8?B?eOmTvumTvumTvumTvumTvumTvumTvumTvumTvumTvumTvumTvg==?=\r\n"
            " =?UTF-8?B?6ZO+6ZO+?=\r\n");
}

}  // namespace
}  // namespace fencepost::notify

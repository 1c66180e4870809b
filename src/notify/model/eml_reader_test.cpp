#include "notify/model/eml_reader.hpp"

#include <gtest/gtest.h>

#include "notify/model/mail.hpp"

namespace fencepost::notify {
namespace {

Mail some_mail() {
  return {.message_id = "flow-12.0a1b@example.org",
          .from = "no-reply@example.org",
          .to = "a+b@example.com",
          .subject = "Ready: Treasury",
          .text = "one\n.two = three\n\nlast",
          .html = "<p>a=\"b\"</p>\n",
          .unsubscribe_url = {},
          .date = TimePoint(std::chrono::seconds(1'800'000'000))};
}

TEST(eml_reader, reads_back_what_was_written) {
  struct Case {
    std::string subject, text, html;
    std::optional<std::string> unsubscribe;
  };
  const std::string long_line(1000, 'x');
  const std::vector<Case> cases{
      {"Ready: Treasury", "one\n.two = three\n\nlast", "<p>a=\"b\"</p>\n", std::nullopt},
      {"可以执行：金库（" + std::string(80, 'y') + "）", "中文\n" + long_line, long_line + " \n", "https://a.b/c?d=e"},
      {"=?odd?=", "", "", "https://a.b/" + std::string(300, 'z')},
  };
  for (const auto& c : cases) {
    auto mail = some_mail();
    mail.subject = c.subject;
    mail.text = c.text;
    mail.html = c.html;
    mail.unsubscribe_url = c.unsubscribe;
    const auto read = read_eml(to_eml(mail));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->message_id, mail.message_id);
    EXPECT_EQ(read->from, mail.from);
    EXPECT_EQ(read->to, mail.to);
    EXPECT_EQ(read->subject, c.subject);
    EXPECT_EQ(read->text, c.text);
    EXPECT_EQ(read->html, c.html);
    EXPECT_EQ(read->unsubscribe_url, c.unsubscribe.value_or(""));
    EXPECT_EQ(read->date, "Fri, 15 Jan 2027 08:00:00 +0000");
  }
}

TEST(eml_reader, says_what_is_missing_in_other_files) {
  for (const std::string text : {"", "hello", "To: a@b.c\r\nMessage-ID: <x@y>\r\n\r\nhello"}) {
    const auto read = read_eml(text);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code, "bad_mail");
  }
}

}  // namespace
}  // namespace fencepost::notify

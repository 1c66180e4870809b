#include "notify/model/mail.hpp"

#include <functional>
#include <ranges>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/text.hpp"

namespace fencepost::notify {
namespace {

using testing::HasSubstr;
using testing::Not;

Mail simple_mail() {
  return {.message_id = "0193-1@fencepost.example.org",
          .from = "no-reply@example.org",
          .to = "alice@example.org",
          .subject = "Flow 7 is ready",
          .text = "Hello\n",
          .html = "<p>Hello</p>\n",
          .unsubscribe_url = std::nullopt,
          .date = *parse_rfc3339("2026-11-18T08:30:01.123456Z")};
}

// The boundary of a mail, without quotes.
std::string boundary_in(const std::string& eml) {
  const auto at = eml.find("boundary=\"") + 10;
  return eml.substr(at, eml.find('"', at) - at);
}

TEST(mail, is_multipart_with_text_before_html) {
  auto eml = to_eml(simple_mail());
  const auto boundary = boundary_in(eml);
  for (auto at = eml.find(boundary); at != std::string::npos; at = eml.find(boundary, at)) {
    eml.replace(at, boundary.size(), "=_BOUNDARY");
  }
  EXPECT_EQ(eml,
            "Date: Wed, 18 Nov 2026 08:30:01 +0000\r\n"
            "From: no-reply@example.org\r\n"
            "To: alice@example.org\r\n"
            "Subject: Flow 7 is ready\r\n"
            "Message-ID: <0193-1@fencepost.example.org>\r\n"
            "Auto-Submitted: auto-generated\r\n"
            "MIME-Version: 1.0\r\n"
            "Content-Type: multipart/alternative; boundary=\"=_BOUNDARY\"\r\n"
            "\r\n"
            "--=_BOUNDARY\r\n"
            "Content-Type: text/plain; charset=utf-8\r\n"
            "Content-Transfer-Encoding: quoted-printable\r\n"
            "\r\n"
            "Hello\r\n"
            "\r\n"
            "--=_BOUNDARY\r\n"
            "Content-Type: text/html; charset=utf-8\r\n"
            "Content-Transfer-Encoding: quoted-printable\r\n"
            "\r\n"
            "<p>Hello</p>\r\n"
            "\r\n"
            "--=_BOUNDARY--\r\n");
}

TEST(mail, the_same_mail_gives_the_same_bytes) {
  EXPECT_EQ(to_eml(simple_mail()), to_eml(simple_mail()));
}

TEST(mail, a_subject_outside_ascii_is_encoded_and_folded) {
  auto mail = simple_mail();
  mail.subject.clear();
  for (int i = 0; i < 60; ++i) mail.subject += "流程";
  const auto eml = to_eml(mail);
  EXPECT_THAT(eml, HasSubstr("\r\nSubject: =?UTF-8?B?"));
  EXPECT_THAT(eml, HasSubstr("?=\r\n =?UTF-8?B?"));
}

TEST(mail, every_line_is_short_ascii) {
  auto mail = simple_mail();
  mail.subject = std::string(200, 's') + "链";
  mail.text = std::string(2000, 'x') + " 链上的资金将被转移 😀\n";
  mail.html = "<p>" + std::string(2000, 'y') + "</p>";
  mail.unsubscribe_url = "https://fencepost.example.org/unsubscribe?token=01234567";
  for (const auto part : std::views::split(to_eml(mail), std::string_view("\r\n"))) {
    const std::string_view line(part);
    EXPECT_LE(line.size(), 76U) << line;
    for (const char c : line) EXPECT_TRUE(c >= ' ' && c <= '~') << quote(line);
  }
}

TEST(mail, one_click_unsubscription_is_offered_if_there_is_a_url) {
  auto mail = simple_mail();
  EXPECT_THAT(to_eml(mail), Not(HasSubstr("List-Unsubscribe")));
  mail.unsubscribe_url = "https://f.example/u?t=1";
  EXPECT_THAT(to_eml(mail), HasSubstr("\r\nList-Unsubscribe: <https://f.example/u?t=1>\r\n"
                                      "List-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n"));
}

TEST(mail, a_long_url_is_not_folded) {
  auto mail = simple_mail();
  mail.unsubscribe_url = "https://f.example/u?t=" + std::string(300, 'a');
  EXPECT_THAT(to_eml(mail), HasSubstr("\r\nList-Unsubscribe: <" + *mail.unsubscribe_url + ">\r\n"));
}

TEST(mail, a_boundary_in_the_text_is_no_boundary) {
  auto mail = simple_mail();
  mail.text = "--" + boundary_in(to_eml(mail)) + "--\n";
  EXPECT_THAT(to_eml(mail), HasSubstr("\r\n--=3D_"));
}

TEST(mail, bytes_that_are_not_utf8_are_replaced) {
  auto mail = simple_mail();
  mail.text = "a\xff b\n";
  EXPECT_THAT(to_eml(mail), HasSubstr("a=EF=BF=BD b\r\n"));
}

TEST(mail, values_that_would_add_headers_are_refused) {
  const struct {
    std::string_view what;
    std::function<void(Mail&)> change;
  } cases[] = {
      {"LF in From", [](Mail& m) { m.from = "a@example.org\nBcc: b@example.org"; }},
      {"no From", [](Mail& m) { m.from = ""; }},
      {"CRLF in To", [](Mail& m) { m.to = "a@example.org\r\nBcc:b@example.org"; }},
      {"CR in To", [](Mail& m) { m.to = "a@example.org\rx"; }},
      {"NUL in To", [](Mail& m) { m.to = std::string("a@example.org\0", 14); }},
      {"space in To", [](Mail& m) { m.to = "a b@example.org"; }},
      {"brackets in To", [](Mail& m) { m.to = "<a@example.org>"; }},
      {"two addresses in To", [](Mail& m) { m.to = "a@example.org,b@example.org"; }},
      {"display name in To", [](Mail& m) { m.to = "Alice<a@example.org>"; }},
      {"no @ in To", [](Mail& m) { m.to = "alice"; }},
      {"Chinese in To", [](Mail& m) { m.to = "链@example.org"; }},
      {"CRLF in the message id", [](Mail& m) { m.message_id = "1@x\r\nX-Y: z"; }},
      {"bracket in the message id", [](Mail& m) { m.message_id = "1@x>"; }},
      {"no message id", [](Mail& m) { m.message_id = ""; }},
      {"LF in the URL", [](Mail& m) { m.unsubscribe_url = "https://x/\nX-Y: z"; }},
      {"bracket in the URL", [](Mail& m) { m.unsubscribe_url = "https://x/>,<mailto:b@example.org"; }},
      {"space in the URL", [](Mail& m) { m.unsubscribe_url = "https://x/ y"; }},
      {"endless URL", [](Mail& m) { m.unsubscribe_url = "https://x/" + std::string(1000, 'a'); }},
      {"CRLF in the subject", [](Mail& m) { m.subject = "hello\r\nBcc: b@example.org"; }},
      {"CRLF in a Chinese subject", [](Mail& m) { m.subject = "你好\r\nBcc: b@example.org"; }},
      {"NUL in the subject", [](Mail& m) { m.subject = std::string("a\0b", 3); }},
  };
  for (const auto& [what, change] : cases) {
    auto mail = simple_mail();
    change(mail);
    try {
      const auto eml = to_eml(mail);
      ADD_FAILURE() << what << " became\n" << eml;
    } catch (const Exception& e) {
      EXPECT_EQ(e.error().code, "bad_mail") << what;
    }
  }
}

}  // namespace
}  // namespace fencepost::notify

#include "notify/model/mail_content.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.hpp"
#include "notify/page/flow_mail_test_support.hpp"
#include "notify/page/page.hpp"
#include "notify/page/text_wrap.hpp"

namespace fencepost::notify {
namespace {

using namespace std::chrono_literals;
using testing::flow_mail_input;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  std::size_t begin = 0;
  for (auto end = text.find('\n'); end != std::string::npos; begin = end + 1, end = text.find('\n', begin)) {
    out.push_back(text.substr(begin, end - begin));
  }
  EXPECT_EQ(begin, text.size()) << "the last line ends, too";
  return out;
}

// The runs of exactly six digits.
std::vector<std::string> six_digit_numbers(const std::string& text) {
  std::vector<std::string> out;
  std::string run;
  for (const char c : text + ' ') {
    if (c >= '0' && c <= '9') {
      run += c;
      continue;
    }
    if (run.size() == 6) out.push_back(run);
    run.clear();
  }
  return out;
}

// Everything in the input that strangers may choose.
FlowMailInput hostile_input(const std::string& evil, Language language) {
  auto input = flow_mail_input(language);
  input.remark = evil;
  input.chain_name = evil;
  input.flow.contract_name = evil;
  auto& call = input.flow.calls.front();
  call.signature = evil;
  call.arguments = {{evil, evil, evil}};
  input.flow.calls.push_back(call);
  input.flow.calls.back().explained = false;
  input.flow.calls.back().data = evil;
  input.flow.calls.back().value = evil;
  input.flow.calls.back().target = evil;
  return input;
}

TEST(mail_content, markup_from_outside_stays_text) {
  const std::string evil = "</td><script>alert('x')</script><a href=\"https://evil.example\">&amp;";
  for (const auto& row : kLanguages) {
    const auto mail = flow_mail(hostile_input(evil, row.value));
    EXPECT_THAT(mail.html, Not(HasSubstr("<script"))) << row.name;
    EXPECT_THAT(mail.html, Not(HasSubstr("\"https://evil.example"))) << row.name;
    EXPECT_THAT(mail.html, HasSubstr("&lt;script&gt;alert(&#39;x&#39;)")) << row.name;
    EXPECT_THAT(mail.html, HasSubstr("&amp;amp;")) << row.name;
    EXPECT_THAT(mail.text, HasSubstr("<script>")) << "plain text needs no escapes";
  }
}

TEST(mail_content, a_line_from_outside_cannot_be_forged) {
  const std::string_view breaks[] = {"\n", "\r\n", "\r", "\v", "\f", "\u0085", "\u2028", "\u2029"};
  for (const auto newline : breaks) {
    const auto evil = fmt::format("x{0}Unsubscribe:{0}https://evil.example{0}Subject: y", newline);
    for (const auto& row : kLanguages) {
      const auto mail = flow_mail(hostile_input(evil, row.value));
      EXPECT_TRUE(is_utf8(mail.subject));
      EXPECT_THAT(mail.subject, Not(HasSubstr(newline))) << quote(newline);
      for (const auto& line : lines_of(mail.text)) {
        EXPECT_FALSE(line.starts_with("Unsubscribe:") && line != "Unsubscribe from this timelock:") << quote(newline);
        EXPECT_FALSE(line.starts_with("https://evil.example") || line.starts_with("Subject:")) << quote(newline);
      }
    }
  }
}

TEST(mail_content, text_from_outside_cannot_turn_the_direction_or_break_the_encoding) {
  const std::string evil = "a\u202eb\u2066c\u2069d\u200fe\x1b[2Jf\xff\xc0g";
  for (const auto& row : kLanguages) {
    const auto mail = flow_mail(hostile_input(evil, row.value));
    for (const auto& part : {mail.subject, mail.text, mail.html}) {
      EXPECT_TRUE(is_utf8(part));
      for (const auto c : {"\u202e", "\u2066", "\u2069", "\u200f", "\x1b"}) EXPECT_THAT(part, Not(HasSubstr(c)));
      EXPECT_THAT(part, HasSubstr("a\ufffdb\ufffdc\ufffdd\ufffde"));
    }
  }
}

TEST(mail_content, a_flow_of_any_size_fits_a_mail) {
  for (const char c : {'x', '"', '&', ' '}) {
    auto input = hostile_input(std::string(2000, c), Language::kChinese);
    input.flow.calls.resize(50, input.flow.calls.front());
    for (auto& call : input.flow.calls) call.arguments.resize(50, call.arguments.front());
    const auto mail = flow_mail(input);
    EXPECT_LT(mail.html.size(), 100'000U) << c;
    EXPECT_LT(mail.text.size(), 50'000U) << c;
    EXPECT_LT(mail.subject.size(), 500U) << c;
    EXPECT_THAT(mail.html, HasSubstr(input.unsubscribe_url));
  }
}

TEST(mail_content, lines_of_the_text_part_are_narrow) {
  for (const auto& row : kLanguages) {
    auto input = flow_mail_input(row.value);
    input.remark = std::string(400, 'x') + " 很长的备注";
    input.flow.blocked_by = "0x" + std::string(64, '9');
    input.flow.calls.front().arguments[0].value = std::string(5000, 'y');
    for (const auto& line : lines_of(flow_mail(input).text)) {
      if (!line.starts_with("https://")) EXPECT_LE(columns_of(line), kTextColumns) << line;
    }
  }
}

TEST(mail_content, the_same_input_gives_the_same_bytes) {
  const auto first = flow_mail(flow_mail_input());
  const auto second = flow_mail(flow_mail_input());
  EXPECT_EQ(first.subject, second.subject);
  EXPECT_EQ(first.text, second.text);
  EXPECT_EQ(first.html, second.html);
}

TEST(mail_content, flow_mails_are_sane_in_the_dark) {
  const auto html = flow_mail(flow_mail_input()).html;
  EXPECT_THAT(html, HasSubstr("<meta name=\"color-scheme\" content=\"light dark\">"));
  EXPECT_THAT(html, HasSubstr("<meta name=\"supported-color-schemes\" content=\"light dark\">"));
  EXPECT_THAT(html, HasSubstr("@media (prefers-color-scheme:dark)"));
}

TEST(mail_content, the_code_stands_alone_and_is_the_only_number_of_six_digits) {
  const std::chrono::milliseconds lifetimes[] = {30s, 10min, 24h, 1000000s, std::chrono::days(10000)};
  for (int i = 0; i < 300; ++i) {
    const auto code = fmt::format("{:06}", i * 7919 % 1000000);
    const auto lifetime = lifetimes[static_cast<std::size_t>(i) % std::size(lifetimes)];
    for (const auto& row : kLanguages) {
      const auto mail = code_mail(code, lifetime, row.value);
      EXPECT_EQ(six_digit_numbers(mail.text), std::vector{code});
      EXPECT_EQ(std::ranges::count(lines_of(mail.text), code), 1) << mail.text;
      EXPECT_TRUE(six_digit_numbers(mail.subject).empty()) << mail.subject;
      EXPECT_THAT(mail.html, HasSubstr(">" + code + "<"));
    }
  }
}

TEST(mail_content, the_code_mail_says_how_long_the_code_is_valid_and_to_keep_it_secret) {
  const auto english = code_mail("048213", 10min, Language::kEnglish);
  EXPECT_THAT(english.text, HasSubstr("valid for 10 minutes."));
  EXPECT_THAT(english.text, HasSubstr("If you did not ask for it, ignore this mail"));
  EXPECT_THAT(english.text, HasSubstr("Never pass the code on."));
  const auto chinese = code_mail("048213", 90s, Language::kChinese);
  EXPECT_THAT(chinese.text, HasSubstr("1 分钟 30 秒内有效"));
  EXPECT_THAT(chinese.text, HasSubstr("请忽略此邮件"));
  EXPECT_THAT(chinese.text, HasSubstr("切勿将验证码转告他人"));
  EXPECT_THAT(chinese.html, HasSubstr("<html lang=\"zh-Hans\">"));
}

OperatorMailInput stuck() {
  return {.type = "TxStuck",
          .subject = "tx/0193",
          .at = *parse_rfc3339("2026-11-18T09:00:00Z"),
          .facts = {{"signer", "treasury"}, {"nonce", "4711"}},
          .advice = "Look at the transaction."};
}

TEST(mail_content, the_operator_mail_has_facts_and_advice) {
  const auto mail = operator_mail(stuck());
  EXPECT_EQ(mail.subject, "[Fencepost] TxStuck: tx/0193");
  const std::string_view parts[] = {"TxStuck\n=======\n", "Look at the transaction.\n",
                                    "Subject: tx/0193\n", "Time: 2026-11-18 09:00:00 UTC\n",
                                    "signer: treasury\n", "nonce: 4711\n"};
  for (const auto part : parts) EXPECT_THAT(mail.text, HasSubstr(std::string(part)));
  auto without = stuck();
  without.advice.clear();
  EXPECT_THAT(operator_mail(without).text, Not(HasSubstr("Look at")));
}

TEST(mail_content, the_operator_mail_is_bounded_and_escaped) {
  auto input = stuck();
  input.subject = "tx/\n<b>" + std::string(1000, 'x');
  input.facts.assign(1000, {"<i>\n", std::string(10'000, '<')});
  const auto mail = operator_mail(input);
  EXPECT_LE(mail.subject.size(), 160U);
  EXPECT_THAT(mail.subject, Not(HasSubstr("\n")));
  EXPECT_THAT(mail.html, Not(HasSubstr("<b>")));
  EXPECT_THAT(mail.html, Not(HasSubstr("<i>")));
  EXPECT_THAT(mail.text, HasSubstr("950 more facts are not shown here."));
  EXPECT_LT(mail.text.size(), 100'000U);
}

}  // namespace
}  // namespace fencepost::notify

// What an independent reader of mail, the parser of Python, reads back from our text.
#include <fstream>

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

#include "notify/model/mail.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temp_dir.hpp"

namespace fencepost::notify {
namespace {

// Reports defects too: the parser accepts much, and lists what it had to forgive.
constexpr auto kReader = R"(
import email, email.policy, json, sys
mail = email.message_from_binary_file(open(sys.argv[1], "rb"), policy=email.policy.default)
parts = list(mail.iter_parts())
def text(part):
    return part.get_payload(decode=True).decode("utf-8").replace("\r\n", "\n")
print(json.dumps({
    "headers": [name for name in mail.keys()],
    "subject": mail["subject"], "from": mail["from"], "to": mail["to"], "messageId": mail["message-id"],
    "date": mail["date"].datetime.isoformat(), "unsubscribe": mail["list-unsubscribe"],
    "type": mail.get_content_type(), "types": [part.get_content_type() for part in parts],
    "text": text(parts[0]), "html": text(parts[1]),
    "defects": [str(d) for m in mail.walk() for d in m.defects] +
               [str(d) for value in mail.values() for d in value.defects],
}))
)";

boost::json::object read_by_python(const Mail& mail) {
  const test::TempDir dir("eml");
  const auto file = dir / "mail.eml";
  std::ofstream(file, std::ios::binary) << to_eml(mail);
  const auto read = test::run_command({"/usr/bin/python3", "-c", kReader, file});
  EXPECT_TRUE(read.status.success()) << read.err;
  return boost::json::parse(read.out).as_object();
}

Mail mail_with(std::string subject, std::string text, std::string html) {
  return {.message_id = "0193-1@fencepost.example.org",
          .from = "no-reply@example.org",
          .to = "alice@example.org",
          .subject = std::move(subject),
          .text = std::move(text),
          .html = std::move(html),
          .unsubscribe_url = "https://fencepost.example.org/unsubscribe?token=" + std::string(200, 'a'),
          .date = *parse_rfc3339("2026-11-18T08:30:01.123456Z")};
}

TEST(mail_reader, reads_back_exactly_what_was_written) {
  const std::string long_line(2000, 'x');
  std::string long_chinese;
  for (int i = 0; i < 300; ++i) long_chinese += "流程将在两天后执行😀";
  const Mail mails[] = {
      mail_with("Flow 7 is ready", "Hello\n", "<p>Hello</p>\n"),
      mail_with("时间锁：流程 7 已就绪", "你好，\n流程已就绪。\n", "<p>你好</p>"),
      mail_with(long_chinese.substr(0, 19 * 31), long_chinese + "\n", long_chinese),
      mail_with("long", long_line + "\n" + long_line + " \n", "<p>" + long_line + "</p>"),
      mail_with(std::string(300, 's'), ".\n..\n.a\n", "=\n=3D\n=_\n"),
      mail_with(" spaces around ", "trailing \t \n\n\n \nFrom here\n", "no newline at the end"),
      mail_with("=?UTF-8?B?eA==?=", "--=_x\n--=_x--\n", ""),
      mail_with("", "", ""),
  };
  for (const auto& mail : mails) {
    const auto read = read_by_python(mail);
    EXPECT_EQ(read.at("subject").as_string(), mail.subject);
    EXPECT_EQ(read.at("text").as_string(), mail.text);
    EXPECT_EQ(read.at("html").as_string(), mail.html);
    EXPECT_EQ(read.at("from").as_string(), mail.from);
    EXPECT_EQ(read.at("to").as_string(), mail.to);
    EXPECT_EQ(read.at("messageId").as_string(), "<" + mail.message_id + ">");
    EXPECT_EQ(read.at("unsubscribe").as_string(), "<" + *mail.unsubscribe_url + ">");
    EXPECT_EQ(read.at("date").as_string(), "2026-11-18T08:30:01+00:00");
    EXPECT_EQ(read.at("type").as_string(), "multipart/alternative");
    EXPECT_EQ(read.at("types"), (boost::json::array{"text/plain", "text/html"}));
    EXPECT_EQ(read.at("defects"), boost::json::array()) << mail.subject;
  }
}

}  // namespace
}  // namespace fencepost::notify

#include "timelock/model/calendar.hpp"

#include <algorithm>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.hpp"

namespace fencepost::timelock {
namespace {

using testing::HasSubstr;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = text.find("\r\n", begin);
    EXPECT_NE(end, std::string::npos) << "a line does not end with CRLF";
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 2;
  }
  return lines;
}

TEST(calendar, writes_one_event_for_each_entry) {
  const auto text = calendar_text({{.uid = "a@fencepost",
                                    .at = 1'767'225'600,
                                    .changed_at = 1'763'423'145,
                                    .summary = "Treasury ready",
                                    .description = "d"}});
  EXPECT_THAT(text, HasSubstr("BEGIN:VEVENT\r\nUID:a@fencepost\r\nDTSTAMP:20251117T234545Z\r\n"
                              "DTSTART:20260101T000000Z\r\nSUMMARY:Treasury ready\r\n"));
  EXPECT_TRUE(text.starts_with("BEGIN:VCALENDAR\r\nVERSION:2.0\r\n"));
  EXPECT_TRUE(text.ends_with("END:VEVENT\r\nEND:VCALENDAR\r\n"));
}

TEST(calendar, escapes_what_would_end_a_value) {
  const auto text = calendar_text(
      {{.uid = "u", .at = 0, .changed_at = 0, .summary = "a,b;c\\d\r\nBEGIN:VEVENT", .description = "tab\there"}});
  EXPECT_THAT(text, HasSubstr("SUMMARY:a\\,b\\;c\\\\d\\nBEGIN:VEVENT\r\n"));
  EXPECT_THAT(text, HasSubstr("DESCRIPTION:tabhere\r\n"));
  const auto lines = lines_of(text);
  EXPECT_EQ(std::ranges::count(lines, "BEGIN:VEVENT"), 1);
}

TEST(calendar, folds_lines_at_75_octets_between_characters) {
  std::string summary;
  for (int i = 0; i < 200; ++i) summary += i % 3 == 0 ? "€" : "x";
  const auto lines = lines_of(
      calendar_text({{.uid = "u", .at = 0, .changed_at = 0, .summary = summary, .description = std::string(75, 'y')}}));
  std::string unfolded;
  for (const auto& line : lines) {
    EXPECT_LE(line.size(), 75U) << line;
    EXPECT_TRUE(is_utf8(line)) << "a character is split";
    unfolded += line.starts_with(" ") ? line.substr(1) : "\n" + line;
  }
  EXPECT_THAT(unfolded, HasSubstr("\nSUMMARY:" + summary + "\n"));
  EXPECT_THAT(unfolded, HasSubstr("\nDESCRIPTION:" + std::string(75, 'y') + "\n"));
}

}  // namespace
}  // namespace fencepost::timelock

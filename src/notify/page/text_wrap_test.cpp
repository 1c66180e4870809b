#include "notify/page/text_wrap.hpp"

#include <gtest/gtest.h>

#include "base/text.hpp"

namespace fencepost::notify {
namespace {

TEST(text_wrap, a_chinese_character_takes_two_columns) {
  EXPECT_EQ(columns_of(""), 0U);
  EXPECT_EQ(columns_of("abc…"), 4U);
  EXPECT_EQ(columns_of("时间锁：x"), 9U);
}

TEST(text_wrap, lines_break_where_a_reader_expects_it) {
  const struct {
    std::string_view text, lines;
  } cases[] = {
      {"", "\n"},
      {"one two", "one two\n"},
      {"one two three", "one two\nthree\n"},
      {"exactly 10", "exactly 10\n"},
      {"exactly 10 x", "exactly 10\nx\n"},
      {"abcdefghijklmno", "abcdefghij\nklmno\n"},
      {"a bcdefghijklmno", "a\nbcdefghijk\nlmno\n"},
      {"时间锁已完成下列调用", "时间锁已完\n成下列调用\n"},
      {"时间锁已完，成", "时间锁已\n完，成\n"},  // no comma at the beginning of a line
      {"时间锁已（完）", "时间锁已\n（完）\n"},  // no bracket at its end
      {"链 0x12345 的", "链 0x12345\n的\n"},
  };
  for (const auto& [text, lines] : cases) EXPECT_EQ(wrapped(text, 10, 0), lines) << quote(text);
}

TEST(text_wrap, later_lines_are_indented) {
  EXPECT_EQ(wrapped("one two three four", 9, 2), "one two\n  three\n  four\n");
  EXPECT_EQ(wrapped("  abcdefghijkl", 10, 2), "  abcdefgh\n  ijkl\n") << "no empty line before a long word";
}

TEST(text_wrap, no_character_is_lost_and_no_line_is_too_long) {
  const std::string_view piece = "The 时间锁, (0x1234) 可执行。 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa ";
  std::string text;
  for (int i = 0; i < 20; ++i) text += piece.substr(0, piece.size() - (i % 2 == 0 ? 0 : 5));
  text = repair_utf8(text);
  for (std::size_t columns = 4; columns < 60; ++columns) {
    const auto lines = wrapped(text, columns, 0);
    std::string kept;
    std::size_t begin = 0;
    for (auto end = lines.find('\n'); end != std::string::npos; begin = end + 1, end = lines.find('\n', begin)) {
      const auto line = lines.substr(begin, end - begin);
      EXPECT_LE(columns_of(line), columns) << quote(line);
      kept += line;
    }
    std::string without_spaces = text;
    std::erase(without_spaces, ' ');
    std::erase(kept, ' ');
    EXPECT_EQ(kept, without_spaces) << columns;
  }
}

}  // namespace
}  // namespace fencepost::notify

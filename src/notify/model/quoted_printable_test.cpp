#include "notify/model/quoted_printable.hpp"

#include <ranges>

#include <gtest/gtest.h>

#include "base/text.hpp"

namespace fencepost::notify {
namespace {

TEST(quoted_printable, encodes_what_mail_would_change) {
  const struct {
    std::string_view text;
    std::string_view encoded;
  } cases[] = {
      {"", ""},
      {"plain text.\n", "plain text.\r\n"},
      {"no newline", "no newline"},
      {"1 + 1 = 2\n", "1 + 1 =3D 2\r\n"},
      {"ends with a space \n", "ends with a space=20\r\n"},
      {"ends with a tab\t", "ends with a tab=09"},
      {"two  inside\tstay\n", "two  inside\tstay\r\n"},
      {"  \n", " =20\r\n"},
      {"\r\n", "=0D\r\n"},
      {"a\rb", "a=0Db"},
      {std::string_view("\0\x7f", 2), "=00=7F"},
      {"ü", "=C3=BC"},
      {"链\n", "=E9=93=BE\r\n"},
      {"\n\n", "\r\n\r\n"},
      {".\n", ".\r\n"},
  };
  for (const auto& [text, encoded] : cases) EXPECT_EQ(to_quoted_printable(text), encoded) << quote(text);
}

TEST(quoted_printable, breaks_long_lines_and_no_character) {
  const std::string_view characters[] = {"x", " ", "=", "é", "链", "😀"};
  for (const auto character : characters) {
    std::string text;
    for (int i = 0; i < 500; ++i) text += character;
    const auto encoded = to_quoted_printable(text + "\n");
    for (const auto part : std::views::split(encoded, std::string_view("\r\n"))) {
      const std::string_view line(part);
      EXPECT_LE(line.size(), 76U) << quote(character);
      EXPECT_FALSE(line.ends_with(' ')) << quote(character);
      const auto shown = line.ends_with('=') ? line.substr(0, line.size() - 1) : line;
      const auto unit = to_quoted_printable(std::string(character) + "x").size() - 1;
      if (shown.ends_with("=20")) continue;  // the last of the spaces
      EXPECT_EQ(shown.size() % unit, 0U) << quote(character) << " was split: " << line;
    }
  }
}

TEST(quoted_printable, a_line_of_76_characters_needs_no_more_than_one_soft_break) {
  const std::string text(75, 'x');
  EXPECT_EQ(to_quoted_printable(text), text);
  EXPECT_EQ(to_quoted_printable(text + "y"), text + "=\r\ny");
}

TEST(quoted_printable, can_be_read_back) {
  for (const std::string text : {"", "plain", "a = b\n", "trailing \n", "é链😀\n\n", "=3D"}) {
    EXPECT_EQ(from_quoted_printable(to_quoted_printable(text)), text);
    const auto longer = text + std::string(200, 'x') + text;
    EXPECT_EQ(from_quoted_printable(to_quoted_printable(longer)), longer);
  }
  EXPECT_EQ(from_quoted_printable("a=zz="), "a=zz=");
}

}  // namespace
}  // namespace fencepost::notify

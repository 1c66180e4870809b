#include "notify/page/line.hpp"

#include <gtest/gtest.h>

namespace fencepost::notify {
namespace {

TEST(line, placeholders_may_come_in_any_order_and_repeat) {
  const struct {
    std::string_view phrase, text;
  } cases[] = {
      {"", ""},         {"plain", "plain"}, {"{0}", "A"},         {"{1} before {0}.", "B before A."},
      {"{0}{0}", "AA"}, {"{0", "{0"},       {"{x} {}", "{x} {}"}, {"{2} stays", "{2} stays"},
      {"{{0}}", "{A}"},
  };
  for (const auto& [phrase, text] : cases) EXPECT_EQ(fill_text(phrase, {"A", "B"}), text) << phrase;
}

TEST(line, what_is_filled_in_is_not_searched_for_placeholders) {
  EXPECT_EQ(fill_text("{0} {1}", {"{1}", "B"}), "{1} B");
  const Line expected{words("{1}").front(), words(" ").front(), mono("B").front()};
  EXPECT_EQ(fill("{0} {1}", {words("{1}"), mono("B")}), expected);
}

TEST(line, pieces_keep_their_looks) {
  const auto line = fill("a {0} b {1}", {mono("x"), strong("y")});
  ASSERT_EQ(line.size(), 4U);
  EXPECT_FALSE(line[0].mono || line[0].strong);
  EXPECT_TRUE(line[1].mono);
  EXPECT_TRUE(line[3].strong);
}

TEST(line, a_link_needs_a_web_url) {
  EXPECT_EQ(linked(mono("x"), "https://example.org").front().url, "https://example.org");
  EXPECT_EQ(linked(mono("x"), "javascript:alert(1)"), mono("x"));
  EXPECT_EQ(linked(mono("x"), ""), mono("x"));
}

}  // namespace
}  // namespace fencepost::notify

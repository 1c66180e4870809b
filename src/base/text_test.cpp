#include "base/text.hpp"

#include <array>

#include <gtest/gtest.h>

namespace fencepost {
namespace {

TEST(text, quotes_and_escapes_what_could_mislead) {
  struct Case {
    std::string_view text;
    std::string_view expected;
  };
  using namespace std::string_view_literals;
  const Case cases[] = {
      {"plain", R"("plain")"},
      {"", R"("")"},
      {"a\"b\\c", R"("a\"b\\c")"},
      {"line\nforged\r\t", R"("line\nforged\r\t")"},
      {"nul\0esc\x1b[31m"sv, R"("nul\x00esc\x1b[31m")"},
      {"\x7f", R"("\x7f")"},
      {"größe 你好", R"("größe 你好")"},
      {"\xc2\x9b"
       "31m",
       R"("\xc2\x9b31m")"},
      {"\xff\xfe", R"("\xff\xfe")"},
      {"\xc0\xaf", R"("\xc0\xaf")"},
      {"\xed\xa0\x80", R"("\xed\xa0\x80")"},
      {"cut \xe4\xbd", R"("cut \xe4\xbd")"},
  };
  for (const auto& c : cases) EXPECT_EQ(quote(c.text), c.expected) << c.expected;
}

TEST(text, quotes_at_most_max_bytes_and_never_half_a_character) {
  EXPECT_EQ(quote(std::string(64, 'x')), '"' + std::string(64, 'x') + '"');
  EXPECT_EQ(quote(std::string(65, 'x')), '"' + std::string(64, 'x') + "…\"");
  EXPECT_EQ(quote("aé", 2), "\"a…\"");
  EXPECT_EQ(quote("aé", 3), "\"aé\"");
}

TEST(text, repairs_broken_utf8_and_leaves_the_rest_alone) {
  EXPECT_EQ(repair_utf8("größe 你好 \n"), "größe 你好 \n");
  EXPECT_EQ(repair_utf8("a\xff"
                        "b\xe4\xbd"),
            "a\xef\xbf\xbd"
            "b\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(repair_utf8(""), "");
}

TEST(text, plain_text_is_one_line_of_limited_length) {
  EXPECT_EQ(plain_text("größe\n\t你好", 64), "größe  你好");
  EXPECT_EQ(plain_text(std::string_view("a\0b\x1b[31m\x7f", 9), 64), "a b [31m ");
  EXPECT_EQ(plain_text("a\xc2\x85z", 64), "a z");
  EXPECT_EQ(plain_text("bad \xff", 64), "bad \xef\xbf\xbd");
  EXPECT_EQ(plain_text(std::string(10, 'x'), 10), std::string(10, 'x'));
  EXPECT_EQ(plain_text(std::string(11, 'x'), 10), std::string(7, 'x') + "…");
  EXPECT_EQ(plain_text("ééééééé", 8), "éé…");
}

TEST(text, finds_the_word_that_was_meant) {
  constexpr std::array<std::string_view, 4> kWords{"duration", "renew_interval", "enabled", "id"};
  EXPECT_EQ(nearest("duraton", kWords), "duration");
  EXPECT_EQ(nearest("druation", kWords), "duration");
  EXPECT_EQ(nearest("renewInterval", kWords), "renew_interval");
  EXPECT_EQ(nearest("di", kWords), "id");
  EXPECT_EQ(nearest("zzz", kWords), std::nullopt);
  EXPECT_EQ(nearest("", kWords), std::nullopt);
  EXPECT_EQ(nearest(std::string(65, 'd'), kWords), std::nullopt);
  EXPECT_EQ(did_you_mean("enable", kWords), "; did you mean \"enabled\"?");
  EXPECT_EQ(did_you_mean("password", kWords), "");
}

TEST(text, lists_alternatives_as_a_sentence_would) {
  constexpr std::array<std::string_view, 3> kWords{"a", "b", "c"};
  EXPECT_EQ(one_of_list(kWords), "a, b or c");
  EXPECT_EQ(one_of_list(std::span(kWords).first(2)), "a or b");
  EXPECT_EQ(one_of_list(std::span(kWords).first(1)), "a");
}

TEST(text, lowercases_ascii_letters_only) {
  EXPECT_EQ(lowercase("0xABCDEF-ghi Z@[É"), "0xabcdef-ghi z@[É");
  EXPECT_TRUE(equal_ignoring_case("Content-Type", "content-TYPE"));
  EXPECT_FALSE(equal_ignoring_case("Content-Type", "Content-Typ"));
  EXPECT_FALSE(equal_ignoring_case("@", "`"));
}

TEST(text, utf8_is_checked_strictly) {
  for (const auto* good : {"", "plain", "\u00e9\u20ac\U0001f600", "\U0010ffff"}) EXPECT_TRUE(is_utf8(good)) << good;
  for (const auto* bad :
       {"\x80", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "a\xff"}) {
    EXPECT_FALSE(is_utf8(bad)) << quote(bad);
  }
}

}  // namespace
}  // namespace fencepost

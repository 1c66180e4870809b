#include "notify/page/safe_text.hpp"

#include <gtest/gtest.h>

#include "base/text.hpp"

namespace fencepost::notify {
namespace {

TEST(safe_text, nothing_from_outside_breaks_a_line_or_turns_its_direction) {
  const struct {
    std::string_view text, safe;
  } cases[] = {
      {"", ""},
      {"Treasury 金库 €", "Treasury 金库 €"},
      {"a\r\nb\tc", "a  b c"},
      {std::string_view("a\0b", 3), "a b"},
      {"a\x1b[31m\x7f", "a [31m "},
      {"a\u0085b\u009fc", "a b c"},
      {"a\u2028b\u2029c", "a b c"},
      {"a\u202eb\u202ac\u2066d\u2069e", "a\ufffdb\ufffdc\ufffdd\ufffde"},
      {"a\u200eb\u200fc\u061cd", "a\ufffdb\ufffdc\ufffdd"},
      {"a\xff\xc3", "a\ufffd\ufffd"},
      {"\u202f\u2065\u206a", "\u202f\u2065\u206a"},  // the neighbours of the range stay
  };
  for (const auto& [text, safe] : cases) EXPECT_EQ(one_line(text), safe) << quote(text);
}

TEST(safe_text, a_cut_is_between_characters) {
  EXPECT_EQ(first_bytes("链上", 6), "链上");
  EXPECT_EQ(first_bytes("链上", 5), "链");
  EXPECT_EQ(first_bytes("链上", 2), "");
  EXPECT_EQ(shortened("链上时间锁", 5), "链上时间锁");
  EXPECT_EQ(shortened("链上时间锁", 4), "链上时…");
  EXPECT_EQ(shortened("a\nb", 3), "a b");
}

TEST(safe_text, a_hash_is_shortened_in_the_middle) {
  EXPECT_EQ(short_hex("0x6d903f6003cca6255d85cca4d3b5e5146dc33925"), "0x6d90…3925");
  EXPECT_EQ(short_hex("0x1234567890a"), "0x1234567890a");
  EXPECT_EQ(short_hex("0x1234567890ab"), "0x1234…90ab");
}

TEST(safe_text, digits_are_in_groups_of_three) {
  const struct {
    std::size_t number;
    std::string_view text;
  } cases[] = {{0, "0"}, {999, "999"}, {1000, "1,000"}, {123456, "123,456"}, {1234567, "1,234,567"}};
  for (const auto& [number, text] : cases) EXPECT_EQ(grouped(number), text);
}

TEST(safe_text, only_plain_web_urls_become_links) {
  const std::string_view good[] = {"https://etherscan.io/tx/0x1", "http://127.0.0.1:8080/a?b=c&d=%20#e",
                                   "HTTPS://EXAMPLE.ORG"};
  for (const auto url : good) EXPECT_TRUE(is_web_url(url)) << url;
  const std::string_view bad[] = {"",
                                  "example.org",
                                  "javascript:alert(1)",
                                  "data:text/html,x",
                                  "ftp://example.org",
                                  "//example.org",
                                  " https://example.org",
                                  "https://example.org/a b",
                                  "https://example.org/\"onclick=\"x",
                                  "https://example.org/<b>",
                                  "https://example.org/\n",
                                  "https://example.org/\u202e"};
  for (const auto url : bad) EXPECT_FALSE(is_web_url(url)) << quote(url);
}

}  // namespace
}  // namespace fencepost::notify

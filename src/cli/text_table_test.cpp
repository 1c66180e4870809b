#include "cli/text_table.hpp"

#include <gtest/gtest.h>

namespace fencepost::cli {
namespace {

TEST(text_table, columns_are_as_wide_as_their_widest_cell) {
  TextTable table({"A", "LONG NAME", "C"});
  EXPECT_TRUE(table.empty());
  table.add({"1", "2", "3"});
  table.add({"wide one", "", ""});
  EXPECT_FALSE(table.empty());
  EXPECT_EQ(table.text(),
            "A         LONG NAME  C\n"
            "1         2          3\n"
            "wide one\n");
}

TEST(text_table, the_least_important_columns_go_first) {
  TextTable table({"ID", {"TO", 1}, {"AT", 2}, "STATE"});
  table.add({"12345", "somewhere", "noon", "done"});
  const struct {
    std::size_t width;
    const char* text;
  } cases[] = {
      {29, "ID     TO         AT    STATE\n12345  somewhere  noon  done\n"},
      {28, "ID     TO         STATE\n12345  somewhere  done\n"},
      {23, "ID     TO         STATE\n12345  somewhere  done\n"},
      {22, "ID     AT    STATE\n12345  noon  done\n"},  // a narrow one fits where a wider one does not
      {17, "ID     STATE\n12345  done\n"},
      {12, "ID     STATE\n12345  done\n"},
  };
  for (const auto& c : cases) EXPECT_EQ(table.text(c.width), c.text) << c.width;
}

TEST(text_table, cells_are_shortened_to_keep_other_columns) {
  TextTable table({"ID", {"WHY", 2, 6}, {"AT", 1}});
  table.add({"12345", "a long reason", "noon"});
  EXPECT_EQ(table.text(26), "ID     WHY            AT\n12345  a long reason  noon\n");
  EXPECT_EQ(table.text(20), "ID     WHY      AT\n12345  a long…  noon\n");
  EXPECT_EQ(table.text(19), "ID     WHY     AT\n12345  a lon…  noon\n");
  EXPECT_EQ(table.text(18), "ID     AT\n12345  noon\n");
}

TEST(text_table, words_are_wrapped_under_the_value_and_long_ones_stay_whole) {
  EXPECT_EQ(wrapped("fix  one two three", 12, 5), "fix  one two\n     three");
  EXPECT_EQ(wrapped("fix  0x123456789 two", 12, 5), "fix  0x123456789\n     two");
  EXPECT_EQ(wrapped("fix  one", kFullWidth, 5), "fix  one");
  FactList facts;
  facts.add("error", "one two three");
  EXPECT_EQ(facts.text(14), "error  one two\n       three\n");
}

TEST(text_table, when_no_column_can_go_the_widest_cells_are_shortened) {
  TextTable table({"ID", "STATE"});
  table.add({"0x1234567890", "waiting"});
  EXPECT_EQ(table.text(16), "ID       STATE\n0x1234…  waiting\n");
  EXPECT_EQ(table.text(13), "ID     STATE\n0x12…  waiti…\n") << "the widest first, then both";
  EXPECT_EQ(table.text(1), "ID    STA…\n0x1…  wai…\n") << "no terminal is that narrow";
}

TEST(text_table, characters_count_not_bytes) {
  TextTable table({"A", "B"});
  table.add({"a…b", "x"});
  table.add({"abcd", "y"});
  EXPECT_EQ(table.text(),
            "A     B\n"
            "a…b   x\n"
            "abcd  y\n");
}

TEST(text_table, a_wide_character_takes_two_columns) {
  EXPECT_EQ(columns_of("漢字"), 4U);
  EXPECT_EQ(columns_of("e\u0301"), 1U) << "a combining accent";
  EXPECT_EQ(columns_of("\xff\x80"), 1U);
  EXPECT_EQ(shortened("漢字漢字", 5), "漢字…");
  EXPECT_EQ(shortened("漢字漢字", 4), "漢…") << "half a character does not fit";
  TextTable table({"A", "B"});
  table.add({"漢字", "x"});
  table.add({"abcd", "y"});
  EXPECT_EQ(table.text(),
            "A     B\n"
            "漢字  x\n"
            "abcd  y\n");
}

TEST(text_table, control_characters_are_removed) {
  EXPECT_EQ(printable("a\x1b[2Jb\n\x7f"), "a [2Jb  ");
  EXPECT_EQ(printable("a\xc2\x9b"
                      "31mb"),
            "a 31mb");
  EXPECT_EQ(printable("\xff"), "\xEF\xBF\xBD");
  EXPECT_EQ(printable("Zürich ▸"), "Zürich ▸");
  TextTable table({"A"});
  table.add({"\x1b[31m"});
  EXPECT_EQ(table.text(), "A\n [31m\n");
}

TEST(text_table, long_text_is_cut_at_a_character) {
  EXPECT_EQ(shortened("abc", 3), "abc");
  EXPECT_EQ(shortened("abcd", 3), "ab…");
  EXPECT_EQ(shortened("äöüß", 3), "äö…");
  EXPECT_EQ(short_hex("0x70997970c51812dc3a010c7d01b50e0d17dc79c8"), "0x70997970…79c8");
  EXPECT_EQ(short_hex("0x7099"), "0x7099");
}

TEST(fact_list, leaves_out_what_is_not_known) {
  FactList facts;
  facts.add("state", "TRACKING");
  facts.add("error", "");
  facts.add("request id", "a\nb");
  EXPECT_EQ(facts.text(),
            "state       TRACKING\n"
            "request id  a b\n");
}

}  // namespace
}  // namespace fencepost::cli

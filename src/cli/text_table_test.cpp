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

TEST(text_table, characters_count_not_bytes) {
  TextTable table({"A", "B"});
  table.add({"a…b", "x"});
  table.add({"abcd", "y"});
  EXPECT_EQ(table.text(),
            "A     B\n"
            "a…b   x\n"
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

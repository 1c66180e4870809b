#include "notify/page/page.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fencepost::notify {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Page sample() {
  Page page;
  page.language = "en";
  page.colon = ": ";
  page.title = "Title";
  page.preheader = "In short";
  page.badge = {"Ready", Tone::kAction};
  page.headline = "Headline";
  page.paragraphs = {fill("See {0}.", {linked(mono("0x12"), "https://example.org/0x12")})};
  page.actions = {{"Open", "https://example.org/open"}, {"Look", "https://example.org/look"}};
  page.sections = {{"Facts", {{"Name", strong("Value")}}, {words("A note.")}}};
  page.footer = {words("Why.")};
  page.footer_actions = {{"Stop", "https://example.org/stop"}};
  return page;
}

TEST(page, text_part_reads_from_top_to_bottom) {
  EXPECT_EQ(text_of(sample()),
            "Headline\n"
            "========\n"
            "\n"
            "See 0x12.\n"
            "\n"
            "Open:\n"
            "https://example.org/open\n"
            "\n"
            "Look:\n"
            "https://example.org/look\n"
            "\n"
            "Facts\n"
            "-----\n"
            "Name: Value\n"
            "A note.\n"
            "\n"
            "----\n"
            "Why.\n"
            "\n"
            "Stop:\n"
            "https://example.org/stop\n");
}

TEST(page, html_has_structure_for_readers_of_all_kinds) {
  const auto html = html_of(sample());
  const std::string_view parts[] = {
      "<!doctype html>",
      "<html lang=\"en\">",
      "<meta charset=\"utf-8\">",
      "<meta name=\"viewport\"",
      "<meta name=\"color-scheme\" content=\"light dark\">",
      "<meta name=\"supported-color-schemes\" content=\"light dark\">",
      "@media (prefers-color-scheme:dark)",
      "@media (max-width:480px)",
      "<title>Title</title>",
      ">In short</div>",
      ">Ready</span>",
      ">Headline</h1>",
      ">Facts</h2>",
      "<th scope=\"row\"",
      "<strong>Value</strong>",
      "href=\"https://example.org/0x12\"",
      "href=\"https://example.org/open\"",
      ">Stop</a>",
      "word-break:break-all",
  };
  for (const auto part : parts) EXPECT_THAT(html, HasSubstr(std::string(part)));
}

TEST(page, html_loads_nothing) {
  const auto html = html_of(sample());
  const std::string_view parts[] = {"<script", "<img", "<link", "url(", "@import", "src=", "<form"};
  for (const auto part : parts) EXPECT_THAT(html, Not(HasSubstr(std::string(part))));
}

TEST(page, the_preheader_is_hidden) {
  const auto html = html_of(sample());
  const auto at = html.find(">In short</div>");
  const auto tag = html.substr(html.rfind('<', at), at - html.rfind('<', at));
  EXPECT_THAT(tag, HasSubstr("display:none"));
}

TEST(page, every_class_that_changes_in_the_dark_is_in_use) {
  auto page = sample();
  page.code = "123";
  const auto html = html_of(page);
  const auto body = html.substr(html.find("<body"));
  for (const std::string_view name : {"g", "c", "t", "m", "a", "r", "b", "q", "l", "v", "p"}) {
    EXPECT_THAT(html, HasSubstr("." + std::string(name) + (name == "l" ? "," : "{"))) << name;
    EXPECT_THAT(body, ::testing::ContainsRegex("class=\"([a-z] )*" + std::string(name) + "[ \"]")) << name;
  }
}

TEST(page, text_from_outside_is_escaped_everywhere) {
  const std::string evil = "<b onclick=\"x\">&'\u202e\n";
  const std::string escaped = "&lt;b onclick=&quot;x&quot;&gt;&amp;&#39;\ufffd ";
  auto page = sample();
  page.title = page.preheader = page.badge.text = page.headline = page.code = page.language = evil;
  page.paragraphs = {words(evil), mono(evil), strong(evil), linked(words(evil), "https://example.org")};
  page.actions = {{evil, "https://example.org"}};
  page.form_button = evil;
  page.sections = {{evil, {{evil, words(evil)}}, {words(evil)}}};
  page.footer = {words(evil)};
  page.footer_actions = {{evil, "https://example.org"}};
  const auto html = html_of(page);
  EXPECT_THAT(html, Not(HasSubstr("<b ")));
  EXPECT_THAT(html, Not(HasSubstr("\u202e")));
  std::size_t count = 0;
  for (auto at = html.find(escaped); at != std::string::npos; at = html.find(escaped, at + 1)) ++count;
  EXPECT_EQ(count, 18U);
  EXPECT_THAT(text_of(page), Not(HasSubstr("\u202e")));
}

TEST(page, a_link_that_is_no_web_url_is_not_rendered) {
  auto page = sample();
  page.paragraphs = {{Piece{.text = "x", .mono = false, .strong = false, .url = "javascript:alert(1)"}}};
  page.actions = {{"Open", "javascript:alert(2)"}, {"Nothing", ""}};
  page.footer_actions = {{"Stop", "https://example.org/\"x"}};
  for (const auto& part : {html_of(page), text_of(page)}) {
    EXPECT_THAT(part, Not(HasSubstr("javascript")));
    EXPECT_THAT(part, Not(HasSubstr("Open")));
    EXPECT_THAT(part, Not(HasSubstr("Nothing")));
    EXPECT_THAT(part, Not(HasSubstr("Stop")));
  }
}

TEST(page, the_first_action_that_has_a_link_stands_out) {
  auto page = sample();
  page.actions = {{"Open", ""}, {"Look", "https://example.org/look"}};
  EXPECT_THAT(html_of(page), HasSubstr("<a class=\"k\" href=\"https://example.org/look\""));
}

TEST(page, a_web_page_may_have_a_button) {
  auto page = sample();
  page.form_button = "Stop it";
  const auto html = html_of(page);
  EXPECT_THAT(html, HasSubstr("<form method=\"post\""));
  EXPECT_THAT(html, HasSubstr(">Stop it</button>"));
  EXPECT_LT(html.find("</button>"), html.find(">Facts</h2>"));
}

TEST(page, size_of_a_section_is_what_it_adds) {
  auto page = sample();
  const auto before = html_of(page).size();
  const Section more{"More", {{"a", mono("<&>")}}, {words("note")}};
  page.sections.push_back(more);
  EXPECT_EQ(html_of(page).size(), before + html_size(more));
}

}  // namespace
}  // namespace fencepost::notify

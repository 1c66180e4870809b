#include "cli/answer_text.hpp"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

namespace fencepost::cli {
namespace {

namespace json = boost::json;

TEST(answer_text, finds_members_and_numbers_of_any_spelling) {
  const auto answer = json::parse(R"({"state": "TRACKING", "nonce": 7, "gas": "21000", "error": null,
    "payload": {"to": "0x3c"}, "receipt": {"blockNumber": "0x10"}, "big": "0xffffffffffffffffffff", "less": -1})");
  EXPECT_EQ(text_at(answer, "payload.to"), "0x3c");
  EXPECT_EQ(text_at(answer, "payload.nothing.below"), "");
  EXPECT_EQ(text_at(answer, "error"), "");
  EXPECT_EQ(text_at(answer, "nonce"), "7");
  EXPECT_EQ(text_at(answer, "state.x"), "");
  EXPECT_EQ(int_at(answer, "receipt.blockNumber"), 16);
  EXPECT_EQ(int_at(answer, "nonce"), 7);
  EXPECT_EQ(int_at(answer, "gas"), 21000);
  EXPECT_EQ(int_at(answer, "state"), std::nullopt);
  EXPECT_EQ(int_at(answer, "big"), std::nullopt);
  EXPECT_EQ(int_at(answer, "less"), std::nullopt);
}

TEST(answer_text, shows_times_for_people) {
  const auto answer = json::parse(R"({"at": "2026-11-15T19:45:18.123456Z", "never": null})");
  EXPECT_EQ(when(answer, "at"), "2026-11-15 19:45:18");
  EXPECT_EQ(when(answer, "at", kToMilliseconds), "2026-11-15 19:45:18.123");
  EXPECT_EQ(when_utc(answer, "at"), "2026-11-15 19:45:18 UTC");
  EXPECT_EQ(when_utc(answer, "never"), "");
}

TEST(answer_text, a_page_without_items_has_none) {
  EXPECT_EQ(items_of(json::parse(R"({"items": [1, 2]})")).size(), 2U);
  for (const auto* odd : {"{}", "null", "[1]", R"({"items": 5})"}) {
    EXPECT_TRUE(items_of(json::parse(odd)).empty()) << odd;
  }
}

}  // namespace
}  // namespace fencepost::cli

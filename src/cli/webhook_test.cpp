#include "cli/webhook.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

namespace fencepost::cli {
namespace {

namespace json = boost::json;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(WebhookText, details_show_the_secret_once_and_leave_out_what_is_empty) {
  const auto text = webhook_details(json::parse(
      R"({"id": "1", "url": "https://a/", "state": "active", "types": ["TxConfirmed", "TxFailed"], "batch": 0,
          "lastError": null, "secret": "whsec_x"})"));
  EXPECT_THAT(text, HasSubstr("TxConfirmed, TxFailed"));
  EXPECT_THAT(text, HasSubstr("whsec_x"));
  EXPECT_THAT(text, Not(HasSubstr("batch")));
  EXPECT_THAT(text, Not(HasSubstr("last error")));
}

TEST(WebhookText, tables_take_any_answer) {
  const auto items =
      json::parse(R"([{"id": "1", "seq": "7", "status": null, "error": "down\u001b[2J"}, {}, 5])").as_array();
  for (const auto& table : {webhook_table(items), delivery_table(items), dead_letter_table(items)}) {
    EXPECT_EQ(std::ranges::count(table, '\n'), 4);
    EXPECT_THAT(table, Not(HasSubstr("\x1b")));
  }
}

}  // namespace
}  // namespace fencepost::cli

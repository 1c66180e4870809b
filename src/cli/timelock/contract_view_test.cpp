#include "cli/timelock/contract_view.hpp"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

namespace fencepost::cli {
namespace {

namespace json = boost::json;

constexpr auto kTimelock = R"({
  "chainId": 1, "address": "0x6d903f6003cca6255d85cca4d3b5e5146dc33925", "standard": "compound", "remark": "treasury",
  "delay": "172800", "gracePeriod": "1209600", "admin": "0xc0da02939e1441f497fd74f78ce7decb17b66529",
  "pendingAdmin": null,
  "history": {"complete": false, "fromBlock": 100, "toBlock": 300, "nextBlock": 190, "progress": 0.45, "error": null},
  "scan": {"block": 310, "clock": "2026-11-15T19:45:18.000000Z", "clockStalled": true, "failingSince": null,
           "error": null},
  "createdAt": "2026-11-15T19:00:00.000000Z"
})";

TEST(timelock_contract_view, one_contract_is_shown_in_full) {
  EXPECT_EQ(timelock_details(json::parse(kTimelock)),
            "contract       0x6d903f6003cca6255d85cca4d3b5e5146dc33925\n"
            "chain          1\n"
            "standard       compound\n"
            "remark         treasury\n"
            "delay          172800 s (2d)\n"
            "grace period   1209600 s (14d)\n"
            "admin          0xc0da02939e1441f497fd74f78ce7decb17b66529\n"
            "history        45%, block 190 of 300\n"
            "scanned        block 310, chain time 2026-11-15 19:45:18 UTC (the chain's clock stands still)\n"
            "watched since  2026-11-15 19:00:00 UTC\n");
}

TEST(timelock_contract_view, the_table_has_a_line_for_each) {
  EXPECT_EQ(timelock_table({json::parse(kTimelock)}),
            "CONTRACT                                    CHAIN  STANDARD  DELAY          HISTORY  SCANNED  REMARK    "
            "ERROR\n"
            "0x6d903f6003cca6255d85cca4d3b5e5146dc33925  1      compound  172800 s (2d)  45%      310      treasury\n");
}

TEST(timelock_contract_view, the_bar_is_full_only_when_the_history_is_complete) {
  HistoryProgress history{.percent = 45, .from_block = "100", .next_block = "190", .to_block = "300", .error = ""};
  EXPECT_EQ(history_bar(history), "[#############.................]  45%  block 190 of 300");
  auto almost = json::parse(kTimelock);
  almost.at("history").at("progress") = 0.9999;
  EXPECT_EQ(history_of(almost).percent, 99);
  almost.at("history").at("complete") = true;
  EXPECT_EQ(history_of(almost).percent, 100);
  EXPECT_EQ(history_progress_text(history_of(almost)), "complete, blocks 100 to 300");
}

TEST(timelock_contract_view, an_error_is_cut_so_that_the_bar_stays_one_line) {
  HistoryProgress history{.percent = 0, .next_block = "1", .to_block = "2", .error = std::string(200, 'e')};
  const auto bar = history_bar(history);
  EXPECT_TRUE(bar.ends_with("e…")) << bar;
  EXPECT_LE(bar.size(), 79 + 2U);  // "…" is three bytes and one column
}

TEST(timelock_contract_view, seconds_of_any_size) {
  EXPECT_EQ(seconds_text("100"), "100 s");
  EXPECT_EQ(seconds_text("115792089237316195423570985008687907853269984665640564039457584007913129639935"),
            "115792089237316195423570985008687907853269984665640564039457584007913129639935 s");
  EXPECT_EQ(seconds_text(""), "");
}

TEST(timelock_contract_view, any_json_is_survived) {
  for (const auto* text : {"{}", "null", "[]", R"({"history": 1, "scan": "x", "delay": {}})"}) {
    EXPECT_NO_THROW(timelock_details(json::parse(text))) << text;
    EXPECT_NO_THROW(timelock_table({json::parse(text)})) << text;
  }
}

}  // namespace
}  // namespace fencepost::cli

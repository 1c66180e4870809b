#include "cli/tx/progress.hpp"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

namespace fencepost::cli {
namespace {

namespace json = boost::json;

std::string plain(std::string_view tx, std::string_view chains = "{}") {
  auto progress = read_progress(json::parse(tx));
  add_chain(progress, json::parse(chains), 1);
  return progress_line(progress, Paint::kPlain);
}

constexpr auto kChains = R"({"items": [
    {"chainId": 2, "head": {"number": 999}, "confirmationsRequired": "1"},
    {"chainId": 1, "head": {"number": 103}, "confirmationsRequired": "20"}]})";

TEST(tx_progress, shows_where_it_is_on_its_way) {
  EXPECT_EQ(plain(R"({"state": "CREATED", "subState": null})"), "[CREATED] ▸ ALLOCATED ▸ TRACKING ▸ mined ▸ CONFIRMED");
  EXPECT_EQ(plain(R"({"state": "ALLOCATED"})"), "[ALLOCATED] ▸ TRACKING ▸ mined ▸ CONFIRMED");
  EXPECT_EQ(plain(R"({"state": "ALLOCATED", "subState": "insufficient_funds"})"),
            "[ALLOCATED insufficient_funds] ▸ TRACKING ▸ mined ▸ CONFIRMED");
  EXPECT_EQ(plain(R"({"state": "TRACKING", "firstSubmittedAt": "x"})"), "ALLOCATED ▸ [TRACKING] ▸ mined ▸ CONFIRMED");
  EXPECT_EQ(plain(R"({"state": "CONFIRMED", "firstSubmittedAt": "x", "receipt": {"blockNumber": "0x64"}})"),
            "ALLOCATED ▸ TRACKING ▸ mined ▸ [CONFIRMED]");
}

TEST(tx_progress, counts_the_blocks_on_top) {
  const auto* mined = R"({"state": "TRACKING", "subState": "mined", "receipt": {"blockNumber": "0x64"}})";
  EXPECT_EQ(plain(mined, kChains), "ALLOCATED ▸ TRACKING ▸ [mined 3/20] ▸ CONFIRMED");
  EXPECT_EQ(plain(mined), "ALLOCATED ▸ TRACKING ▸ [mined] ▸ CONFIRMED");
  EXPECT_EQ(plain(mined, R"({"items": [{"chainId": 1, "head": null, "confirmationsRequired": "finalized"}]})"),
            "ALLOCATED ▸ TRACKING ▸ [mined, not yet finalized] ▸ CONFIRMED");
  // The head may come from an endpoint that lags behind.
  EXPECT_EQ(plain(mined, R"({"items": [{"chainId": 1, "head": {"number": 7}, "confirmationsRequired": "20"}]})"),
            "ALLOCATED ▸ TRACKING ▸ [mined 0/20] ▸ CONFIRMED");
}

TEST(tx_progress, a_stuck_or_failed_transaction_shows_its_stage_and_reason) {
  EXPECT_EQ(plain(R"({"state": "STUCK", "subState": "insufficient_funds"})"), "ALLOCATED ▸ [STUCK insufficient_funds]");
  EXPECT_EQ(plain(R"({"state": "STUCK", "subState": null, "firstSubmittedAt": "x"})"),
            "ALLOCATED ▸ TRACKING ▸ [STUCK]");
  EXPECT_EQ(plain(R"({"state": "FAILED_FINAL", "subState": "reverted", "receipt": {"blockNumber": 5}})"),
            "ALLOCATED ▸ TRACKING ▸ mined ▸ [FAILED_FINAL reverted]");
  EXPECT_EQ(plain(R"({"state": "FAILED_FINAL", "firstSubmittedAt": "x",
                      "subState": "nonce_consumed_elsewhere_by_another"})"),
            "ALLOCATED ▸ TRACKING ▸ [FAILED_FINAL nonce_consumed_elsewher…]");
}

TEST(tx_progress, is_final_when_confirmed_or_failed) {
  EXPECT_TRUE(read_progress(json::parse(R"({"state": "CONFIRMED"})")).final());
  EXPECT_TRUE(read_progress(json::parse(R"({"state": "FAILED_FINAL"})")).final());
  EXPECT_FALSE(read_progress(json::parse(R"({"state": "STUCK"})")).final());
  EXPECT_FALSE(read_progress(json::parse("{}")).final());
}

TEST(tx_progress, colour_marks_the_place_without_brackets) {
  auto progress = read_progress(json::parse(R"({"state": "TRACKING"})"));
  EXPECT_EQ(
      progress_line(progress, Paint::kColor),
      "\x1b[32mALLOCATED\x1b[0m ▸ \x1b[1m\x1b[32mTRACKING\x1b[0m ▸ \x1b[2mmined\x1b[0m ▸ \x1b[2mCONFIRMED\x1b[0m");
}

TEST(tx_progress, a_narrow_terminal_gets_fewer_stages) {
  auto progress = read_progress(json::parse(R"({"state": "TRACKING", "receipt": {"blockNumber": 5}})"));
  const auto at = [&](std::size_t width) { return progress_line(progress, Paint::kPlain, width); };
  EXPECT_EQ(at(42), "ALLOCATED ▸ TRACKING ▸ [mined] ▸ CONFIRMED");
  EXPECT_EQ(at(41), "TRACKING ▸ [mined] ▸ CONFIRMED");
  EXPECT_EQ(at(20), "[mined] ▸ CONFIRMED");
  EXPECT_EQ(at(10), "[mined]");
  progress.reverted = true;
  EXPECT_EQ(at(80), "ALLOCATED ▸ TRACKING ▸ [reverted] ▸ CONFIRMED");
  EXPECT_EQ(at(8), "[rever…]");
}

TEST(tx_progress, a_step_on_a_narrow_terminal_loses_its_author_then_the_end_of_its_reason) {
  const auto step = json::parse(R"({"at": "2026-11-15T19:45:18.123456Z", "to": "TRACKING", "node": "a-1",
                                    "fencingToken": 12, "why": "accepted by the chain"})");
  EXPECT_EQ(step_line(step, Paint::kPlain, 70),
            "19:45:18.123  TRACKING                  accepted by the chain  a-1 #12");
  EXPECT_EQ(step_line(step, Paint::kPlain, 68), "19:45:18.123  TRACKING                  accepted by the chain");
  EXPECT_EQ(step_line(step, Paint::kPlain, 50), "19:45:18.123  TRACKING                  accepted …");
}

TEST(tx_progress, a_step_is_one_line_with_its_time_and_author) {
  EXPECT_EQ(step_line(json::parse(R"({"at": "2026-11-15T19:45:18.123456Z", "from": "ALLOCATED", "to": "TRACKING",
                                      "subState": null, "node": "a-1", "fencingToken": 12, "why": "broadcast"})"),
                      Paint::kPlain),
            "19:45:18.123  TRACKING                  broadcast  a-1 #12");
  EXPECT_EQ(step_line(json::parse(R"({"at": "x", "to": "STUCK", "subState": "nonce_taken", "node": "n",
                                      "fencingToken": null, "why": "a\u001b[2Jb\nc"})"),
                      Paint::kPlain),
            "x  STUCK (nonce_taken)       a [2Jb c  n");
}

}  // namespace
}  // namespace fencepost::cli

#include "cli/tx/follow.hpp"

#include <deque>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

#include "cli/exit_code.hpp"

namespace fencepost::cli {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;
using testing::ElementsAre;

// Each round of a watch sees the next of these; the last stays.
struct Scene {
  std::string tx;
  std::string history = "[]";
  std::optional<Error> error = std::nullopt;
};

class ScriptedApi final : public Api {
 public:
  explicit ScriptedApi(std::vector<Scene> scenes) : scenes_(scenes.begin(), scenes.end()) {}

  Result<json::value> get(const std::string& target, std::chrono::milliseconds) override {
    asked.push_back(target);
    if (target == "/api/v1/chains") {
      return json::parse(R"({"items": [{"chainId": 1, "head": {"number": 12}, "confirmationsRequired": "20"}]})");
    }
    if (target.ends_with("/history")) return json::parse(fmt::format(R"({{"items": {}}})", current_.history));
    if (!scenes_.empty()) {
      current_ = scenes_.front();
      scenes_.pop_front();
    }
    time += 1s;
    if (current_.error) return fail(*current_.error);
    return json::parse(current_.tx);
  }
  Result<json::value> post(const std::string&, const json::value&, bool) override {
    return fail(internal("unexpected", "following changes nothing"));
  }

  std::vector<std::string> asked;
  std::chrono::steady_clock::time_point time;

 private:
  std::deque<Scene> scenes_;
  Scene current_;
};

struct Seen {
  Result<int> code;
  std::string output;
};

Seen follow(ScriptedApi& api, const TxFollowOptions& options = {}) {
  std::string output;
  const PollWorld world{.api = api,
                        .print = [&](std::string_view text) { output += text; },
                        .now = [&] { return api.time; },
                        .sleep = [&](std::chrono::milliseconds pause) { api.time += pause; }};
  auto code = follow_tx(world, "t", options);
  return {std::move(code), std::move(output)};
}

constexpr auto kAccepted = R"({"at": "2026-11-15T19:45:18.100000Z", "to": "ALLOCATED", "node": "a",
                               "fencingToken": 1, "why": "accepted"})";
constexpr auto kSent = R"({"at": "2026-11-15T19:45:18.200000Z", "to": "TRACKING", "node": "a",
                           "fencingToken": 1, "why": "broadcast"})";
constexpr auto kAllocated = R"({"txId": "t", "chainId": 1, "state": "ALLOCATED"})";
constexpr auto kTracking = R"({"txId": "t", "chainId": 1, "state": "TRACKING", "firstSubmittedAt": "x"})";
constexpr auto kMined = R"({"txId": "t", "chainId": 1, "state": "TRACKING", "firstSubmittedAt": "x",
                            "subState": "mined", "receipt": {"blockNumber": "0xa"}})";
constexpr auto kConfirmed = R"({"txId": "t", "chainId": 1, "state": "CONFIRMED"})";
constexpr auto kFailed = R"({"txId": "t", "chainId": 1, "state": "FAILED_FINAL", "subState": "reverted"})";

std::string list(std::initializer_list<const char*> steps) {
  return fmt::format("[{}]", fmt::join(steps, ","));
}

TEST(tx_follow, shows_each_step_once_and_ends_when_it_is_confirmed) {
  ScriptedApi api({{kAllocated, list({kAccepted})},
                   {kAllocated, list({kAccepted})},
                   {kTracking, list({kAccepted, kSent})},
                   {kMined, list({kAccepted, kSent})},
                   {kConfirmed, list({kAccepted, kSent})}});
  const auto seen = follow(api);
  EXPECT_EQ(seen.code, kExitDone);
  EXPECT_EQ(seen.output,
            "19:45:18.100  ALLOCATED                 accepted  a #1\n"
            "19:45:18.200  TRACKING                  broadcast  a #1\n");
  EXPECT_THAT(api.asked, ElementsAre("/api/v1/tx/t", "/api/v1/tx/t/history",                            //
                                     "/api/v1/tx/t?wait=submitted&timeout=1s", "/api/v1/tx/t/history",  //
                                     "/api/v1/tx/t?wait=submitted&timeout=1s", "/api/v1/tx/t/history",  //
                                     "/api/v1/tx/t?wait=mined&timeout=1s", "/api/v1/tx/t/history",      //
                                     "/api/v1/tx/t?wait=confirmed&timeout=1s", "/api/v1/tx/t/history"));
}

TEST(tx_follow, redraws_the_progress_on_a_terminal) {
  ScriptedApi api({{kMined, list({kSent})}, {kConfirmed, list({kSent})}});
  const auto seen = follow(api, {.timeout = {}, .live = true});
  EXPECT_EQ(seen.output,
            "\r\x1b[K19:45:18.200  TRACKING                  broadcast  a #1\n"
            "\r\x1b[KALLOCATED ▸ TRACKING ▸ [mined 2/20] ▸ CONFIRMED"
            "\r\x1b[KALLOCATED ▸ TRACKING ▸ mined ▸ [CONFIRMED]\n");
}

TEST(tx_follow, a_failed_transaction_sets_the_exit_code) {
  ScriptedApi api({{kFailed}});
  EXPECT_EQ(follow(api).code, kExitFailedForGood);
}

TEST(tx_follow, stops_at_an_earlier_goal_or_at_the_end_before_it) {
  ScriptedApi mined({{kTracking}, {kMined}});
  EXPECT_EQ(follow(mined, {.goal = TxGoal::kMined, .timeout = {}}).code, kExitDone);
  ScriptedApi submitted({{kAllocated}, {kTracking}});
  EXPECT_EQ(follow(submitted, {.goal = TxGoal::kSubmitted, .timeout = {}}).code, kExitDone);
  ScriptedApi failed({{kAllocated}, {kFailed}});
  EXPECT_EQ(follow(failed, {.goal = TxGoal::kSubmitted, .timeout = {}}).code, kExitFailedForGood);
}

TEST(tx_follow, a_revert_counts_as_soon_as_it_is_mined_if_that_was_the_goal) {
  constexpr auto kReverted = R"({"txId": "t", "chainId": 1, "state": "TRACKING", "firstSubmittedAt": "x",
                                 "subState": "mined", "receipt": {"blockNumber": "0xa", "status": "0x0"},
                                 "error": "the shop is\u0007 closed"})";
  ScriptedApi mined({{kTracking}, {kReverted}});
  const auto seen = follow(mined, {.goal = TxGoal::kMined, .timeout = {}});
  EXPECT_EQ(seen.code, kExitFailedForGood);
  EXPECT_EQ(seen.output, "reverted in block 10: the shop is  closed\n");
  ScriptedApi submitted({{kReverted}});
  EXPECT_EQ(follow(submitted, {.goal = TxGoal::kSubmitted, .timeout = {}}).code, kExitDone);
  ScriptedApi reorged({{kReverted}, {kConfirmed}});
  EXPECT_EQ(follow(reorged, {.timeout = {}}).code, kExitDone) << "a reorg may move it to a block where it succeeds";
  ScriptedApi succeeded({{kMined}});
  EXPECT_EQ(follow(succeeded, {.goal = TxGoal::kMined, .timeout = {}}).code, kExitDone);
}

TEST(tx_follow, says_why_the_transaction_failed) {
  ScriptedApi with_reason({{R"({"state": "FAILED_FINAL", "subState": "reverted", "error": "closed"})"}});
  EXPECT_EQ(follow(with_reason).output, "FAILED_FINAL (reverted): closed\n");
  ScriptedApi without({{kFailed}});
  EXPECT_EQ(follow(without).output, "FAILED_FINAL (reverted)\n");
}

TEST(tx_follow, gives_up_when_the_time_is_over) {
  ScriptedApi api({{kTracking}});
  EXPECT_EQ(follow(api, {.timeout = 3500ms}).code, kExitNotYet);
  EXPECT_EQ(api.asked[api.asked.size() - 2], "/api/v1/tx/t?wait=mined&timeout=500ms");
}

TEST(tx_follow, retries_an_unreachable_server_for_a_limited_time) {
  const auto away = unavailable("connect_failed", "no connection");
  ScriptedApi back({{kTracking}, {"", "[]", away}, {"", "[]", away}, {kConfirmed}});
  EXPECT_EQ(follow(back).code, kExitDone);
  ScriptedApi gone({{kTracking}, {"", "[]", away}});
  const auto seen = follow(gone);
  ASSERT_FALSE(seen.code.has_value());
  EXPECT_EQ(seen.code.error().code, "connect_failed");
  EXPECT_GE(gone.time.time_since_epoch(), 60s);
  EXPECT_LE(gone.time.time_since_epoch(), 70s);
}

TEST(tx_follow, a_transaction_that_is_not_there_is_an_error_at_once) {
  ScriptedApi api({{"", "[]", not_found("no_such_tx", "there is no such transaction")}});
  EXPECT_EQ(follow(api).code.error().code, "no_such_tx");
  EXPECT_EQ(api.asked.size(), 1U);
}

TEST(tx_follow, for_scripts_every_line_is_a_document) {
  ScriptedApi api({{kTracking, list({kSent})}, {kConfirmed, list({kSent})}});
  const auto seen = follow(api, {.timeout = {}, .json = true});
  std::istringstream in(seen.output);
  std::vector<json::value> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(json::parse(line));
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].at("step").at("to").as_string(), "TRACKING");
  EXPECT_EQ(lines[1].at("tx").at("state").as_string(), "CONFIRMED");
}

}  // namespace
}  // namespace fencepost::cli

#include "cli/transfer/follow.hpp"

#include <deque>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/json/serialize.hpp>

#include "cli/exit_code.hpp"

namespace fencepost::cli {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

// Each look sees the next of these; the last stays.
class ScriptedApi final : public Api {
 public:
  explicit ScriptedApi(std::deque<Result<json::value>> scenes) : scenes_(std::move(scenes)) {}

  Result<json::value> get(const std::string& target, std::chrono::milliseconds) override {
    EXPECT_EQ(target, "/t");
    ++looks;
    auto scene = scenes_.front();
    if (scenes_.size() > 1) scenes_.pop_front();
    return scene;
  }
  Result<json::value> post(const std::string&, const json::value&, bool) override {
    return fail(internal("unexpected", "following changes nothing"));
  }

  int looks = 0;
  std::chrono::steady_clock::time_point time;

 private:
  std::deque<Result<json::value>> scenes_;
};

struct Seen {
  Result<int> code;
  std::string output;
};

Seen follow(ScriptedApi& api, const TransferFollowOptions& options = {}) {
  std::string output;
  const PollWorld world{.api = api,
                        .print = [&](std::string_view text) { output += text; },
                        .now = [&] { return api.time; },
                        .sleep = [&](std::chrono::milliseconds pause) { api.time += pause; }};
  auto code = follow_transfer(world, "/t", options);
  return {std::move(code), std::move(output)};
}

json::value at(const char* status) {
  return {{"status", status}, {"retryCount", 1}, {"updatedAt", "2026-11-15T19:45:20.500000Z"}};
}

TEST(transfer_follow, shows_each_change_once_and_ends_when_it_is_completed) {
  ScriptedApi api({at("checking"), at("checking"), at("approved"), at("completed")});
  const auto seen = follow(api);
  EXPECT_EQ(seen.code, kExitDone);
  EXPECT_EQ(seen.output,
            "19:45:20.500  checking   retry 1\n"
            "19:45:20.500  approved\n"
            "19:45:20.500  completed\n");
  EXPECT_EQ(api.time.time_since_epoch(), 50ms + 100ms + 200ms);
}

TEST(transfer_follow, a_rejected_transfer_sets_the_exit_code) {
  ScriptedApi api({at("checking"), at("rejected")});
  EXPECT_EQ(follow(api).code, kExitFailedForGood);
}

TEST(transfer_follow, gives_up_when_the_time_is_over) {
  ScriptedApi api({at("checking")});
  EXPECT_EQ(follow(api, {.timeout = 2500ms}).code, kExitNotYet);
  EXPECT_EQ(api.time.time_since_epoch(), 2500ms);
  EXPECT_EQ(api.looks, 7) << "0, 50, 150, 350, 750, 1550 and 2500 ms";
}

TEST(transfer_follow, retries_an_unreachable_server_but_not_a_transfer_not_found) {
  ScriptedApi back({at("checking"), fail(unavailable("connect_failed", "no connection")), at("completed")});
  EXPECT_EQ(follow(back).code, kExitDone);
  ScriptedApi unknown({fail(not_found("no_such_transfer", "there is no such transfer"))});
  EXPECT_EQ(follow(unknown).code.error().code, "no_such_transfer");
  EXPECT_EQ(unknown.looks, 1);
}

TEST(transfer_follow, for_scripts_every_line_is_the_document) {
  ScriptedApi api({at("checking"), at("completed")});
  EXPECT_EQ(follow(api, {.timeout = {}, .json = true}).output,
            fmt::format("{}\n{}\n", json::serialize(at("checking")), json::serialize(at("completed"))));
}

}  // namespace
}  // namespace fencepost::cli

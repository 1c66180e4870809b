#include "cli/transfer/follow.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/json/serialize.hpp>

#include "cli/exit_code.hpp"
#include "cli/poll_test_support.hpp"

namespace fencepost::cli {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

using testing::ScriptedApi;

testing::Seen follow(ScriptedApi& api, const TransferFollowOptions& options = {}) {
  return testing::seen(api, follow_transfer, options);
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

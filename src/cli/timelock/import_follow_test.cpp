#include "cli/timelock/import_follow.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

#include "cli/exit_code.hpp"
#include "cli/poll_test_support.hpp"

namespace fencepost::cli {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

using testing::ScriptedApi;

testing::Seen follow(ScriptedApi& api, const ImportFollowOptions& options = {}) {
  return testing::seen(api, follow_import, options);
}

json::value at(int percent, const char* error = nullptr) {
  json::value out = json::parse(fmt::format(
      R"({{"history": {{"complete": {}, "fromBlock": 0, "toBlock": 99, "nextBlock": {}, "progress": {}}}}})",
      percent == 100, percent, percent / 100.0));
  if (error != nullptr) out.at("history").as_object()["error"] = error;
  return out;
}

TEST(timelock_import_follow, prints_a_line_for_every_tenth_and_ends_when_complete) {
  ScriptedApi api({at(3), at(4), at(12), at(18), at(55), at(100)});
  const auto seen = follow(api);
  EXPECT_EQ(seen.code, kExitDone);
  EXPECT_EQ(seen.output,
            "history 3%, block 3 of 99\n"
            "history 12%, block 12 of 99\n"
            "history 55%, block 55 of 99\n"
            "history complete, blocks 0 to 99\n");
}

TEST(timelock_import_follow, a_failing_scan_is_shown_once_and_waited_for) {
  ScriptedApi api({at(3), at(3, "quota\n"), at(3, "quota\n"), at(100)});
  EXPECT_EQ(follow(api).output,
            "history 3%, block 3 of 99\n"
            "retrying: quota \n"
            "history complete, blocks 0 to 99\n");
}

TEST(timelock_import_follow, a_scan_that_was_halted_ends_it) {
  auto halted = at(3, "a topic is missing");
  halted.as_object()["haltedAtBlock"] = 7;
  ScriptedApi api({at(3), halted});
  const auto seen = follow(api);
  EXPECT_EQ(seen.code, kExitFailed);
  EXPECT_EQ(seen.output, "history 3%, block 3 of 99\nhalted at block 7: a topic is missing\n");
}

TEST(timelock_import_follow, a_terminal_gets_a_bar_in_one_line) {
  ScriptedApi api({at(50), at(100)});
  EXPECT_EQ(follow(api, {.timeout = {}, .json = false, .live = true}).output,
            "\r\x1b[K[###############...............]  50%  block 50 of 99"
            "\r\x1b[K[##############################] 100%  block 100 of 99\n");
}

TEST(timelock_import_follow, json_is_the_contract_once_at_the_end) {
  ScriptedApi api({at(50), at(100)});
  const auto seen = follow(api, {.timeout = {}, .json = true, .live = false});
  EXPECT_EQ(json::parse(seen.output).at("history").at("complete"), true) << seen.output;
}

TEST(timelock_import_follow, the_timeout_has_its_exit_code_and_is_exact) {
  ScriptedApi api({at(50)});
  const auto seen = follow(api, {.timeout = 5s, .json = false, .live = false});
  EXPECT_EQ(seen.code, kExitNotYet);
  EXPECT_EQ(api.time.time_since_epoch(), 5s);
}

TEST(timelock_import_follow, a_contract_that_was_removed_meanwhile_ends_it) {
  ScriptedApi api({at(50), fail(not_found("no_such_timelock", "gone"))});
  const auto seen = follow(api);
  ASSERT_FALSE(seen.code);
  EXPECT_EQ(seen.code.error().code, "no_such_timelock");
}

}  // namespace
}  // namespace fencepost::cli

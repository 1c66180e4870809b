#include "cli/timelock/calendar.hpp"

#include <cstdlib>
#include <ctime>

#include <gtest/gtest.h>

#include <boost/json/object.hpp>

namespace fencepost::cli {
namespace {

namespace json = boost::json;

// Central Europe, by rule: independent of the machine's zone files.
class timelock_calendar : public testing::Test {
 protected:
  void SetUp() override { zone("CET-1CEST,M3.5.0,M10.5.0/3"); }
  void TearDown() override { zone("UTC0"); }
  static void zone(const char* name) {
    ::setenv("TZ", name, 1);
    ::tzset();
  }
};

json::object flow(const char* id, const char* status, const char* due, const char* expiry = nullptr) {
  json::object out{
      {"standard", "compound"}, {"chainId", 1},      {"contractAddress", "0xc0"}, {"flowId", id},
      {"status", status},       {"confirmed", true}, {"removed", false},          {"initiatorAddress", "0xa"}};
  if (due != nullptr) out["dueAt"] = due;
  if (expiry != nullptr) out["expiredAt"] = expiry;
  return out;
}

TEST_F(timelock_calendar, days_are_local_and_the_soonest_is_first) {
  // 23:30 UTC is the next day in Central Europe.
  EXPECT_EQ(calendar_text({flow("0x2", "waiting", "2026-11-15T23:30:00.000000Z", "2026-11-29T23:30:00.000000Z"),
                           flow("0x1", "waiting", "2026-11-15T10:00:00.000000Z")}),
            "Sun 2026-11-15\n"
            "  11:00:00 +01:00  becomes ready  waiting  compound  1  0xc0  0xa  0x1\n"
            "\n"
            "Mon 2026-11-16\n"
            "  00:30:00 +01:00  becomes ready  waiting  compound  1  0xc0  0xa  0x2\n"
            "\n"
            "Mon 2026-11-30\n"
            "  00:30:00 +01:00  expires after  waiting  compound  1  0xc0  0xa  0x2\n");
}

TEST_F(timelock_calendar, each_time_has_the_offset_of_its_own_day) {
  EXPECT_EQ(
      calendar_text({flow("0x1", "waiting", "2026-10-25T00:30:00Z"), flow("0x2", "waiting", "2026-10-25T01:30:00Z")}),
      "Sun 2026-10-25\n"
      "  02:30:00 +02:00  becomes ready  waiting  compound  1  0xc0  0xa  0x1\n"
      "  02:30:00 +01:00  becomes ready  waiting  compound  1  0xc0  0xa  0x2\n");
}

TEST_F(timelock_calendar, what_is_ready_comes_first_and_what_is_over_not_at_all) {
  auto removed = flow("0x9", "waiting", "2026-11-15T10:00:00Z");
  removed["removed"] = true;
  EXPECT_EQ(calendar_text({flow("0x1", "ready", "2026-11-01T00:00:00Z", "2026-11-15T10:00:00Z"),
                           flow("0x3", "executed", "2026-11-15T10:00:00Z"), removed}),
            "Ready now\n"
            "  now  ready  ready  compound  1  0xc0  0xa  0x1\n"
            "\n"
            "Sun 2026-11-15\n"
            "  11:00:00 +01:00  expires after  ready  compound  1  0xc0  0xa  0x1\n");
}

TEST_F(timelock_calendar, what_never_comes_is_counted) {
  EXPECT_EQ(calendar_text({flow("0x1", "waiting", nullptr)}), "1 more: due at no time that a calendar has\n");
  EXPECT_EQ(calendar_text({}), "");
}

}  // namespace
}  // namespace fencepost::cli

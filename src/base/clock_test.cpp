#include "base/clock.hpp"

#include <gtest/gtest.h>

namespace fencepost {
namespace {

TEST(clock, a_manual_clock_moves_only_when_it_is_set) {
  const TimePoint start{std::chrono::seconds{1'700'000'000}};
  ManualClock clock(start);
  EXPECT_EQ(clock.now(), start);
  EXPECT_EQ(clock.now(), start);
  clock.advance(std::chrono::milliseconds{1});
  EXPECT_EQ(clock.now() - start, std::chrono::milliseconds{1});
  clock.set(start - std::chrono::hours{1});
  EXPECT_EQ(start - clock.now(), std::chrono::hours{1});
}

TEST(clock, the_system_clock_returns_the_current_time) {
  const auto before = std::chrono::floor<std::chrono::microseconds>(std::chrono::system_clock::now());
  const auto now = SystemClock().now();
  const auto after = std::chrono::system_clock::now();
  EXPECT_LE(before, now);
  EXPECT_LE(now, after);
}

TEST(clock, a_time_is_read_as_it_was_written) {
  const TimePoint time{std::chrono::microseconds{1'763'235'918'123'456}};
  EXPECT_EQ(parse_rfc3339(to_rfc3339(time)), time);
  EXPECT_EQ(parse_rfc3339("2025-11-15T19:45:18.123456789Z"), time) << "what is finer is dropped";
  EXPECT_EQ(parse_rfc3339("2025-11-16T03:45:18.123456+08:00"), time);
  EXPECT_EQ(parse_rfc3339("2025-11-15t14:15:18.123456-05:30"), time);
  EXPECT_EQ(parse_rfc3339("1970-01-01T00:00:00Z"), TimePoint{});
  for (const auto* text :
       {"", "2025-11-15", "2025-11-15T19:45:18", "2025-11-15 19:45:18Z", "2025-13-15T19:45:18Z", "2025-02-29T00:00:00Z",
        "2025-11-15T24:00:00Z", "2025-11-15T19:45:60Z", "2025-11-15T19:45:18.Z", "2025-11-15T19:45:18+0800",
        "2025-11-15T19:45:18+24:00", "2025-11-15T19:45:18Z ", "25-11-15T19:45:18Z", "2025-11-15T19:45:1xZ"}) {
    EXPECT_FALSE(parse_rfc3339(text)) << text;
  }
}

}  // namespace
}  // namespace fencepost

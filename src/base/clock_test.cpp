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

}  // namespace
}  // namespace fencepost

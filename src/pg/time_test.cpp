#include "pg/time.hpp"

#include <gtest/gtest.h>

namespace fencepost::pg {
namespace {

using namespace std::chrono;

TEST(pg_time, round_trips_to_the_microsecond) {
  const TimePoint time = sys_days{year{2026} / 11 / 15} + hours{19} + minutes{45} + seconds{18} + microseconds{120045};
  EXPECT_EQ(format_timestamp(time), "2026-11-15 19:45:18.120045+00");
  EXPECT_EQ(parse_timestamp("2026-11-15 19:45:18.120045+00").value(), time);
}

TEST(pg_time, reads_shorter_fractions_and_none) {
  const TimePoint second = sys_days{year{2000} / 1 / 1};
  EXPECT_EQ(parse_timestamp("2000-01-01 00:00:00+00").value(), second);
  EXPECT_EQ(parse_timestamp("2000-01-01 00:00:00.5+00").value(), second + milliseconds{500});
}

TEST(pg_time, refuses_special_and_out_of_range_values) {
  for (const auto* text : {"infinity", "-infinity", "12026-01-01 00:00:00+00", "0044-03-15 00:00:00+00 BC",
                           "2026-02-30 00:00:00+00", "2026-01-01 24:00:00+00", "2026-01-01 00:00:00", "",
                           "2026-01-01 00:00:00+02", "2026-01-01 00:00:00.1234567+00"}) {
    EXPECT_FALSE(parse_timestamp(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace fencepost::pg

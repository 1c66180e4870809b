#include "notify/words/time_text.hpp"

#include <gtest/gtest.h>

namespace fencepost::notify {
namespace {

using namespace std::chrono_literals;
using std::chrono::days;

const TimePoint kNow = *parse_rfc3339("2026-11-18T09:00:00Z");

TEST(time_text, a_time_is_in_utc_to_the_second) {
  EXPECT_EQ(utc_text(*parse_rfc3339("2026-11-20T10:00:05.999Z")), "2026-11-20 10:00:05 UTC");
  EXPECT_EQ(utc_text(*parse_rfc3339("2026-11-20T02:00:05+08:00")), "2026-11-19 18:00:05 UTC");
}

TEST(time_text, distances_are_in_the_reader_s_words) {
  const struct {
    std::chrono::microseconds distance;
    std::string_view english, chinese;
  } cases[] = {
      {0s, "now", "此刻"},
      {999ms, "now", "此刻"},
      {-999ms, "now", "此刻"},
      {1s, "in less than a minute", "1 分钟内"},
      {59s, "in less than a minute", "1 分钟内"},
      {-1s, "less than a minute ago", "刚刚"},
      {-59s, "less than a minute ago", "刚刚"},
      {1min, "in 1 minute", "1 分钟后"},
      {1min + 59s, "in 1 minute", "1 分钟后"},
      {2min, "in 2 minutes", "2 分钟后"},
      {59min + 59s, "in 59 minutes", "59 分钟后"},
      {1h, "in 1 hour", "1 小时后"},
      {1h + 1min, "in 1 hour 1 minute", "1 小时 1 分钟后"},
      {23h + 59min, "in 23 hours 59 minutes", "23 小时 59 分钟后"},
      {24h, "in 1 day", "1 天后"},
      {24h + 59min, "in 1 day", "1 天后"},
      {25h, "in 1 day 1 hour", "1 天 1 小时后"},
      {days(2), "in 2 days", "2 天后"},
      {days(9) + 23h, "in 9 days 23 hours", "9 天 23 小时后"},
      {days(10) + 23h, "in 10 days", "10 天后"},
      {days(400), "in 400 days", "400 天后"},
      {days(40000), "in 40,000 days", "40,000 天后"},
      {-1min, "1 minute ago", "1 分钟前"},
      {-3h, "3 hours ago", "3 小时前"},
      {-days(1), "1 day ago", "1 天前"},
      {-days(400), "400 days ago", "400 天前"},
  };
  for (const auto& [distance, english, chinese] : cases) {
    EXPECT_EQ(relative_text(kNow + distance, kNow, kEnglishWords.time), english) << distance.count();
    EXPECT_EQ(relative_text(kNow + distance, kNow, kChineseWords.time), chinese) << distance.count();
  }
}

TEST(time_text, a_span_has_at_most_two_units) {
  const struct {
    std::chrono::seconds span;
    std::string_view english, chinese;
  } cases[] = {
      {-5s, "0 seconds", "0 秒"},
      {0s, "0 seconds", "0 秒"},
      {1s, "1 second", "1 秒"},
      {45s, "45 seconds", "45 秒"},
      {90s, "1 minute 30 seconds", "1 分钟 30 秒"},
      {10min, "10 minutes", "10 分钟"},
      {1h + 30s, "1 hour", "1 小时"},
      {days(1) + 1h + 1min, "1 day 1 hour", "1 天 1 小时"},
  };
  for (const auto& [span, english, chinese] : cases) {
    EXPECT_EQ(span_text(span, kEnglishWords.time), english);
    EXPECT_EQ(span_text(span, kChineseWords.time), chinese);
  }
}

TEST(time_text, a_moment_has_both) {
  EXPECT_EQ(moment_text(kNow + days(2), kNow, kEnglishWords.time), "2026-11-20 09:00:00 UTC (in 2 days)");
  EXPECT_EQ(moment_text(kNow - 3h, kNow, kChineseWords.time), "2026-11-18 06:00:00 UTC（3 小时前）");
}

}  // namespace
}  // namespace fencepost::notify

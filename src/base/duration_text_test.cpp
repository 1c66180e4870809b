#include "base/duration_text.hpp"

#include <gtest/gtest.h>

namespace fencepost {
namespace {

using std::chrono::milliseconds;

TEST(duration_text, reads_a_number_and_a_unit) {
  struct Case {
    std::string_view text;
    std::int64_t millis;
  };
  const Case cases[] = {
      {"250ms", 250},     {"10s", 10'000}, {"5m", 300'000}, {"24h", 86'400'000},
      {"1d", 86'400'000}, {"0s", 0},       {"0ms", 0},      {"10000d", 864'000'000'000},
  };
  for (const auto& c : cases) EXPECT_EQ(parse_duration(c.text), milliseconds{c.millis}) << c.text;
}

TEST(duration_text, refuses_everything_else) {
  const std::string expected = "expected a duration such as 250ms, 10s, 5m, 24h or 1d, got ";
  struct Case {
    std::string_view text;
    std::string_view tail;
  };
  const Case cases[] = {
      {"", "\"\""},
      {"10", "\"10\": the unit is missing"},
      {"0", "\"0\": the unit is missing"},
      {"s", "\"s\""},
      {"010s", "\"010s\": leading zero"},
      {"-1s", "\"-1s\""},
      {"+1s", "\"+1s\""},
      {"1.5s", "\"1.5s\""},
      {"1 s", "\"1 s\""},
      {" 1s", "\" 1s\""},
      {"1s ", "\"1s \""},
      {"1S", "\"1S\""},
      {"1h30m", "\"1h30m\""},
      {"1min", "\"1min\""},
      {"10001d", "\"10001d\": more than 10000 days"},
      {"99999999999999999999s", "\"99999999999999999999s\": more than 10000 days"},
      {"9223372036854775807d", "\"9223372036854775807d\": more than 10000 days"},
  };
  for (const auto& c : cases) {
    const auto result = parse_duration(c.text);
    ASSERT_FALSE(result.has_value()) << c.text;
    EXPECT_EQ(result.error().code, "bad_duration");
    EXPECT_EQ(result.error().message, expected + std::string(c.tail));
  }
}

TEST(duration_text, parses_its_own_output) {
  EXPECT_EQ(duration_text(milliseconds{0}), "0s");
  EXPECT_EQ(duration_text(milliseconds{1500}), "1500ms");
  EXPECT_EQ(duration_text(std::chrono::seconds{90}), "90s");
  EXPECT_EQ(duration_text(std::chrono::seconds{120}), "2m");
  EXPECT_EQ(duration_text(std::chrono::hours{36}), "36h");
  EXPECT_EQ(duration_text(std::chrono::hours{48}), "2d");
  for (const std::int64_t millis : {1LL, 999LL, 60'000LL, 86'400'001LL, 123'456'789LL}) {
    EXPECT_EQ(parse_duration(duration_text(milliseconds{millis})), milliseconds{millis});
  }
}

}  // namespace
}  // namespace fencepost

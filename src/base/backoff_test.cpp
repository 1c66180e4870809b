#include "base/backoff.hpp"

#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace fencepost {
namespace {

using std::chrono::milliseconds;

constexpr BackoffOptions kOptions{.initial = milliseconds{100}, .cap = milliseconds{1000}, .factor = 2.0};

std::vector<std::int64_t> draw(Backoff& backoff, int count) {
  std::vector<std::int64_t> out;
  out.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) out.push_back(backoff.next().count());
  return out;
}

TEST(backoff, doubles_its_ceiling_up_to_the_cap) {
  SeededRandom random(1);
  Backoff backoff(kOptions, random);
  for (const int expected : {100, 200, 400, 800, 1000, 1000}) {
    EXPECT_EQ(backoff.ceiling(), milliseconds{expected});
    const auto wait = backoff.next();
    EXPECT_GE(wait, milliseconds{0});
    EXPECT_LE(wait, milliseconds{expected});
  }
  EXPECT_EQ(backoff.attempts(), 6U);
}

TEST(backoff, jitter_uses_the_whole_range) {
  SeededRandom random(2);
  Backoff backoff({.initial = milliseconds{3}, .cap = milliseconds{3}, .factor = 1.0}, random);
  std::vector<int> seen(4);
  for (const auto wait : draw(backoff, 4000)) ++seen.at(static_cast<std::size_t>(wait));
  for (const auto count : seen) EXPECT_NEAR(count, 1000, 150);
}

TEST(backoff, the_same_seed_waits_the_same) {
  SeededRandom r1(3);
  SeededRandom r2(3);
  SeededRandom r3(4);
  Backoff a(kOptions, r1);
  Backoff b(kOptions, r2);
  Backoff c(kOptions, r3);
  const auto from_a = draw(a, 10);
  EXPECT_EQ(from_a, draw(b, 10));
  EXPECT_NE(from_a, draw(c, 10));
}

TEST(backoff, reset_starts_over) {
  SeededRandom random(5);
  Backoff backoff(kOptions, random);
  draw(backoff, 5);
  backoff.reset();
  EXPECT_EQ(backoff.ceiling(), milliseconds{100});
  EXPECT_EQ(backoff.attempts(), 0U);
}

TEST(backoff, survives_any_number_of_attempts_and_the_longest_cap) {
  SeededRandom random(6);
  Backoff backoff({.initial = milliseconds{1}, .cap = std::chrono::days{366}, .factor = 1e300}, random);
  for (const auto wait : draw(backoff, 10'000)) ASSERT_GE(wait, 0);
  Backoff usual(kOptions, random);
  for (const auto wait : draw(usual, 100'000)) ASSERT_LE(wait, 1000);
}

TEST(backoff, refuses_options_out_of_range) {
  SeededRandom random(7);
  for (const auto& options : {
           BackoffOptions{.initial = milliseconds{0}},
           BackoffOptions{.initial = milliseconds{-1}},
           BackoffOptions{.initial = milliseconds{10}, .cap = milliseconds{9}},
           BackoffOptions{.cap = milliseconds::max()},
           BackoffOptions{.factor = 0.5},
           BackoffOptions{.factor = std::numeric_limits<double>::quiet_NaN()},
       }) {
    EXPECT_THROW(Backoff(options, random), Exception);
  }
}

}  // namespace
}  // namespace fencepost

#include "evm/logs/log_span.hpp"

#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace fencepost::evm {
namespace {

TEST(log_span, grows_after_successes_with_few_logs) {
  LogSpan span;
  EXPECT_EQ(span.blocks(), 2'000);
  span.succeeded(2'000, 10);
  EXPECT_EQ(span.blocks(), 2'000);
  span.succeeded(2'000, 10);
  EXPECT_EQ(span.blocks(), 4'000);
  span.succeeded(4'000, 5'000);
  span.succeeded(4'000, 0);
  EXPECT_EQ(span.blocks(), 4'000) << "many logs start the count again";
  for (int i = 0; i < 100; ++i) span.succeeded(span.blocks(), 0);
  EXPECT_EQ(span.blocks(), 100'000);
}

TEST(log_span, a_request_below_the_span_proves_nothing) {
  LogSpan span;
  for (int i = 0; i < 10; ++i) span.succeeded(3, 0);
  EXPECT_EQ(span.blocks(), 2'000);
}

TEST(log_span, halves_when_refused_and_stays_below_for_a_while) {
  LogSpan span;
  ASSERT_TRUE(span.refused(2'000));
  EXPECT_EQ(span.blocks(), 1'000);
  for (int i = 0; i < 49; ++i) {
    span.succeeded(span.blocks(), 0);
    EXPECT_EQ(span.blocks(), 1'000) << i;
  }
  span.succeeded(span.blocks(), 0);
  EXPECT_EQ(span.blocks(), 2'000) << "the refusal is forgotten: other blocks may have fewer logs";
}

TEST(log_span, takes_a_smaller_suggestion_once) {
  LogSpan span({.initial = 10'000});
  ASSERT_TRUE(span.refused(10'000, 9'000));
  EXPECT_EQ(span.blocks(), 9'000);
  ASSERT_TRUE(span.refused(9'000, 8'999));
  EXPECT_EQ(span.blocks(), 4'500) << "a node that refused its own suggestion is not believed again";
  ASSERT_TRUE(span.refused(4'500, 10'000));
  EXPECT_EQ(span.blocks(), 2'250) << "the suggestion is larger than what was refused";
  ASSERT_TRUE(span.refused(2'250, 0));
  EXPECT_EQ(span.blocks(), 1'125);
  span.succeeded(1'125, 0);
  ASSERT_TRUE(span.refused(1'125, 100));
  EXPECT_EQ(span.blocks(), 100);
}

TEST(log_span, a_single_refused_block_is_an_error) {
  LogSpan span({.initial = 3});
  ASSERT_TRUE(span.refused(3));
  EXPECT_EQ(span.blocks(), 2);
  ASSERT_TRUE(span.refused(2));
  EXPECT_EQ(span.blocks(), 1);
  const auto hopeless = span.refused(1, 1);
  ASSERT_FALSE(hopeless);
  EXPECT_EQ(hopeless.error().code, "logs_refused");
  EXPECT_EQ(span.blocks(), 1);
}

TEST(log_span, bad_options_are_bounded) {
  EXPECT_EQ(LogSpan({.initial = 0}).blocks(), 1);
  EXPECT_EQ(LogSpan({.initial = 500, .max = 100}).blocks(), 100);
  EXPECT_EQ(LogSpan({.initial = 5, .max = -1}).blocks(), 1);
}

// What a node with a hidden limit suggests: nothing, the limit, a lie that is too large, or one block less each time.
std::optional<std::int64_t> suggestion(int kind, std::int64_t asked, std::int64_t limit) {
  switch (kind) {
    case 1:
      return limit;
    case 2:
      return 10 * asked;
    case 3:
      return asked - 1;
    default:
      return std::nullopt;
  }
}

TEST(log_span, converges_to_any_hidden_limit) {
  std::mt19937_64 random(20'260'101);  // NOLINT(bugprone-random-generator-seed): the same cases in each run
  for (int round = 0; round < 2'000; ++round) {
    const auto limit = std::uniform_int_distribution<std::int64_t>(1, round % 2 == 0 ? 300'000 : 300)(random);
    const LogSpanOptions options{.initial = std::uniform_int_distribution<std::int64_t>(1, 5'000)(random)};
    const auto kind = static_cast<int>(random() % 4);
    SCOPED_TRACE(fmt::format("limit {}, initial {}, kind {}", limit, options.initial, kind));
    LogSpan span(options);
    std::int64_t last_refused = 0;
    int refusals = 0;
    for (int request = 0; request < 200; ++request) {
      const auto asked = span.blocks();
      ASSERT_GE(asked, 1);
      ASSERT_LE(asked, options.max);
      ASSERT_NE(asked, last_refused) << "a refused span is not asked for again at once";
      last_refused = 0;
      if (asked <= limit) {
        span.succeeded(asked, 0);
        continue;
      }
      ++refusals;
      last_refused = asked;
      ASSERT_TRUE(span.refused(asked, suggestion(kind, asked, limit)));
    }
    const auto reachable = std::min(limit, options.max);
    if (span.blocks() > limit) ASSERT_TRUE(span.refused(span.blocks(), suggestion(kind, span.blocks(), limit)));
    EXPECT_GE(2 * span.blocks() + 1, reachable);
    EXPECT_LE(span.blocks(), 2 * limit);
    EXPECT_LE(refusals, 40);
  }
}

}  // namespace
}  // namespace fencepost::evm

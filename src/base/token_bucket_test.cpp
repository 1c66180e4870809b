#include "base/token_bucket.hpp"

#include <limits>

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace fencepost {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
const TokenBucket::Time kStart{};

int take_all(TokenBucket& bucket, TokenBucket::Time now) {
  int taken = 0;
  while (bucket.try_take(now)) ++taken;
  return taken;
}

TEST(token_bucket, allows_a_burst_of_its_capacity_and_then_the_rate) {
  TokenBucket bucket(5, 2, kStart);
  EXPECT_EQ(take_all(bucket, kStart), 5);
  EXPECT_EQ(take_all(bucket, kStart + milliseconds{499}), 0);
  EXPECT_EQ(take_all(bucket, kStart + milliseconds{500}), 1);
  EXPECT_EQ(take_all(bucket, kStart + milliseconds{2000}), 3);
  EXPECT_EQ(take_all(bucket, kStart + seconds{3600}), 5);
}

TEST(token_bucket, has_a_token_after_the_wait_it_returned) {
  TokenBucket bucket(1, 3, kStart);
  auto now = kStart;
  EXPECT_TRUE(bucket.try_take(now));
  for (int i = 0; i < 100; ++i) {
    const auto refused = bucket.try_take(now);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error(), milliseconds{334});
    now += refused.error();
    ASSERT_TRUE(bucket.try_take(now).has_value());
    bucket = TokenBucket(1, 3, now);
    ASSERT_TRUE(bucket.try_take(now).has_value());
  }
}

TEST(token_bucket, a_refusal_costs_nothing) {
  TokenBucket bucket(1, 1, kStart);
  EXPECT_TRUE(bucket.try_take(kStart));
  for (int i = 1; i <= 9; ++i) EXPECT_FALSE(bucket.try_take(kStart + milliseconds{100 * i}));
  EXPECT_TRUE(bucket.try_take(kStart + milliseconds{1001}));
}

TEST(token_bucket, time_that_steps_back_refills_nothing) {
  TokenBucket bucket(1, 1, kStart + seconds{10});
  EXPECT_TRUE(bucket.try_take(kStart + seconds{10}));
  EXPECT_FALSE(bucket.try_take(kStart));
  EXPECT_FALSE(bucket.try_take(kStart + seconds{10}));
  EXPECT_TRUE(bucket.try_take(kStart + seconds{11}));
}

TEST(token_bucket, knows_when_it_is_full) {
  TokenBucket bucket(2, 1, kStart);
  EXPECT_TRUE(bucket.full(kStart));
  EXPECT_TRUE(bucket.try_take(kStart));
  EXPECT_FALSE(bucket.full(kStart));
  EXPECT_DOUBLE_EQ(bucket.tokens(kStart + milliseconds{500}), 1.5);
  EXPECT_TRUE(bucket.full(kStart + seconds{1}));
}

TEST(token_bucket, accepts_extreme_rates_and_refuses_invalid_ones) {
  TokenBucket slow(1, std::numeric_limits<double>::denorm_min(), kStart);
  EXPECT_TRUE(slow.try_take(kStart));
  EXPECT_GT(slow.try_take(kStart).error(), std::chrono::days{365});
  TokenBucket fast(1, 1e12, kStart);
  EXPECT_TRUE(fast.try_take(kStart));
  EXPECT_EQ(fast.try_take(kStart).error(), milliseconds{1});
  constexpr auto kInf = std::numeric_limits<double>::infinity();
  EXPECT_THROW(TokenBucket(0, 1, kStart), Exception);
  EXPECT_THROW(TokenBucket(1, 0, kStart), Exception);
  EXPECT_THROW(TokenBucket(1, -1, kStart), Exception);
  EXPECT_THROW(TokenBucket(kInf, 1, kStart), Exception);
  EXPECT_THROW(TokenBucket(1, std::numeric_limits<double>::quiet_NaN(), kStart), Exception);
}

}  // namespace
}  // namespace fencepost

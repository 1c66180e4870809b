// Limits how often each caller or address may do something, counted in memory. Any thread may call.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>

#include "base/error.hpp"
#include "base/token_bucket.hpp"

namespace fencepost::identity {

struct RateLimitOptions {
  std::uint32_t per_second = 1;
  std::uint32_t burst = 1;
  std::size_t remember_at_most = 10'000;
};

class RateLimit {
 public:
  RateLimit(RateLimitOptions options, std::string refusal) : options_(options), refusal_(std::move(refusal)) {}

  // Whether one more is allowed now; counts nothing. Errors: kRateLimited `rate_limited` with retry_after.
  Result<void> check(const std::string& who) const;
  // Counts one. Errors: as `check`, and then nothing is counted.
  Result<void> charge(const std::string& who);

 private:
  using Clock = std::chrono::steady_clock;
  void make_room(Clock::time_point now);
  std::unexpected<Error> refuse(std::chrono::seconds retry_after) const;

  RateLimitOptions options_;
  std::string refusal_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, TokenBucket> buckets_;
};

}  // namespace fencepost::identity

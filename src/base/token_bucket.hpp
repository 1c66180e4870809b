// A rate limit that allows bursts: a bucket of `capacity` tokens, refilled steadily, one token per request.
#pragma once

#include <chrono>
#include <expected>

namespace fencepost {

// Pure: time comes with each call, and a time before the last one counts as the last one. Not thread-safe.
class TokenBucket {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Starts full. Throws Exception "bad_token_bucket" unless capacity >= 1 and refill > 0.
  TokenBucket(double capacity, double refill_per_second, Time now);

  // Takes a token; when there is none, says how long until there will be one (rounded up, never zero).
  std::expected<void, std::chrono::milliseconds> try_take(Time now);

  // What is in the bucket at `now`. A full bucket has nothing to remember and may be forgotten.
  double tokens(Time now) const;
  bool full(Time now) const { return tokens(now) >= capacity_; }

 private:
  double capacity_;
  double refill_per_second_;
  double tokens_;
  Time updated_;
};

}  // namespace fencepost

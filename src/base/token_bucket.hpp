// A rate limit that allows bursts: a bucket of `capacity` tokens, refilled steadily, one token per request.
#pragma once

#include <chrono>
#include <expected>

namespace fencepost {

// The caller passes the time; a time earlier than the previous call's counts as that one. Not thread-safe.
class TokenBucket {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Starts full. Throws Exception "bad_token_bucket" unless capacity >= 1 and refill > 0.
  TokenBucket(double capacity, double refill_per_second, Time now);

  // Takes a token. When there is none, returns the time until the next one (rounded up, never zero).
  std::expected<void, std::chrono::milliseconds> try_take(Time now);

  // The tokens in the bucket at `now`. A full bucket is like a new one, so its owner may delete it.
  double tokens(Time now) const;
  bool full(Time now) const { return tokens(now) >= capacity_; }

 private:
  double capacity_;
  double refill_per_second_;
  double tokens_;
  Time updated_;
};

}  // namespace fencepost

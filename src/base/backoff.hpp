// How long to wait before a retry: exponential, capped, with full jitter, so that callers that failed at the same
// moment do not all retry at the same moment.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/random.hpp"

namespace fencepost {

struct BackoffOptions {
  std::chrono::milliseconds initial{100};
  std::chrono::milliseconds cap{30'000};
  double factor = 2.0;
};

// Not thread-safe. `random` must outlive this object, and is used on the calling thread.
class Backoff {
 public:
  // Throws Exception "bad_backoff" unless 0 < initial <= cap <= 366 days and factor >= 1.
  Backoff(const BackoffOptions& options, Random& random);

  // A duration drawn evenly from [0, ceiling()]; each call raises the ceiling, up to the cap.
  std::chrono::milliseconds next();
  // Call after a success: the next wait starts from `initial` again.
  void reset();

  // The longest duration that `next` may return.
  std::chrono::milliseconds ceiling() const;
  // How many times `next` was called since construction or the last reset.
  std::uint64_t attempts() const { return attempts_; }

 private:
  BackoffOptions options_;
  Random& random_;
  double ceiling_ms_;
  std::uint64_t attempts_ = 0;
};

}  // namespace fencepost

// How long to wait before trying again: exponential, capped, with full jitter, so that many who failed at the
// same moment do not come back at the same moment.
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

// Belongs to one thread, as does the Random it is given unless that is thread-safe.
class Backoff {
 public:
  // Throws Exception "bad_backoff" unless 0 < initial <= cap <= 366 days and factor >= 1.
  Backoff(const BackoffOptions& options, Random& random);

  // A duration drawn evenly from [0, ceiling()]; each call raises the ceiling, up to the cap.
  std::chrono::milliseconds next();
  // After a success: the next wait is short again.
  void reset();

  // The longest that `next` may give.
  std::chrono::milliseconds ceiling() const;
  // How many times `next` was asked since the start or the last reset.
  std::uint64_t attempts() const { return attempts_; }

 private:
  BackoffOptions options_;
  Random& random_;
  double ceiling_ms_;
  std::uint64_t attempts_ = 0;
};

}  // namespace fencepost

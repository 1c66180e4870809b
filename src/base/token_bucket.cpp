#include "base/token_bucket.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"

namespace fencepost {
namespace {

// The longest wait reported, so that a tiny refill rate cannot overflow a duration.
constexpr double kLongestWaitMs = 1000.0 * 3600 * 24 * 366;

}  // namespace

TokenBucket::TokenBucket(double capacity, double refill_per_second, Time now)
    : capacity_(capacity), refill_per_second_(refill_per_second), tokens_(capacity), updated_(now) {
  if (!(capacity >= 1.0) || !(refill_per_second > 0.0) || !std::isfinite(capacity) ||
      !std::isfinite(refill_per_second)) {
    throw Exception(internal("bad_token_bucket", "a token bucket needs capacity >= 1 and refill > 0"));
  }
}

std::expected<void, std::chrono::milliseconds> TokenBucket::try_take(Time now) {
  tokens_ = tokens(now);
  updated_ = std::max(updated_, now);
  if (tokens_ >= 1.0) {
    tokens_ -= 1.0;
    return {};
  }
  const auto wait_ms = std::min(std::ceil((1.0 - tokens_) / refill_per_second_ * 1000.0), kLongestWaitMs);
  return std::unexpected(std::chrono::milliseconds{static_cast<std::int64_t>(std::max(wait_ms, 1.0))});
}

double TokenBucket::tokens(Time now) const {
  const std::chrono::duration<double> elapsed = std::max(now, updated_) - updated_;
  return std::min(capacity_, tokens_ + elapsed.count() * refill_per_second_);
}

}  // namespace fencepost

#include "base/backoff.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace fencepost {

namespace {
// No caller needs a longer wait, and a double represents every millisecond up to here exactly.
constexpr std::chrono::milliseconds kLongestCap = std::chrono::days{366};
}  // namespace

Backoff::Backoff(const BackoffOptions& options, Random& random)
    : options_(options), random_(random), ceiling_ms_(static_cast<double>(options.initial.count())) {
  if (options.initial.count() <= 0 || options.cap < options.initial || options.cap > kLongestCap ||
      !(options.factor >= 1.0)) {
    throw Exception(internal("bad_backoff", "a backoff needs 0 < initial <= cap <= 366 days and factor >= 1"));
  }
}

std::chrono::milliseconds Backoff::next() {
  const auto steps = static_cast<double>(ceiling().count() + 1);
  const auto wait = static_cast<std::int64_t>(random_.uniform() * steps);
  // Growth stops at the cap, so no number of attempts overflows the ceiling.
  ceiling_ms_ = std::min(ceiling_ms_ * options_.factor, static_cast<double>(options_.cap.count()));
  ++attempts_;
  return std::chrono::milliseconds{wait};
}

void Backoff::reset() {
  ceiling_ms_ = static_cast<double>(options_.initial.count());
  attempts_ = 0;
}

std::chrono::milliseconds Backoff::ceiling() const {
  return std::min(std::chrono::milliseconds{static_cast<std::int64_t>(ceiling_ms_)}, options_.cap);
}

}  // namespace fencepost

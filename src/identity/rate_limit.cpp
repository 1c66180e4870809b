#include "identity/rate_limit.hpp"

namespace fencepost::identity {

Result<void> RateLimit::check(const std::string& who) const {
  const std::lock_guard lock(mutex_);
  const auto it = buckets_.find(who);
  if (it == buckets_.end() || it->second.tokens(Clock::now()) >= 1) return {};
  return refuse(std::chrono::seconds(1));
}

Result<void> RateLimit::charge(const std::string& who) {
  const auto now = Clock::now();
  const std::lock_guard lock(mutex_);
  make_room(now);
  const TokenBucket fresh(options_.burst, options_.per_second, now);
  const auto taken = buckets_.try_emplace(who, fresh).first->second.try_take(now);
  if (taken) return {};
  return refuse(std::chrono::ceil<std::chrono::seconds>(taken.error()));
}

// A full bucket is like a new one. If none is full, all are forgotten: the limit is then kept less well, and memory is
// bounded.
void RateLimit::make_room(Clock::time_point now) {
  if (buckets_.size() < options_.remember_at_most) return;
  std::erase_if(buckets_, [&](const auto& entry) { return entry.second.full(now); });
  if (buckets_.size() >= options_.remember_at_most) buckets_.clear();
}

std::unexpected<Error> RateLimit::refuse(std::chrono::seconds retry_after) const {
  return fail(Error{ErrorKind::kRateLimited, "rate_limited", refusal_, {}, {}}.after(retry_after));
}

}  // namespace fencepost::identity

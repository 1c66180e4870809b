#include "notify/workers/send_pace.hpp"

#include <algorithm>

namespace fencepost::notify {
namespace {

// A pause earns a burst of this length, so that an idle node does not delay the few mails of a change.
constexpr std::chrono::seconds kBurst{1};
constexpr std::size_t kMaxDomains = 10'000;

}  // namespace

SendPace::SendPace(std::uint32_t per_second, std::uint32_t domain_per_second)
    : step_(std::chrono::duration_cast<Step>(std::chrono::seconds(1)) / per_second),
      domain_step_(std::chrono::duration_cast<Step>(std::chrono::seconds(1)) / domain_per_second) {}

std::size_t SendPace::free_places(Time now) const {
  const auto at = std::max(free_at_, now - kBurst);
  return at > now ? 0 : static_cast<std::size_t>((now - at) / step_) + 1;
}

std::chrono::milliseconds SendPace::take(std::string_view domain, Time now) {
  if (domains_.size() >= kMaxDomains) forget(now);
  auto& of_domain = domains_.try_emplace(std::string(domain)).first->second;
  const auto at = std::max(of_domain.free_at, now - kBurst);
  if (at > now) {
    of_domain.line_at = std::max(of_domain.line_at, at);
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(of_domain.line_at - now);
    of_domain.line_at += domain_step_;
    return wait;
  }
  of_domain.free_at = at + domain_step_;
  free_at_ = std::max(free_at_, now - kBurst) + step_;
  return std::chrono::milliseconds(0);
}

// Domains that have earned their whole burst again are like new ones. If none has, the limit of all is the lower one.
void SendPace::forget(Time now) {
  std::erase_if(domains_, [&](const auto& entry) { return entry.second.free_at <= now - kBurst; });
  if (domains_.size() >= kMaxDomains) domains_.clear();
}

}  // namespace fencepost::notify

#include "evm/endpoint_health.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>

namespace fencepost::evm {
namespace {

constexpr std::chrono::hours kLongestRetryAfter{1};
constexpr std::chrono::hours kBatchLimitFor{1};
constexpr int kLevelChecks = 2;
// An older report says nothing: the endpoint may be gone, and a development chain may have been rolled back.
constexpr std::chrono::seconds kHeadCountsFor{60};

}  // namespace

Result<std::string> endpoint_label(const std::string& url) {
  const auto parsed = boost::urls::parse_uri(url);
  if (!parsed || parsed->encoded_host().empty()) {
    return fail(invalid("bad_url", "an RPC endpoint's URL is malformed; expected http(s)://host[:port]/path"));
  }
  return std::string(parsed->encoded_host_and_port());
}

EndpointHealth::EndpointHealth(const std::vector<std::string>& urls, const BackoffOptions& cooldown,
                               std::size_t max_batch, const Clock& clock, Random& random)
    : clock_(clock), max_batch_(std::max<std::size_t>(1, max_batch)) {
  if (urls.empty()) throw Exception(invalid("no_endpoints", "rpc_urls: expected at least one RPC endpoint, got none"));
  for (const auto& url : urls) {
    auto label = endpoint_label(url);
    if (!label) throw Exception(std::move(label.error()));
    // Two API keys at one provider are two endpoints with the same host.
    const auto same = std::ranges::count_if(endpoints_, [&](const Entry& other) {
      return other.status.label == *label || other.status.label.starts_with(*label + "#");
    });
    if (same > 0) *label += fmt::format("#{}", same + 1);
    endpoints_.push_back({{.label = std::move(*label), .batch_limit = max_batch_}, Backoff(cooldown, random)});
  }
}

EndpointStatus EndpointHealth::status(std::size_t index) const {
  auto status = endpoints_[index].status;
  if (status.cooling_until && *status.cooling_until <= clock_.now()) status.cooling_until.reset();
  return status;
}

std::vector<std::size_t> EndpointHealth::candidates() const {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < endpoints_.size(); ++i) {
    if (!endpoints_[i].status.wrong_chain) order.push_back(i);
  }
  std::ranges::sort(order, {}, [this](std::size_t i) {
    const auto now = status(i);
    return std::tuple(now.cooling_until.value_or(TimePoint::min()), now.behind, i);
  });
  return order;
}

std::vector<std::size_t> EndpointHealth::healthy() const {
  auto order = candidates();
  std::erase_if(order, [this](std::size_t i) {
    const auto now = status(i);
    return now.behind || now.cooling_until;
  });
  return order;
}

bool EndpointHealth::any_usable() const {
  return std::ranges::any_of(endpoints_, [](const Entry& endpoint) {
    return !endpoint.status.wrong_chain && endpoint.status.consecutive_failures == 0;
  });
}

void EndpointHealth::set_wrong_chain(std::size_t index, bool wrong) {
  auto& endpoint = endpoints_[index];
  endpoint.status.wrong_chain = wrong;
  endpoint.chain_unchecked = false;
  if (wrong) endpoint.status.head.reset();
}

void EndpointHealth::note_head(std::size_t index, std::int64_t number) {
  endpoints_[index].status.head = number;
  endpoints_[index].status.head_at = clock_.now();
}

std::optional<std::int64_t> EndpointHealth::highest_head() const {
  std::optional<std::int64_t> highest;
  for (const auto& [status, backoff, unchecked, level, limited] : endpoints_) {
    if (status.wrong_chain || !status.head || clock_.now() - *status.head_at > kHeadCountsFor) continue;
    highest = std::max(highest, status.head);
  }
  return highest;
}

std::vector<std::size_t> EndpointHealth::compare_heads(const std::vector<std::optional<std::int64_t>>& heads) {
  std::vector<std::size_t> changed;
  std::optional<std::int64_t> highest;
  for (std::size_t i = 0; i < endpoints_.size(); ++i) {
    if (!heads[i]) continue;
    auto& endpoint = endpoints_[i];
    const bool late = highest_before_ && *heads[i] < *highest_before_;
    endpoint.level_checks = late ? 0 : endpoint.level_checks + 1;
    const bool behind = late || (endpoint.status.behind && endpoint.level_checks < kLevelChecks);
    if (std::exchange(endpoint.status.behind, behind) != behind) changed.push_back(i);
    highest = std::max(highest, heads[i]);
  }
  if (highest) highest_before_ = highest;
  return changed;
}

std::size_t EndpointHealth::batch_limit(std::size_t index) {
  auto& endpoint = endpoints_[index];
  auto& limit = endpoint.status.batch_limit;
  if (limit < max_batch_ && clock_.now() - endpoint.batch_limited_at >= kBatchLimitFor) {
    limit = std::min(2 * limit, max_batch_);
    endpoint.batch_limited_at = clock_.now();
  }
  return limit;
}

void EndpointHealth::batch_refused(std::size_t index, std::size_t calls) {
  auto& endpoint = endpoints_[index];
  endpoint.status.batch_limit = std::min(endpoint.status.batch_limit, std::max<std::size_t>(1, calls / 2));
  endpoint.batch_limited_at = clock_.now();
}

bool EndpointHealth::succeeded(std::size_t index, std::chrono::microseconds took, Proof proof) {
  auto& status = endpoints_[index].status;
  const bool failed_before = status.consecutive_failures > 0;
  if (failed_before && proof == Proof::kNothing) return false;
  status.consecutive_failures = 0;
  status.failing_since.reset();
  status.cooling_until.reset();
  status.answered_at = clock_.now();
  // Weight 1/5 for the newest answer: averages over about five answers.
  status.latency = status.latency.count() == 0 ? took : (status.latency * 4 + took) / 5;
  if (proof == Proof::kWorks) endpoints_[index].backoff.reset();
  return failed_before;
}

bool EndpointHealth::failed(std::size_t index, std::chrono::seconds at_least) {
  auto& status = endpoints_[index].status;
  auto& backoff = endpoints_[index].backoff;
  endpoints_[index].chain_unchecked = true;
  ++status.consecutive_failures;
  if (!status.failing_since) status.failing_since = clock_.now();
  // At least half of the ceiling: full jitter could make the pause zero.
  const auto half = backoff.ceiling() / 2;
  const auto pause = half + backoff.next() / 2;
  const auto asked = std::min<std::chrono::milliseconds>(at_least, kLongestRetryAfter);
  status.cooling_until = clock_.now() + std::max<std::chrono::milliseconds>(pause, asked);
  return status.consecutive_failures == 1;
}

}  // namespace fencepost::evm

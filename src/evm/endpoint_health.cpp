#include "evm/endpoint_health.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>

namespace fencepost::evm {
namespace {

constexpr std::chrono::hours kLongestRetryAfter{1};

}  // namespace

Result<std::string> endpoint_label(const std::string& url) {
  const auto parsed = boost::urls::parse_uri(url);
  if (!parsed || parsed->encoded_host().empty()) {
    return fail(invalid("bad_url", "an RPC endpoint's URL is malformed; expected http(s)://host[:port]/path"));
  }
  return std::string(parsed->encoded_host_and_port());
}

EndpointHealth::EndpointHealth(const std::vector<std::string>& urls, const BackoffOptions& cooldown, const Clock& clock,
                               Random& random)
    : clock_(clock) {
  if (urls.empty()) throw Exception(invalid("no_endpoints", "rpc_urls: expected at least one RPC endpoint, got none"));
  for (const auto& url : urls) {
    auto label = endpoint_label(url);
    if (!label) throw Exception(std::move(label.error()));
    // Two API keys at one provider are two endpoints with the same host.
    const auto same = std::ranges::count_if(endpoints_, [&](const Entry& other) {
      return other.status.label == *label || other.status.label.starts_with(*label + "#");
    });
    if (same > 0) *label += fmt::format("#{}", same + 1);
    endpoints_.push_back({{.label = std::move(*label)}, Backoff(cooldown, random)});
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
  std::ranges::sort(order, {},
                    [this](std::size_t i) { return std::pair(status(i).cooling_until.value_or(TimePoint::min()), i); });
  return order;
}

bool EndpointHealth::succeeded(std::size_t index, std::chrono::microseconds took) {
  auto& [status, backoff] = endpoints_[index];
  const bool failed_before = status.consecutive_failures > 0;
  status.consecutive_failures = 0;
  status.failing_since.reset();
  status.cooling_until.reset();
  // Weight 1/5 for the newest answer: averages over about five answers.
  status.latency = status.latency.count() == 0 ? took : (status.latency * 4 + took) / 5;
  backoff.reset();
  return failed_before;
}

bool EndpointHealth::failed(std::size_t index, std::chrono::seconds at_least) {
  auto& [status, backoff] = endpoints_[index];
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

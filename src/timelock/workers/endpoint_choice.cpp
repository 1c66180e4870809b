#include "timelock/workers/endpoint_choice.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>

#include "runtime/log.hpp"

namespace fencepost::timelock {
namespace {

// From what needs an operator to what passes by itself.
constexpr std::array<std::string_view, 6> kTelling{"logs_withheld",  "logs_refused", "bad_rpc_result",
                                                   "rpc_incomplete", "rpc_error",    "endpoint_behind"};

}  // namespace

std::vector<std::size_t> EndpointChoice::order(const std::vector<evm::EndpointStatus>& endpoints) const {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < endpoints.size(); ++i) {
    if (!endpoints[i].wrong_chain) order.push_back(i);
  }
  std::ranges::sort(order, {}, [&](std::size_t i) {
    return std::tuple(endpoints[i].cooling_until.value_or(TimePoint::min()), i != last_good_, i);
  });
  return order;
}

void EndpointChoice::answered(std::size_t endpoint, const std::string& label, const std::optional<Error>& failure) {
  const bool changed = last_good_ ? *last_good_ != endpoint : failure.has_value();
  last_good_ = endpoint;
  if (!changed) return;
  if (failure) {
    log::warn("logs are read from another endpoint", *failure, {{"chain", chain_}, {"from", label}});
  } else {
    log::info("logs are read from another endpoint, the last one is in cooldown", {{"chain", chain_}, {"from", label}});
  }
}

const Error& more_telling(const Error& first, const Error& second) {
  const auto place = [](const Error& error) { return std::ranges::find(kTelling, error.code) - kTelling.begin(); };
  return place(second) < place(first) ? second : first;
}

}  // namespace fencepost::timelock

// The health of one chain's JSON-RPC endpoints. Pinned to one loop.
//
// The configured order is the order of preference: reads from one endpoint are consistent with each other, reads from
// the currently fastest one are not. An endpoint that fails is not used during a cooldown, which grows with each
// failure in a row; after that it has its old position again.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/backoff.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/random.hpp"

namespace fencepost::evm {

struct EndpointStatus {
  std::string label;  // host and port: the URL may hold credentials
  std::size_t consecutive_failures = 0;
  std::optional<TimePoint> failing_since;  // the first of them
  std::optional<TimePoint> cooling_until;  // none: in use
  std::chrono::microseconds latency{0};    // moving average; 0: not used yet
  bool wrong_chain = false;                // not used until a later check clears it
};

class EndpointHealth {
 public:
  // Throws Exception `no_endpoints` for an empty list, `bad_url` for a URL that does not parse.
  EndpointHealth(const std::vector<std::string>& urls, const BackoffOptions& cooldown, const Clock& clock,
                 Random& random);

  std::size_t size() const { return endpoints_.size(); }
  const std::string& label(std::size_t index) const { return endpoints_[index].status.label; }
  EndpointStatus status(std::size_t index) const;

  // The endpoints to try, in order: those in use as configured, then those in cooldown, the one whose cooldown ends
  // first in front, since it may have recovered. Empty when all are on a wrong chain.
  std::vector<std::size_t> candidates() const;

  // Both return whether the endpoint changed between answering and failing; it starts as answering.
  bool succeeded(std::size_t index, std::chrono::microseconds took);
  // The cooldown lasts at least `at_least` (the value of Retry-After).
  bool failed(std::size_t index, std::chrono::seconds at_least = std::chrono::seconds(0));
  void set_wrong_chain(std::size_t index, bool wrong) { endpoints_[index].status.wrong_chain = wrong; }

 private:
  struct Entry {
    EndpointStatus status;
    Backoff backoff;
  };

  const Clock& clock_;
  std::vector<Entry> endpoints_;
};

// "host:port" of a URL, without the scheme's default port, credentials, path and query. Errors: `bad_url`.
Result<std::string> endpoint_label(const std::string& url);

}  // namespace fencepost::evm

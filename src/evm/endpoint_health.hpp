// The JSON-RPC servers of one chain and how they have behaved lately. Belongs to one loop.
//
// The configured order is the order of preference: reads from one server are consistent with each other, reads
// from whichever is fastest at the moment are not. A server that fails is left alone for a while that grows with
// each failure in a row, and comes back into its place afterwards.
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
  std::chrono::microseconds latency{0};    // moving average; 0: not asked yet
  bool wrong_chain = false;                // never asked until a later check clears it
};

class EndpointHealth {
 public:
  // Throws Exception `no_endpoints` for an empty list, `bad_url` for a URL that does not parse.
  EndpointHealth(const std::vector<std::string>& urls, const BackoffOptions& cooldown, const Clock& clock,
                 Random& random);

  std::size_t size() const { return endpoints_.size(); }
  const std::string& label(std::size_t index) const { return endpoints_[index].status.label; }
  EndpointStatus status(std::size_t index) const;

  // Whom to ask, in this order: those in use as configured, then those that cool down, the soonest to come back
  // first: a server that may be well again is better than no answer. Empty when all are on a wrong chain.
  std::vector<std::size_t> candidates() const;

  // Both return whether the endpoint changed between answering and failing; it starts as answering.
  bool succeeded(std::size_t index, std::chrono::microseconds took);
  // Left alone for at least `at_least` (what a Retry-After said).
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

// "host:port" of a URL, without scheme's default port, credentials, path and query. Errors: `bad_url`.
Result<std::string> endpoint_label(const std::string& url);

}  // namespace fencepost::evm

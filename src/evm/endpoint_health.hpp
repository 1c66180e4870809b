// The health of one chain's JSON-RPC endpoints. Pinned to one loop.
//
// The configured order is the order of preference: reads from one endpoint are consistent with each other, reads from
// the currently fastest one are not. An endpoint that fails is not used during a cooldown, which grows with each
// failure in a row; after that it has its old position again. An endpoint that answers but is behind the others is used
// after those that are not.
//
// An endpoint is behind when it has not reached the block that another one had at the check before: it lags by at least
// the time between two checks, whatever the time between blocks. It is used as before once two checks in a row find it
// level.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
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
  std::optional<TimePoint> answered_at;    // its last answer; none: there was none
  std::chrono::microseconds latency{0};    // moving average; 0: not used yet
  bool wrong_chain = false;                // not used until a later check clears it
  std::optional<std::int64_t> head;        // the newest block that it reported; none: not asked yet
  std::optional<TimePoint> head_at;        // when it did
  bool behind = false;                     // another endpoint has newer blocks
  std::size_t batch_limit = 0;             // calls that one request may hold
};

// What an answer proves of an endpoint that has failed. An endpoint with an exhausted quota, or an overloaded one, may
// still answer the cheapest questions.
enum class Proof {
  kWorks,    // it works again
  kAnswers,  // it is used again; if the next call fails, its cooldown is as long as without this answer
  kNothing,  // it stays as it is
};

class EndpointHealth {
 public:
  // Throws Exception `no_endpoints` for an empty list, `bad_url` for a URL that does not parse.
  EndpointHealth(const std::vector<std::string>& urls, const BackoffOptions& cooldown, std::size_t max_batch,
                 const Clock& clock, Random& random);

  std::size_t size() const { return endpoints_.size(); }
  const std::string& label(std::size_t index) const { return endpoints_[index].status.label; }
  EndpointStatus status(std::size_t index) const;

  // The endpoints to try, in order: those in use as configured, then those that are behind, then those in cooldown, the
  // one whose cooldown ends first in front, since it may have recovered. Empty when all are on a wrong chain.
  std::vector<std::size_t> candidates() const;
  // The candidates that are neither behind nor in cooldown. Empty when there is none.
  std::vector<std::size_t> healthy() const;
  // Whether any endpoint answered its last request and is on the right chain.
  bool any_usable() const;

  // Both return whether the endpoint changed between answering and failing; it starts as answering.
  bool succeeded(std::size_t index, std::chrono::microseconds took, Proof proof = Proof::kWorks);
  // The cooldown lasts at least `at_least` (the value of Retry-After).
  bool failed(std::size_t index, std::chrono::seconds at_least = std::chrono::seconds(0));

  // The result of a check of the chain id.
  void set_wrong_chain(std::size_t index, bool wrong);
  // The endpoint was reached over a new connection: another node may answer now.
  void doubt_chain(std::size_t index) { endpoints_[index].chain_unchecked = true; }
  // Whether that, or a failure, came after the last check of its chain id, or there was none.
  bool chain_unchecked(std::size_t index) const { return endpoints_[index].chain_unchecked; }

  void note_head(std::size_t index, std::int64_t number);
  // The newest block that an endpoint of this chain has reported lately.
  std::optional<std::int64_t> highest_head() const;
  // Compares what the endpoints reported at the same time, one entry for each; none: it was not asked or did not
  // answer. Returns the endpoints that changed between being behind and not.
  std::vector<std::size_t> compare_heads(const std::vector<std::optional<std::int64_t>>& heads);

  // How many calls a request to this endpoint may hold. Grows again, by doubling, when no batch was refused for an
  // hour.
  std::size_t batch_limit(std::size_t index);
  // A batch of that many calls was refused.
  void batch_refused(std::size_t index, std::size_t calls);

 private:
  struct Entry {
    EndpointStatus status;
    Backoff backoff;
    bool chain_unchecked = true;
    int level_checks = 0;  // in a row, of an endpoint that is behind
    TimePoint batch_limited_at = {};
  };

  const Clock& clock_;
  std::size_t max_batch_;
  std::optional<std::int64_t> highest_before_;  // at the last comparison
  std::vector<Entry> endpoints_;
};

// "host:port" of a URL, without the scheme's default port, credentials, path and query. Errors: `bad_url`.
Result<std::string> endpoint_label(const std::string& url);

}  // namespace fencepost::evm

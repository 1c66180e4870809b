// Which endpoint of a chain is asked for logs first, and which error is reported when all of them fail.
//
// The pool of endpoints replaces one that does not answer. One that answers but lags, withholds or invents is replaced
// here, because only the reader of logs can see it.
//
// Pinned to the chain's loop.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "evm/endpoint_health.hpp"

namespace fencepost::timelock {

class EndpointChoice {
 public:
  explicit EndpointChoice(std::string chain) : chain_(std::move(chain)) {}

  // Every endpoint of the right chain, once: those in use before those in cooldown, and of these the one that gave the
  // last good answer first, then in the configured order.
  std::vector<std::size_t> order(const std::vector<evm::EndpointStatus>& endpoints) const;

  // `endpoint` gave a good answer. `failure`: why the endpoints before it did not. Logs a change, once.
  void answered(std::size_t endpoint, const std::string& label, const std::optional<Error>& failure);

 private:
  std::string chain_;
  std::optional<std::size_t> last_good_;
};

// The error that says more about what is wrong, of two endpoints' errors; the first if both say as much.
const Error& more_telling(const Error& first, const Error& second);

}  // namespace fencepost::timelock

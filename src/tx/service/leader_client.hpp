// Forwards a create to the node that leads its signer. A request is forwarded once: if the receiving node is not the
// leader either, it refuses the request.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/uuid.hpp"
#include "http/client.hpp"
#include "runtime/runtime.hpp"

namespace fencepost::tx {

// A header of forwarded requests: the transaction id that the first node assigned.
inline constexpr std::string_view kForwardedHeader = "X-Fencepost-Forwarded";

class LeaderClient {
 public:
  LeaderClient(Runtime& runtime, std::chrono::milliseconds timeout);

  struct Answer {
    Uuid tx_id;
    bool existing = false;
  };
  // Any loop. Errors: the error that the leader answered with; `not_leader` (409) when the request did not reach the
  // leader, or the node no longer leads; `outcome_unknown` (503) when the leader may have accepted the request.
  awaitable<Result<Answer>> create(std::string leader_url, std::string authorization, Uuid tx_id, std::string body);

 private:
  std::chrono::milliseconds timeout_;
  std::vector<std::unique_ptr<http::Client>> clients_;  // one per loop
};

Error not_leader(const std::string& why);

}  // namespace fencepost::tx

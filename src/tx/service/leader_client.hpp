// Passes a create on to the node that leads its signer. Once: a node that is not the leader either refuses.
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

// On a forwarded request: the transaction id that the first node has given it.
inline constexpr std::string_view kForwardedHeader = "X-Fencepost-Forwarded";

class LeaderClient {
 public:
  LeaderClient(Runtime& runtime, std::chrono::milliseconds timeout);

  struct Answer {
    Uuid tx_id;
    bool existing = false;
  };
  // Any loop. The leader's own error, as it told it; `not_leader` (409) when it certainly did not get the request or
  // is none any more; `outcome_unknown` (503) when it may have.
  awaitable<Result<Answer>> create(std::string leader_url, std::string authorization, Uuid tx_id, std::string body);

 private:
  std::chrono::milliseconds timeout_;
  std::vector<std::unique_ptr<http::Client>> clients_;  // one per loop
};

Error not_leader(const std::string& why);

}  // namespace fencepost::tx

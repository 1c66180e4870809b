// Forwards a create to the node that leads its signer. The receiving node never forwards it again: if it is not the
// leader either, it refuses the request, and the first node looks for the leader again.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/uuid.hpp"
#include "http/client.hpp"
#include "runtime/runtime.hpp"
#include "tx/store/lease_store.hpp"

namespace fencepost::tx {

// A header of forwarded requests: the transaction id that the first node assigned.
inline constexpr std::string_view kForwardedHeader = "X-Fencepost-Forwarded";

class LeaderClient {
 public:
  explicit LeaderClient(Runtime& runtime);

  struct Answer {
    Uuid tx_id;
    bool existing = false;
  };
  // Any loop. May be cancelled: then the leader may have accepted the request. Errors: the error that the leader
  // answered with; `not_leader` (409) when the request did not reach the leader, or the node no longer leads;
  // `leader_lost` when the connection ended before the answer; `outcome_unknown` (503) when the leader did not answer
  // in time or failed. After the last two, the leader may have accepted the request.
  awaitable<Result<Answer>> create(std::string leader_url, std::string authorization, Uuid tx_id, std::string body,
                                   std::chrono::milliseconds timeout);

 private:
  std::vector<std::unique_ptr<http::Client>> clients_;  // one per loop
};

// An error of LeaderClient that no client sees.
inline constexpr std::string_view kLeaderLost = "leader_lost";

Error not_leader(const std::string& why);
// Adds the node to send the request to: its name, and its URL if it advertises one.
Error naming(Error error, const LeaseView& node);
Error leader_unknown(const std::string& cause);  // outcome_unknown
Error unknown_chain();                           // 400
Error no_leader();                               // 503: nothing happened
Error no_key_now();                              // the same: no live node has the key of the signer

}  // namespace fencepost::tx

// What a node does with its claims after it has looked at all consumers. Pure: no I/O.
//
// The live nodes that serve a kind share its consumers: each has at most ceil(consumers / nodes) of them. The shares
// add up to at least the number of consumers, so no consumer is left over, and a node at or below its share gives none
// away, so claims do not move once they are spread. A node that has more gives the excess back, for nodes that have
// fewer.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "outbox/delivery/consumer_store.hpp"

namespace fencepost::outbox {

struct ClaimPlan {
  std::vector<std::string> drop;     // lost to another node, or removed: stop at once
  std::vector<std::string> restart;  // changed: make the sink again
  std::vector<std::string> release;  // paused, or more than the node's share: finish the batch and give the claim back
  std::map<std::string, std::size_t> take;  // kind → how many consumers may be taken
  std::size_t unclaimed = 0;                // active consumers without a valid claim
};

// `mine`: the claims that this node serves. `most`: how many it may serve in all.
ClaimPlan plan_claims(const ConsumerOverview& overview, const std::set<std::string>& kinds,
                      const std::map<std::string, Claim>& mine, std::size_t most);

}  // namespace fencepost::outbox

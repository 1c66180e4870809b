// What notify needs to know about timelocks. The node implements it: no domain includes another.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "notify/model/flow_facts.hpp"
#include "notify/model/subscription.hpp"
#include "runtime/async.hpp"

namespace fencepost::notify {

struct WatchedContract {
  std::string standard;
  ChainHead head;  // of its chain, as far as this installation knows
};

class FlowSource {
 public:
  virtual ~FlowSource() = default;
  // Any loop may call both. nullopt: it is not there (any more). They throw as pg::Pool does. Generation 0 stands for
  // the newest one; the answer has its number.
  virtual awaitable<std::optional<FlowFacts>> find_flow(FlowRef ref) = 0;
  // Also throws kUnavailable `rpc_unavailable` while this node does not know the chain's newest block.
  virtual awaitable<std::optional<WatchedContract>> find_contract(std::int64_t chain_id, std::string address) = 0;
};

}  // namespace fencepost::notify

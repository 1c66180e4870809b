// Tells notify about timelocks: the one place where the two domains meet besides the log of events.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "evm/chain.hpp"
#include "notify/service/flow_source.hpp"
#include "timelock/service/timelock_service.hpp"
#include "timelock/store/scan_store.hpp"

namespace fencepost {

// The newest block that this installation knows of: scanned by any node, or seen by this one. `status`: nullopt if this
// node does not follow the chain. Throws kUnavailable `rpc_unavailable` if this node follows it and is behind: changes
// after the known block, which happened before now, would be taken as new.
notify::ChainHead newest_head(std::int64_t chain_id, const std::vector<timelock::ScanReport>& reports,
                              const std::optional<evm::ChainStatus>& status);

class TimelockFlows final : public notify::FlowSource {
 public:
  explicit TimelockFlows(timelock::TimelockService& timelocks) : timelocks_(timelocks) {}

  awaitable<std::optional<notify::FlowFacts>> find_flow(notify::FlowRef ref) override;
  // Also throws as newest_head.
  awaitable<std::optional<notify::WatchedContract>> find_contract(std::int64_t chain_id, std::string address) override;

 private:
  awaitable<notify::ChainHead> head_of(std::int64_t chain_id);

  timelock::TimelockService& timelocks_;
};

}  // namespace fencepost

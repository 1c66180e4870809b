// Compares what is stored about a flow with what it follows from: its events, and the contract itself. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/uint256.hpp"
#include "timelock/service/event_processor.hpp"
#include "timelock/store/flow_store.hpp"

namespace fencepost::timelock {

struct Difference {
  FlowKey key;
  std::int64_t generation = 1;
  // A member of the flow as in the API; `missing`: no row for events that queued it; `extra`: a row that no event
  // queued; `contract`: the contract says otherwise.
  std::string what;
  std::string stored;
  std::string expected;

  friend bool operator==(const Difference&, const Difference&) = default;
};

// Against the fold of its events. Two things may lag behind and are no difference:
//   - a status by time: the refresher moves it in its next step (see is_lagging);
//   - an announcement that waits for its block: `told` may be shorter than it could be while `tell_block` is set.
std::vector<Difference> compare_with_events(const FlowInput& input, const ChainView& view);

// The chain's clock has passed its time, and the refresher has not moved it yet.
bool is_lagging(const FlowRow& flow, std::int64_t clock);

// The data of the call that asks the contract about the id: queuedTransactions(bytes32) or getTimestamp(bytes32).
std::string contract_question(const FlowKey& key);

// Against the contract's answer as of the scanned block. The newest generation counts: the contract has no other.
// `stored`: the generations of one id, oldest first; nullopt when there are none.
//
//   answer                  Compound               OpenZeppelin
//   0                       executed, cancelled    cancelled
//   1                       waiting, ready,        executed
//                           expired
//   another number          -                      waiting, ready, with this eta
std::optional<Difference> compare_with_contract(std::span<const FlowRow> stored, const Uint256& answer);

}  // namespace fencepost::timelock

// From raw events to flows: folds the events of an id, compares the result with what is stored and was announced, and
// writes the flows and the events for consumers, in the caller's transaction.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "pg/transaction.hpp"
#include "timelock/model/fold.hpp"
#include "timelock/store/flow_store.hpp"

namespace fencepost::timelock {

// The chain as of the block up to which it is scanned.
struct ChainView {
  std::int64_t block = 0;
  std::int64_t clock = 0;          // its timestamp
  std::int64_t confirmations = 0;  // how many blocks must follow an event's before it is announced

  std::int64_t confirmed_block() const { return block - confirmations; }
};

// All that is known about one id.
struct FlowInput {
  FlowKey key;
  std::vector<RawEvent> events;  // those that are not orphaned
  std::vector<FlowRow> stored;   // its generations
  Uint256 grace;                 // Compound only
  bool may_tell = false;         // the history of the contract is complete
};

struct FlowOutput {
  std::vector<FlowRow> rows;  // those that changed
  std::vector<FlowEvent> events;
};

// Pure.
FlowOutput process_compound_flow(const FlowInput& input, const ChainView& view);
FlowOutput process_openzeppelin_flow(const FlowInput& input, const ChainView& view);

class EventProcessor {
 public:
  explicit EventProcessor(std::string node) : node_(std::move(node)) {}

  // Requires: the transaction has locked the chain's row. An id of a contract that is no longer watched is skipped.
  awaitable<> process(pg::Transaction& tx, std::int64_t chain_id, FlowKeys keys, ChainView view) const;

 private:
  std::string node_;
};

}  // namespace fencepost::timelock

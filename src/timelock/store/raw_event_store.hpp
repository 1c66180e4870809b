// The tables of raw events. All functions work inside the transaction that has locked the chain's row (scan_store.hpp).
#pragma once

#include <compare>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "pg/transaction.hpp"
#include "timelock/model/raw_event.hpp"
#include "timelock/model/standard.hpp"

namespace fencepost::timelock {

// An id on a contract; each time that it is queued is a generation of it.
struct FlowKey {
  Standard standard = Standard::kCompound;
  std::int64_t chain_id = 0;
  std::string contract;
  std::string flow_id;

  friend auto operator<=>(const FlowKey&, const FlowKey&) = default;
};

using FlowKeys = std::set<FlowKey>;

// Stores events that are new, and revives those that were orphaned. Returns the flows that this changes.
awaitable<FlowKeys> store_events(pg::Transaction& tx, std::int64_t chain_id, std::vector<RawEvent> events);

// Orphans the events of blocks above `fork`, except those of blocks in `branch`. Returns the flows that this changes.
awaitable<FlowKeys> orphan_events(pg::Transaction& tx, std::int64_t chain_id, std::int64_t fork,
                                  std::vector<std::string> branch);

// More come from no honest contract: the calls of one operation fit into one block.
inline constexpr std::size_t kMaxEventsOfFlow = 100'000;

// The events of these flows that are not orphaned, in any order, without the data of their calls. Throws `bad_log` if a
// flow has more than kMaxEventsOfFlow.
awaitable<std::vector<RawEvent>> load_events(pg::Transaction& tx, const FlowKeys& keys);

namespace sql {
extern const pg::Statement kLoadCompound;
extern const pg::Statement kLoadOpenZeppelin;
}  // namespace sql

}  // namespace fencepost::timelock

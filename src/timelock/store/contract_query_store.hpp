// What happened at one contract, for people who look at it. Functions throw as pg::Pool does.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <boost/json/value.hpp>

#include "pg/pool.hpp"
#include "timelock/model/flow_status.hpp"
#include "timelock/store/timelock_store.hpp"

namespace fencepost::timelock {

struct NextFlow {
  std::string flow_id;
  std::int64_t generation = 1;
  std::int64_t due_at = 0;  // seconds
};

struct LastEvent {
  std::string type;
  std::string tx_hash;
  std::int64_t block_number = 0;
  std::int64_t at = 0;  // seconds
};

inline constexpr std::int64_t kMostCounted = 10'000;  // flows of each status: the newest

struct ContractStats {
  std::map<FlowStatus, std::int64_t> flows;  // a status without flows is absent
  bool at_least = false;                     // a count has reached kMostCounted: there may be more
  std::int64_t queued_lately = 0;            // in the 30 days before the newest scanned block
  std::optional<std::int64_t> median_delay;  // seconds from queue to execution, of the newest
  std::optional<NextFlow> next;              // the waiting flow whose time comes first
  std::optional<LastEvent> last;
};
// Flows that a reorg removed and orphaned events do not count.
awaitable<ContractStats> contract_stats(pg::Pool& pool, ContractKey key);

struct GuardEvent {
  std::string type;
  boost::json::value arguments;
  std::string tx_hash;
  std::string from;
  std::optional<std::string> to;
  std::int64_t block_number = 0;
  std::string block_hash;
  std::int64_t at = 0;  // seconds
  std::int64_t log_index = 0;
  bool orphaned = false;
};
struct GuardPlace {
  std::int64_t block_number = 0;
  std::int64_t log_index = 0;
  std::string block_hash;
};
// Changes of the contract's own rules, newest first, also those that a reorg removed.
awaitable<std::vector<GuardEvent>> list_guard_events(pg::Pool& pool, ContractKey key, std::optional<GuardPlace> after,
                                                     std::size_t limit);

namespace sql {
extern const pg::Statement kNextDue;
extern const pg::Statement kLastEvent;
}  // namespace sql

}  // namespace fencepost::timelock

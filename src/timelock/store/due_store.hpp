// Flows that move by the chain's clock. Inside a transaction that has locked the chain's row.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pg/transaction.hpp"
#include "timelock/model/flow_status.hpp"
#include "timelock/store/raw_event_store.hpp"

namespace fencepost::timelock {

// The full key of a flow, with its status and its row version when it was locked.
struct FlowRef {
  FlowKey key;
  std::int64_t generation = 1;
  FlowStatus status = FlowStatus::kWaiting;
  std::string version;

  friend bool operator==(const FlowRef&, const FlowRef&) = default;
};

// Flows whose time has come at `now`, the chain's clock in seconds, locked; those that another transaction has locked
// are left out. Only flows that were announced, of contracts whose history is complete.
awaitable<std::vector<FlowRef>> get_waiting_flows_due(pg::Transaction& tx, std::int64_t chain_id, std::int64_t now,
                                                      std::size_t limit);
awaitable<std::vector<FlowRef>> get_compound_flows_expired(pg::Transaction& tx, std::int64_t chain_id, std::int64_t now,
                                                           std::size_t limit);

// Moves each flow from its status to `to` and announces it. Returns how many were moved: one that is in another status
// by now stays as it is. Requires: this transaction has locked the flows, by one of the functions above.
awaitable<std::size_t> update_flow_status(pg::Transaction& tx, std::vector<FlowRef> flows, FlowStatus to,
                                          std::string node);

// Announces reminders that are due, once each: a flow that expires within `before_expiry` seconds, a flow that has been
// ready for `ready_after` seconds. 0: no such reminders. At most `limit` of each kind. Returns how many.
awaitable<std::size_t> remind(pg::Transaction& tx, std::int64_t chain_id, std::int64_t now, std::int64_t before_expiry,
                              std::int64_t ready_after, std::size_t limit);

namespace sql {
extern const pg::Statement kWaitingDue;
extern const pg::Statement kExpired;
extern const pg::Statement kUpdateStatus;
extern const pg::Statement kRemindExpiring;
extern const pg::Statement kRemindReady;
}  // namespace sql

}  // namespace fencepost::timelock

// The table timelock_transaction_flows, as the scanner and the refresher write it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/uint256.hpp"
#include "pg/transaction.hpp"
#include "timelock/model/flow_status.hpp"
#include "timelock/store/raw_event_store.hpp"

namespace fencepost::timelock {

// One time that an id was queued.
struct FlowRow {
  FlowKey key;
  std::int64_t generation = 1;
  FlowStatus status = FlowStatus::kWaiting;
  bool confirmed = false;  // the status was announced
  bool removed = false;    // a reorg removed the event that began it
  std::string initiator;
  std::optional<std::string> via;
  Uint256 eta;
  std::optional<Uint256> delay;
  std::optional<std::string> predecessor;
  std::optional<std::int64_t> due_at;      // seconds; none: it never comes
  std::optional<std::int64_t> expired_at;  // seconds
  std::string queue_tx_hash;
  std::int64_t queue_block = 0;
  std::int64_t queued_at = 0;              // seconds
  std::optional<std::string> end_tx_hash;  // of the execution or the cancellation, by status
  std::optional<std::int64_t> end_block;
  std::optional<std::int64_t> ended_at;  // seconds
  std::int64_t calls = 0;
  std::vector<FlowStatus> told;
  std::int64_t retractions = 0;
  std::optional<std::int64_t> tell_block;

  friend bool operator==(const FlowRow&, const FlowRow&) = default;
};

// A row of the log about a flow.
struct FlowEvent {
  std::string subject;
  std::optional<std::string> from_state;
  std::string to_state;
  std::string why;
  std::string data;  // JSON of FlowStatusChanged
};

// The rows of these ids, all generations, locked in the order of their keys.
awaitable<std::vector<FlowRow>> lock_flows(pg::Transaction& tx, const FlowKeys& keys);
// The same rows in the same order, without a lock.
awaitable<std::vector<FlowRow>> read_flows(pg::Transaction& tx, const FlowKeys& keys);
// Adds or replaces the rows, and appends the events in their order.
awaitable<> save_flows(pg::Transaction& tx, std::vector<FlowRow> rows, std::vector<FlowEvent> events, std::string node);

// Ids with a change that may be announced once the chain was scanned up to `block`.
awaitable<FlowKeys> untold_flows(pg::Transaction& tx, std::int64_t chain_id, std::int64_t block, std::size_t limit);
// Ids that moved by time although the chain's clock, after a reorg, has not come so far.
awaitable<FlowKeys> flows_ahead_of(pg::Transaction& tx, std::int64_t chain_id, std::int64_t clock);

// What `fold` must know about the contracts of these ids.
struct ContractFacts {
  std::string address;
  Uint256 grace;
  bool history_done = false;
  std::optional<std::int64_t> halted_block;  // nothing from there on is scanned
};
awaitable<std::vector<ContractFacts>> contract_facts(pg::Transaction& tx, std::int64_t chain_id, const FlowKeys& keys);

// Announces changes of contracts' rules in blocks up to `confirmed_block`, and takes back what a reorg undid.
awaitable<> tell_guard_events(pg::Transaction& tx, std::int64_t chain_id, std::int64_t confirmed_block);

std::string flow_subject(const FlowKey& key);

namespace sql {
extern const pg::Statement kLockFlows;
extern const pg::Statement kUntold;
extern const pg::Statement kAhead;
}  // namespace sql

}  // namespace fencepost::timelock

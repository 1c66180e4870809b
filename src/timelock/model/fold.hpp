// Flows from raw events. Neither standard's id contains a time or a counter, so the same id may be queued again after
// it has ended: each time is a generation of the flow.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/uint256.hpp"
#include "timelock/model/flow_status.hpp"
#include "timelock/model/raw_event.hpp"

namespace fencepost::timelock {

struct QueueFacts {
  Position position;
  std::string block_hash;
  std::string tx_hash;
  std::int64_t timestamp = 0;
  std::string initiator;           // the sender of the transaction
  std::optional<std::string> via;  // the contract that the sender called
  friend bool operator==(const QueueFacts&, const QueueFacts&) = default;
};

struct EndFacts {
  FlowStatus status = FlowStatus::kExecuted;  // or kCancelled
  Position position;
  std::string block_hash;
  std::string tx_hash;
  std::int64_t timestamp = 0;
  friend bool operator==(const EndFacts&, const EndFacts&) = default;
};

struct Generation {
  std::int64_t number = 1;
  QueueFacts queue;
  Uint256 eta;                   // seconds; OpenZeppelin: the block's timestamp + delay, at most 2^256 - 1
  std::optional<Uint256> delay;  // OpenZeppelin, as in the event
  std::string predecessor;       // OpenZeppelin; 32 zero bytes: none
  std::string salt;              // OpenZeppelin; empty: none was emitted
  std::vector<Call> calls;       // by index
  std::optional<EndFacts> end;   // nullopt: open
  friend bool operator==(const Generation&, const Generation&) = default;
};

// The generations of ONE flow, oldest first, from all of its events that are on the branch. Events may come in any
// order and more than once. An event that does not fit the contract's rules changes nothing: it stays a raw event.
//
//   event                    no open generation   open generation
//   QueueTransaction         begins one           ignored: already queued (Compound emits it all the same)
//   CallScheduled            begins one           one more call, if it is of the same transaction; else ignored
//   CallSalt                 ignored              its salt, if it has none yet
//   ExecuteTransaction,      ignored              ends it as executed: the first event of a batch counts
//   CallExecuted
//   CancelTransaction,       ignored              ends it as cancelled
//   Cancelled
//   guard events             ignored              ignored: a new delay leaves queued operations as they are
std::vector<Generation> fold(std::span<const RawEvent> events);

// Seconds as a time that PostgreSQL can store (up to the year 294276); nullopt when they are larger.
std::optional<std::int64_t> due_time(const Uint256& seconds);

// The last second in which a Compound flow can be executed; at most 2^256 - 1.
Uint256 expires_after(const Uint256& eta, const Uint256& grace);

// Whether the time has come, by the timestamp of the newest block that was scanned.
bool is_ready(const Generation& flow, std::int64_t clock);
bool is_expired(const Generation& flow, Standard standard, const Uint256& grace, std::int64_t clock);

// An end wins over the clock.
FlowStatus status_at(const Generation& flow, Standard standard, const Uint256& grace, std::int64_t clock);

// Whether a flow that is ready would revert all the same: its predecessor has not been executed. `predecessor` is the
// status of the predecessor's newest generation; nullopt when there is no such flow.
bool is_blocked(const Generation& flow, std::optional<FlowStatus> predecessor);

}  // namespace fencepost::timelock

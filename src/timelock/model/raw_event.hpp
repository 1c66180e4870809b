// One event of a timelock contract, decoded and otherwise as the chain has it. Raw events are the facts; flows are
// folded from them (fold.hpp).
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/name_table.hpp"
#include "base/uint256.hpp"
#include "timelock/model/standard.hpp"

namespace fencepost::timelock {

enum class EventType {
  kQueueTransaction,
  kExecuteTransaction,
  kCancelTransaction,
  kCallScheduled,
  kCallExecuted,
  kCallSalt,
  kCancelled,
  kNewAdmin,
  kNewPendingAdmin,
  kNewDelay,
  kMinDelayChange,
  kRoleGranted,
  kRoleRevoked,
  kRoleAdminChanged,
};

// Names as in the contracts.
inline constexpr auto kEventTypes = name_table<EventType>({
    // Compound: about one flow.
    {EventType::kQueueTransaction, "QueueTransaction"},
    {EventType::kExecuteTransaction, "ExecuteTransaction"},
    {EventType::kCancelTransaction, "CancelTransaction"},
    // OpenZeppelin: about one flow.
    {EventType::kCallScheduled, "CallScheduled"},
    {EventType::kCallExecuted, "CallExecuted"},
    {EventType::kCallSalt, "CallSalt"},
    {EventType::kCancelled, "Cancelled"},
    // About the contract itself: who may act, and after which delay.
    {EventType::kNewAdmin, "NewAdmin"},
    {EventType::kNewPendingAdmin, "NewPendingAdmin"},
    {EventType::kNewDelay, "NewDelay"},
    {EventType::kMinDelayChange, "MinDelayChange"},
    {EventType::kRoleGranted, "RoleGranted"},
    {EventType::kRoleRevoked, "RoleRevoked"},
    {EventType::kRoleAdminChanged, "RoleAdminChanged"},
});

// Whether the event is about the contract and not about one flow.
constexpr bool is_guard_event(EventType type) {
  return type >= EventType::kNewAdmin;
}

// Where the event is on its branch. Events are ordered by it.
struct Position {
  std::int64_t block_number = 0;
  std::int64_t log_index = 0;
  friend auto operator<=>(const Position&, const Position&) = default;
};

// One call that a flow makes.
struct Call {
  std::int64_t index = 0;  // in the batch; 0 for Compound
  std::string target;
  Uint256 value;
  // Compound only; empty: `data` begins with the selector. The chain allows any bytes here. `signature` is fit for
  // PostgreSQL: valid UTF-8 without NUL. Where that is not what the chain has, `signature_bytes` has the bytes as hex.
  std::string signature;
  std::string signature_bytes;
  std::string data;  // hex with 0x

  friend bool operator==(const Call&, const Call&) = default;
};

struct RawEvent {
  Standard standard = Standard::kCompound;
  EventType type = EventType::kQueueTransaction;
  std::int64_t chain_id = 0;
  std::string contract;  // lowercase, like all addresses and hashes here
  std::string flow_id;   // 32 bytes as hex; empty for a guard event

  Position position;
  std::string block_hash;
  std::int64_t block_timestamp = 0;  // seconds
  std::string tx_hash;
  std::string tx_from;
  std::optional<std::string> tx_to;  // the contract that the sender called, such as a Safe; none: it created one

  Call call;                     // of Queue-, Execute-, CancelTransaction, CallScheduled and CallExecuted
  std::optional<Uint256> eta;    // Compound: absolute seconds
  std::optional<Uint256> delay;  // CallScheduled: seconds from its block
  std::string predecessor;       // CallScheduled: 32 bytes as hex
  std::string salt;              // CallSalt: 32 bytes as hex
  std::vector<std::pair<std::string, std::string>> guard;  // a guard event's arguments, by name

  friend bool operator==(const RawEvent&, const RawEvent&) = default;
};

}  // namespace fencepost::timelock

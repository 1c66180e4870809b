// What mails say about a flow. The node fills these from the domain that follows timelocks: notify knows no other
// domain.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"

namespace fencepost::notify {

// Texts are as in the API: `standard` is "compound" or "openzeppelin", addresses and hashes are lowercase hex with 0x.
struct FlowRef {
  std::string standard;
  std::int64_t chain_id = 0;
  std::string contract;
  std::string flow_id;
  std::int64_t generation = 1;

  friend auto operator<=>(const FlowRef&, const FlowRef&) = default;
};

struct CallArgument {
  std::string name;  // may be empty
  std::string type;
  std::string value;
};

struct FlowCall {
  std::string target;
  std::string value;                    // in wei, decimal
  std::string data;                     // hex, with the selector where the standard has it there
  std::string signature;                // "transfer(address,uint256)"; empty: not known
  std::string selector;                 // 0x and eight digits; empty: the call has no data
  std::vector<CallArgument> arguments;  // if `explained`
  bool explained = false;               // there is exactly one way to read the call
};

struct FlowFacts {
  FlowRef ref;
  std::string contract_name;  // the operator's remark; may be empty
  std::string initiator;
  std::optional<std::string> via;
  std::optional<TimePoint> queued_at;
  std::optional<TimePoint> due_at;
  std::optional<TimePoint> expires_at;  // Compound only
  std::optional<std::string> blocked_by;
  std::string queue_tx_hash;
  std::vector<FlowCall> calls;
};

// One change of a flow's status.
struct FlowTransition {
  std::optional<std::string> from;  // none: the flow is new
  std::string to;                   // "waiting", "ready", "executed", "cancelled", "expired"
  bool correction = false;          // the change was announced, and a reorg has undone it
  std::optional<std::string> tx_hash;
  TimePoint changed_at;
};

}  // namespace fencepost::notify

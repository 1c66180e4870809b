// A change of a flow's status as the log announces it (FlowStatusChanged, docs/events.md). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "notify/model/flow_facts.hpp"

namespace fencepost::notify {

struct FlowChange {
  FlowRef ref;
  std::optional<std::string> from;
  std::string to;
  bool retracted = false;       // the change was announced before, and is void
  std::int64_t retraction = 0;  // how many changes of the flow were taken back so far
  std::optional<std::string> tx_hash;
  std::optional<std::int64_t> block;  // none: the chain's clock made the change
  TimePoint changed_at;               // the block's time, or the time that was due
  std::string initiator;
  std::optional<std::string> via;
};

// `envelope`: LogEvent::envelope. Throws Exception for what is no FlowStatusChanged: a bug.
FlowChange read_flow_change(std::string_view envelope);

}  // namespace fencepost::notify

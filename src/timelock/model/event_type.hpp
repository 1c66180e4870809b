// The events about timelocks, as consumers get them. docs/events.md describes their fields. A test compares this list
// with docs/events.md and with the events that the sources append.
#pragma once

#include "base/name_table.hpp"
#include "outbox/feed/event_domain.hpp"

namespace fencepost::timelock {

enum class TimelockEvent { kFlowStatusChanged, kRulesChanged, kReminder, kVerifyFailed };

inline constexpr auto kTimelockEvents = name_table<TimelockEvent>({
    {TimelockEvent::kFlowStatusChanged, "FlowStatusChanged", "The status of a flow has changed, or a change is void."},
    {TimelockEvent::kRulesChanged, "TimelockRulesChanged", "The delay, the admin or a role of a timelock has changed."},
    {TimelockEvent::kReminder, "FlowReminder", "A flow expires soon, or has been ready for long."},
    {TimelockEvent::kVerifyFailed, "TimelockVerifyFailed",
     "Flows of a timelock differ from its events or the contract."},
});

// What the log's readers must know about these events.
outbox::EventDomain event_domain();

}  // namespace fencepost::timelock

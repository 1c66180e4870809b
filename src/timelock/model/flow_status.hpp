// The states of a flow: one queued operation of a timelock, from its queue event to its end.
//
// Only Compound's flows expire. An expired flow may still end: Compound cancels it at any time, and an execution that
// was mined just before the expiry may be seen after it.
#pragma once

#include "base/lifecycle.hpp"

namespace fencepost::timelock {

enum class FlowStatus { kWaiting, kReady, kExecuted, kCancelled, kExpired };

inline constexpr auto kFlow = lifecycle<FlowStatus>(
    "flow", {
                {FlowStatus::kWaiting,
                 "waiting",
                 {{FlowStatus::kReady, "its time has come"},
                  {FlowStatus::kExecuted, "executed"},
                  {FlowStatus::kCancelled, "cancelled"},
                  {FlowStatus::kExpired, "its grace period is over"}}},
                {FlowStatus::kReady,
                 "ready",
                 {{FlowStatus::kExecuted, "executed"},
                  {FlowStatus::kCancelled, "cancelled"},
                  {FlowStatus::kExpired, "its grace period is over"}}},
                {FlowStatus::kExecuted, "executed", {}},
                {FlowStatus::kCancelled, "cancelled", {}},
                {FlowStatus::kExpired,
                 "expired",
                 {{FlowStatus::kExecuted, "a late event"}, {FlowStatus::kCancelled, "cancelled"}}},
            });

}  // namespace fencepost::timelock

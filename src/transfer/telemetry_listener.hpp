// Wakes the coordinator when the database notifies that transfers became due. Nodes use a channel of their own, with
// one notification per commit; `economy_events` (transfer_check_result, transfer_check_approved, transaction_denied) is
// for other programs.
//
// Notifications are only hints: after every connect, and at a slow interval, the coordinator looks for due transfers.
#pragma once

#include <string_view>

#include "pg/listener.hpp"
#include "transfer/transfer_event_pool_coordinator.hpp"

namespace fencepost::transfer {

inline constexpr std::string_view kWorkChannel = "economy_work";

class TelemetryListener {
 public:
  // Requires: the listener has not started, and the coordinator outlives it.
  TelemetryListener(pg::Listener& listener, TransferEventPoolCoordinator& coordinator);
};

}  // namespace fencepost::transfer

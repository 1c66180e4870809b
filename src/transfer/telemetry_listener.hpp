// Wakes the coordinator when the database says that transfers became due. Nodes have a channel of their own for that,
// one notification a commit; `economy_events` (transfer_check_result, transfer_check_approved, transaction_denied) is
// for others to listen to.
//
// A hint, never the truth: on every connect, and on a slow beat, the coordinator is sent to look for itself.
#pragma once

#include <string_view>

#include "pg/listener.hpp"
#include "transfer/transfer_event_pool_coordinator.hpp"

namespace fencepost::transfer {

inline constexpr std::string_view kWorkChannel = "economy_work";

class TelemetryListener {
 public:
  // Before the listener starts; the coordinator must outlive it.
  TelemetryListener(pg::Listener& listener, TransferEventPoolCoordinator& coordinator);
};

}  // namespace fencepost::transfer

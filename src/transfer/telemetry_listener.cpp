#include "transfer/telemetry_listener.hpp"

namespace fencepost::transfer {

TelemetryListener::TelemetryListener(pg::Listener& listener, TransferEventPoolCoordinator& coordinator) {
  listener.subscribe(
      std::string(kWorkChannel), [&coordinator](std::string_view) { coordinator.wake(); },
      [&coordinator] { coordinator.wake(); });
}

}  // namespace fencepost::transfer

#include "transfer/telemetry_listener.hpp"

namespace fencepost::transfer {

void listen_for_work(pg::Listener& listener, TransferEventPoolCoordinator& coordinator) {
  listener.subscribe(
      std::string(kWorkChannel), [&coordinator](std::string_view) { coordinator.wake(); },
      [&coordinator] { coordinator.wake(); });
}

}  // namespace fencepost::transfer

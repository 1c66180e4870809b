// Settings of the timelock domain (docs/configuration.md).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace fencepost::timelock {

struct ScannerOptions {
  // How many blocks must follow an event's before a change is announced. A chain may have its own.
  std::int64_t confirmations = 12;
  std::chrono::milliseconds flow_refresh_interval{30'000};
  std::size_t flow_refresh_batch_size = 200;
  // Reminders, as events; 0: none.
  std::chrono::milliseconds remind_before_expiry{0};
  std::chrono::milliseconds remind_ready_after{0};
  // How often flows are folded again and compared with the contracts; 0: never.
  std::chrono::milliseconds verify_interval{std::chrono::hours(24)};
};

}  // namespace fencepost::timelock

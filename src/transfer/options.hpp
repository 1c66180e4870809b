// Options of transfers that the operator sets. The settings of a guild are in the database.
#pragma once

#include <chrono>
#include <cstddef>

namespace fencepost::transfer {

struct TransferOptions {
  bool event_pool_enabled = false;  // whether a request without a mode goes to the pool
  std::size_t batch = 500;          // transfers in one transaction
  std::size_t lanes = 1;            // sets in flight at a time, in each mode; the transfers of one payer stay in order
  std::chrono::milliseconds sweep_interval{5'000};
  std::chrono::milliseconds expiry_interval{60'000};
  std::chrono::milliseconds lane_patience{5'000};  // then a lane's holder that waits for its client is terminated
  std::chrono::milliseconds audit_interval = std::chrono::hours(24);  // 0: no periodic audit
};

}  // namespace fencepost::transfer

// What an operator may choose about transfers. What a guild may choose is in its settings.
#pragma once

#include <chrono>
#include <cstddef>

namespace fencepost::transfer {

struct TransferOptions {
  bool event_pool_enabled = false;  // the mode of a request that names none
  std::size_t batch = 500;          // transfers in one transaction
  std::size_t lanes = 2;            // sets under way at a time, in each mode; a payer's follow each other
  std::chrono::milliseconds sweep_interval{5'000};
  std::chrono::milliseconds expiry_interval{60'000};
  std::chrono::milliseconds audit_interval = std::chrono::hours(24);  // 0: never by itself
};

}  // namespace fencepost::transfer

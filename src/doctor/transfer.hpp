// Whether transfers in the pool are served: what the economy's tables say about the nodes that should do it.
#pragma once

#include <cstddef>

#include "transfer/pending_transfer_gateway.hpp"

#include "config/config.hpp"
#include "doctor/doctor.hpp"

namespace fencepost::doctor {

struct TransferFacts {
  transfer::PoolState pool;
  std::size_t nodes = 0;      // that have shown themselves lately
  std::size_t listeners = 0;  // sessions of nodes that listen on the channel of due transfers
};

// One finding. A transfer that has been due for long means that no coordinator runs; a node that does not listen comes
// late; one that waits is no fault.
Finding assess_transfers(const TransferFacts& facts, const Config& config);

// Asks the database. Blocks; a database that cannot be asked is a warning here, and a failure of "database".
Findings check_transfers(const Config& config);

}  // namespace fencepost::doctor

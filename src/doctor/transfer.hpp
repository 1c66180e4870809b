// Checks that nodes process the transfers in the pool, from the economy's tables and the nodes' sessions.
#pragma once

#include <cstddef>

#include "transfer/pending_transfer_gateway.hpp"

#include "config/config.hpp"
#include "doctor/doctor.hpp"

namespace fencepost::doctor {

struct TransferFacts {
  transfer::PoolState pool;
  std::size_t nodes = 0;      // with a recent heartbeat
  std::size_t listeners = 0;  // sessions of nodes that listen on the channel of due transfers
};

// One finding. A transfer that has been due for long is a failure: no coordinator processes it. A node that does not
// listen is a warning: it finds due transfers late. A transfer that waits for its checks is normal.
Finding assess_transfers(const TransferFacts& facts, const Config& config);

// Asks the database. Blocks. An unreachable database is only a warning here: the check "database" reports the failure.
Findings check_transfers(const Config& config);

}  // namespace fencepost::doctor

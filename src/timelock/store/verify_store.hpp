// Pages of the ids that the verifier compares.
#pragma once

#include <cstddef>
#include <string>

#include "pg/transaction.hpp"
#include "timelock/store/flow_store.hpp"
#include "timelock/store/timelock_store.hpp"

namespace fencepost::timelock {

// The next ids of the contract after `after`, in order: those that have a flow, and those that have an event. So a flow
// without events is found, and events without a flow.
awaitable<FlowKeys> flow_keys_after(pg::Transaction& tx, ContractKey contract, Standard standard, std::string after,
                                    std::size_t limit);

}  // namespace fencepost::timelock

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

// What a verification of one contract found.
struct VerifyFailure {
  ContractKey contract;
  Standard standard = Standard::kCompound;
  std::int64_t flows = 0;        // that were compared
  std::int64_t differences = 0;  // at least one
  std::string flow_id;           // of the first difference
  std::string what;              // of it: Difference::what
};

// Announces it, with TimelockVerifyFailed.
awaitable<> announce_verify_failure(pg::Pool& pool, VerifyFailure failure);

}  // namespace fencepost::timelock

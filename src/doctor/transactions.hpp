// Checks that the tables of the transaction manager agree: each transaction is exactly one of waiting, open and ended.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "tx/store/consistency.hpp"

#include "config/config.hpp"
#include "doctor/doctor.hpp"

namespace fencepost::doctor {

struct TransactionFacts {
  tx::WorkReport work;
  std::vector<tx::Fault> records;  // contradictions that only a look at every transaction finds
  bool all_work = true;            // false: open and waiting ones could not be read in time
  bool all_records = true;         // false: the others could not
};

// One finding. Any contradiction is a failure; it names at most tx::kFaultExamples transactions. A check that took too
// long is a warning.
Finding assess_transactions(const TransactionFacts& facts);

// Asks the database; a statement may take `limit`. Blocks. An unreachable database, or one with another schema, is only
// a warning here: the check "database" reports the failure.
Findings check_transactions(const Config& config, std::chrono::milliseconds limit);

}  // namespace fencepost::doctor

// Checks that the tables of the transaction manager agree: each transaction is exactly one of waiting, open and ended.
// And whether a signer waits for an operator.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "tx/store/ability_store.hpp"
#include "tx/store/consistency.hpp"

#include "config/config.hpp"
#include "doctor/doctor.hpp"

namespace fencepost::doctor {

struct TransactionFacts {
  tx::WorkReport work;
  std::vector<tx::Fault> records;      // contradictions that only a look at every transaction finds
  std::vector<tx::UnledSigner> unled;  // what no live node can finish
  bool all_work = true;                // false: open and waiting ones could not be read in time
  bool all_records = true;             // false: the others could not
  std::vector<tx::WaitingSigner> waiting_signers;
};

// One finding. Any contradiction is a failure; it names at most tx::kFaultExamples transactions. A check that took too
// long is a warning.
Finding assess_transactions(const TransactionFacts& facts);

// One finding for each of the first signers whose transactions no live node can finish, and one for the others.
Findings assess_unled(const std::vector<tx::UnledSigner>& unled);

// One finding. Every signer that waits for an operator is a failure; it names some, why, and what to do.
Finding assess_signers(const std::vector<tx::WaitingSigner>& waiting);

// Asks the database; a statement may take `limit`. Blocks. An unreachable database, or one with another schema, is only
// a warning here: the check "database" reports the failure.
Findings check_transactions(const Config& config, std::chrono::milliseconds limit);

}  // namespace fencepost::doctor

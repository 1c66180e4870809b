// What a reorg asks of the tables beyond the steps of single transactions.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/uuid.hpp"
#include "evm/header_window.hpp"
#include "pg/pool.hpp"
#include "tx/model/lease.hpp"

namespace fencepost::tx {

// For each signer: everything in flight from that nonce up is broadcast again now, in nonce order. What somebody keeps
// locked for longer than kLockPatience is left to the next resubmission.
awaitable<> make_due_from(pg::Pool& pool, std::string node, std::vector<std::pair<SignerLease, std::int64_t>> from);

// Transactions that ended in blocks above `ancestor` whose place on the node's own branch is another block's by now,
// and finally so (at most `final_number`: a node that is on a dead fork itself must not cry wolf). Each is told once,
// as TxFinalityViolated, and stays as it is. Any node may find them: the lease of a signer without work is nobody's.
struct Violations {
  std::vector<Uuid> announced;
  bool all = true;  // false: another session has one locked or reported it first; look again
};
awaitable<Violations> report_finality_violations(pg::Pool& pool, std::string node, std::int64_t chain_id,
                                                 std::int64_t ancestor, std::int64_t final_number,
                                                 const evm::HeaderWindow& window);

}  // namespace fencepost::tx

// The writes after a reorg that are not steps of single transactions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/uuid.hpp"
#include "evm/header_window.hpp"
#include "pg/pool.hpp"
#include "tx/model/lease.hpp"

namespace fencepost::tx {

// For each signer: makes everything in flight from that nonce up due for broadcast now. Rows that another session locks
// for longer than kLockPatience are left to the next resubmission.
awaitable<> make_due_from(pg::Pool& pool, std::string node, std::vector<std::pair<SignerLease, std::int64_t>> from);

// Finds transactions that ended in blocks above `ancestor` that the node's own branch has replaced. Looks only at
// blocks up to `final_number`, so that a node on an orphaned fork raises no false alarm. Announces each once, as
// TxFinalityViolated, and changes no state. Not fenced: a signer without open transactions may have no leader.
struct Violation {
  Uuid tx_id;
  SignerKey key;
  std::optional<std::int64_t> nonce;
  std::optional<std::string> tx_hash;
  std::int64_t block = 0;
  std::optional<std::int64_t> fencing_token;  // of the write that ended it
};
struct Violations {
  std::vector<Violation> announced;
  bool all = true;  // false: another session has locked one or reported it first; call again later
};
awaitable<Violations> report_finality_violations(pg::Pool& pool, std::string node, std::int64_t chain_id,
                                                 std::int64_t ancestor, std::int64_t final_number,
                                                 const evm::HeaderWindow& window);

}  // namespace fencepost::tx

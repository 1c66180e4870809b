// The writes after a reorg that are not steps of single transactions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/uuid.hpp"
#include "pg/batch.hpp"
#include "pg/pool.hpp"
#include "tx/model/lease.hpp"

namespace fencepost::tx {

namespace sql {
extern const pg::Statement kEndedAbove;
extern const pg::Statement kEndedBelow;
}  // namespace sql

// For each signer: makes everything in flight from that nonce up due for broadcast now. Rows that another session locks
// for longer than kLockPatience are left to the next resubmission.
awaitable<> make_due_from(pg::Pool& pool, std::string node, std::vector<std::pair<SignerLease, std::int64_t>> from);

// A transaction that ended in that block, and was not reported as undone.
struct EndedTx {
  Uuid tx_id;
  std::int64_t block = 0;
  std::string block_hash;
};
// Those that ended in the blocks above `ancestor`, up to `final_number`.
awaitable<std::vector<EndedTx>> ended_above(pg::Pool& pool, std::int64_t chain_id, std::int64_t ancestor,
                                            std::int64_t final_number);
// Those that ended in the highest block below `block` in which any did; empty when there is none.
awaitable<std::vector<EndedTx>> ended_below(pg::Pool& pool, std::int64_t chain_id, std::int64_t block);

// Announces that these transactions were undone: each once, as TxFinalityViolated. Changes no state. Not fenced: a
// signer without open transactions may have no leader.
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
awaitable<Violations> report_finality_violations(pg::Pool& pool, std::string node, std::vector<Uuid> undone);

}  // namespace fencepost::tx

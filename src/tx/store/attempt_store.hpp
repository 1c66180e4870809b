// Claiming a broadcast, first or repeated, before the chain hears of it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/hex.hpp"
#include "base/uuid.hpp"
#include "pg/batch.hpp"
#include "pg/pool.hpp"
#include "tx/model/attempt.hpp"
#include "tx/model/state.hpp"
#include "tx/store/fence.hpp"

namespace fencepost::tx {

namespace sql {
extern const pg::Statement kClaimAttempts;
extern const pg::Statement kDueResubmits;
extern const pg::Statement kClaimResubmits;
}  // namespace sql

// A signed transaction, to be stored before anybody else sees it.
struct Claim {
  SignerLease lease;
  Uuid tx_id;
  TxState from = TxState::kAllocated;
  std::optional<std::string> previous_hash;  // guards: nobody signed in between
  std::string tx_hash;
  AttemptKind kind = AttemptKind::kOriginal;
  Bytes raw;
  std::string fees;  // JSON
};
// What claim_attempts sends.
pg::Batch claim_statements(const std::string& node, const std::vector<Claim>& claims,
                           std::chrono::milliseconds interval);
struct ClaimResult {
  StepOutcome outcome = StepOutcome::kMoved;
  std::int64_t claims = 0;  // of these bytes, this one included
};
// Stores attempts and makes each the one that counts; the next broadcast is due `interval` from now. A hash that the
// transaction has already is that attempt again, with its outcome open; one that is another transaction's is kMoved.
awaitable<std::vector<ClaimResult>> claim_attempts(pg::Pool& pool, std::string node, std::vector<Claim> claims,
                                                   std::chrono::milliseconds interval);

// Claims broadcasts that are due again (same bytes), in nonce order: each is this node's alone for `interval`, unless
// somebody makes it due before.
struct Resubmit {
  SignerLease lease;
  Uuid tx_id;
  TxState state = TxState::kTracking;
  std::int64_t nonce = 0;
  std::string tx_hash;
  std::string raw;
  std::int32_t retry_count = 0;
  std::string due_at;  // the next time; another when somebody has asked for another broadcast since
};
awaitable<std::vector<Resubmit>> claim_resubmits(pg::Pool& pool, std::string node, std::int64_t chain_id,
                                                 std::chrono::milliseconds interval, std::size_t limit);

}  // namespace fencepost::tx

// Claims a broadcast, first or repeated, before the bytes are sent to an endpoint.
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

// A signed transaction that is stored before any endpoint gets it.
struct Claim {
  SignerLease lease;
  Uuid tx_id;
  TxState from = TxState::kAllocated;
  std::optional<std::string> previous_hash;  // guard: no other attempt was signed since
  std::string tx_hash;
  AttemptKind kind = AttemptKind::kOriginal;
  Bytes raw;
  std::string fees;  // JSON
};
// The statements that claim_attempts sends.
pg::Batch claim_statements(const std::string& node, const std::vector<Claim>& claims,
                           std::chrono::milliseconds interval);
struct ClaimResult {
  StepOutcome outcome = StepOutcome::kMoved;
  std::int64_t claims = 0;  // number of claims of these bytes, including this one
};
// Stores attempts and makes each the current one; the next broadcast is due `interval` from now. One result per claim,
// in order. A hash that the transaction already has claims that attempt again and clears its outcome. A hash of another
// transaction is kMoved. Throws as Connection::run.
awaitable<std::vector<ClaimResult>> claim_attempts(pg::Pool& pool, std::string node, std::vector<Claim> claims,
                                                   std::chrono::milliseconds interval);

// Claims repeated broadcasts that are due (same bytes), in nonce order. Each belongs to this node alone for `interval`,
// unless a reorg, a takeover or an operator makes it due earlier.
struct Resubmit {
  SignerLease lease;
  Uuid tx_id;
  TxState state = TxState::kTracking;
  std::int64_t nonce = 0;
  std::string tx_hash;
  std::string raw;
  std::int32_t retry_count = 0;
  std::string due_at;  // the next due time; differs from the stored one when a new broadcast was requested since
};
awaitable<std::vector<Resubmit>> claim_resubmits(pg::Pool& pool, std::string node, std::int64_t chain_id,
                                                 std::chrono::milliseconds interval, std::size_t limit);

// Stores another transaction at the nonce of an open transaction without a receipt, as an external attempt. It may be
// an attempt of a transaction that released this nonce: the attempt then moves to the open one. kMoved when the
// transaction has changed since, or when the hash belongs to another one that has its nonce. Safe to repeat.
awaitable<StepOutcome> record_taker(pg::Pool& pool, std::string node, SignerLease lease, Uuid tx_id, TxState from,
                                    std::string tx_hash);

}  // namespace fencepost::tx

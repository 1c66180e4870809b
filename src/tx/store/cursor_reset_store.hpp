// Moves a signer's cursor down, after the chain was reset: what had the higher nonces is given up, and these nonces are
// given again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/uuid.hpp"
#include "pg/batch.hpp"
#include "pg/pool.hpp"
#include "tx/store/operator_store.hpp"

namespace fencepost::tx {

namespace sql {
extern const pg::Statement kNonceHolders;
extern const pg::Statement kNonceAttempts;
extern const pg::Statement kLockHolders;
extern const pg::Statement kLockEndedHolders;
extern const pg::Statement kResetCursor;
}  // namespace sql

inline constexpr std::size_t kMostReset = 10'000;  // transactions that one reset may give up

// A transaction with a nonce at or above the new cursor.
struct NonceHolder {
  Uuid tx_id;
  std::int64_t nonce = 0;
  std::optional<std::int64_t> receipt_block;
  std::optional<std::string> receipt_hash;
};

// What a reset gives up, as the tables have it now.
struct ResetPlan {
  std::string read_at;  // the database's time
  std::int64_t next_nonce = 0;
  bool sending = false;              // a broadcast was claimed less than `patience` ago
  std::vector<NonceHolder> holders;  // by nonce; one more than kMostReset when there are too many
  std::vector<std::string> hashes;   // of all their attempts; more than 4 × kMostReset when there are too many
};
// nullopt: the signer has no cursor.
awaitable<std::optional<ResetPlan>> plan_reset(pg::Pool& pool, SignerKey key, std::int64_t next_nonce,
                                               std::chrono::milliseconds patience);

struct ResetDone {
  StepOutcome outcome = StepOutcome::kFenced;
  std::int64_t given_up = 0;  // open transactions that have ended
  std::int64_t released = 0;  // nonces that may be given again
};
// The statements that reset_cursor sends.
pg::Batch reset_statements(const std::string& node, const OperatorAct& act, std::int64_t next_nonce,
                           const ResetPlan& plan);
// Requires: the plan was read for this nonce, and the chain knows none of its hashes. In one commit: the cursor is at
// `next_nonce`, the signer does not wait for an operator, open transactions end FAILED_FINAL `given_up`, mined ones
// that had ended are reported as undone, and all release their nonce. kMoved, with nothing written, when another
// transaction got such a nonce since the plan was read, an attempt was added, or a broadcast was claimed. Throws as
// Connection::run, or `tx_locked`.
awaitable<ResetDone> reset_cursor(pg::Pool& pool, std::string node, OperatorAct act, std::int64_t next_nonce,
                                  ResetPlan plan);

}  // namespace fencepost::tx

// Moving transactions forward: the money path's second half. Each write is fenced and guarded, and carries its
// history and its events with it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/hex.hpp"
#include "base/uuid.hpp"
#include "pg/batch.hpp"
#include "pg/pool.hpp"
#include "tx/confirmations.hpp"
#include "tx/lease.hpp"
#include "tx/state.hpp"

namespace fencepost::tx {

namespace sql {
// As constants, so that tests can ask PostgreSQL for their plans.
extern const pg::Statement kLockRows;
extern const pg::Statement kApplySteps;
extern const pg::Statement kClaimAttempts;
extern const pg::Statement kDueSubmits;
extern const pg::Statement kDueResubmits;
extern const pg::Statement kClaimResubmits;
extern const pg::Statement kMatchAttempts;
extern const pg::Statement kStaleReceipts;
extern const pg::Statement kNoteChecks;
extern const pg::Statement kMinedBetween;
extern const pg::Statement kOpenHeads;
}  // namespace sql

// Where a receipt says that a transaction is.
struct StoredReceipt {
  std::string json;
  std::int64_t block = 0;
  std::string block_hash;
};

inline constexpr std::chrono::milliseconds kNever{-1};

// One change of one transaction. Whatever is not set stays as it is.
struct Step {
  Step(SignerLease held, Uuid id, TxState from_state, TxState to_state, std::string reason)
      : lease(std::move(held)), tx_id(id), from(from_state), to(to_state), why(std::move(reason)) {}

  SignerLease lease;
  Uuid tx_id;
  TxState from;
  TxState to;
  std::string why;                                 // into the history, unless `quiet`
  bool quiet = false;                              // timers and retries only: no line in the history
  std::optional<std::string> expect_receipt_hash;  // guards: the receipt is (still) of this block; "" for none

  std::optional<std::string> sub_state;  // "" clears it
  std::optional<std::string> error;      // "" clears it
  bool failed_try = false;               // counts one retry
  bool reset_tries = false;
  std::optional<std::chrono::milliseconds> due_in;  // until the next broadcast; kNever: not by itself
  std::optional<std::string> tx_hash;               // the attempt that counts from now on
  std::optional<StoredReceipt> receipt;
  bool drop_receipt = false;  // and the newest attempt that can be sent counts again
  std::optional<ToldBlock> told;
  bool untell = false;
  std::optional<std::string> confirmations;    // JSON
  bool final = false;                          // sets confirmed_at
  std::optional<std::string> attempt_outcome;  // of the attempt that counts, after this step
  bool begins_broadcast = false;               // counts one more claim of that attempt; with attempt_outcome
  std::optional<std::int64_t> expect_claims;   // guards: no broadcast of that attempt was begun since
  std::vector<std::pair<std::string, std::string>> events;  // type and JSON data, in order
};

enum class StepOutcome {
  kDone,
  kFenced,  // the lease is not ours any more: drop everything about this signer
  kMoved,   // somebody moved it first; look again
};

// Of a row with the column `outcome`.
StepOutcome read_outcome(const pg::Row& row);

// What apply_steps sends.
pg::Batch step_statements(const std::string& node, const std::vector<Step>& steps);
// One round trip, one commit; one outcome for each, in order. A transaction may appear once. Throws as Connection::run.
awaitable<std::vector<StepOutcome>> apply_steps(pg::Pool& pool, std::string node, std::vector<Step> steps);

// A signed transaction, to be stored before anybody else sees it.
struct Claim {
  SignerLease lease;
  Uuid tx_id;
  TxState from = TxState::kAllocated;
  std::optional<std::string> previous_hash;  // guards: nobody signed in between
  std::string tx_hash;
  std::string kind = "original";
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

// A transaction to be broadcast for the first time.
struct DueSubmit {
  SignerLease lease;
  Uuid tx_id;
  std::int64_t nonce = 0;
  std::string payload;
  std::int64_t gas_limit = 0;
  std::int32_t retry_count = 0;
  std::optional<std::string> tx_hash;    // of the newest attempt, if there is one
  std::optional<std::string> raw;        // "0x…"
  std::optional<std::string> outcome;    // of that attempt
  std::optional<std::string> sub_state;  // why it was not taken
  std::int64_t attempts = 0;
  std::int64_t claims = 0;  // of that attempt
};
// At most `limit`, each signer's in nonce order and without a hole: one whose next try is later holds back those above
// it.
awaitable<std::vector<DueSubmit>> due_submits(pg::Pool& pool, std::string node, std::int64_t chain_id,
                                              std::size_t limit);

// Claims broadcasts that are due again (same bytes), in nonce order: each is this node's alone for `interval`.
struct Resubmit {
  SignerLease lease;
  Uuid tx_id;
  TxState state = TxState::kTracking;
  std::int64_t nonce = 0;
  std::string tx_hash;
  std::string raw;
  std::int32_t retry_count = 0;
};
awaitable<std::vector<Resubmit>> claim_resubmits(pg::Pool& pool, std::string node, std::int64_t chain_id,
                                                 std::chrono::milliseconds interval, std::size_t limit);

// An open transaction of ours that has an attempt among the given hashes.
struct Match {
  SignerLease lease;
  Uuid tx_id;
  TxState state = TxState::kTracking;
  std::int64_t nonce = 0;
  std::optional<std::string> sub_state;
  std::string attempt_hash;
  std::string attempt_kind;
  std::optional<std::string> receipt_hash;  // of the block that is stored now
  std::optional<ToldBlock> told;
  std::optional<std::chrono::milliseconds> since_submit;
};
awaitable<std::vector<Match>> match_attempts(pg::Pool& pool, std::string node, std::int64_t chain_id,
                                             std::vector<std::string> hashes);

// Open transactions without a receipt that were not looked for since `stale`: all attempts of each.
awaitable<std::vector<Match>> stale_receipts(pg::Pool& pool, std::string node, std::int64_t chain_id,
                                             std::chrono::milliseconds stale, std::size_t limit);
awaitable<> note_receipt_checks(pg::Pool& pool, std::vector<Uuid> tx_ids);

// A mined transaction that is not final.
struct MinedTx {
  SignerLease lease;
  Uuid tx_id;
  TxState state = TxState::kTracking;
  std::int64_t nonce = 0;
  std::string tx_hash;
  std::string attempt_kind;
  bool succeeded = false;
  std::int64_t block = 0;
  std::string block_hash;
  std::optional<ToldBlock> told;
  std::chrono::milliseconds age{0};  // since it was created
};
// Where a page of them ended; as it is made here, in front of everything in that block.
struct MinedPlace {
  std::int64_t block = 0;
  std::string signer;
  std::int64_t nonce = -1;
};
MinedPlace place_of(const MinedTx& tx);
// Behind `after` and up to block `to`, in order.
awaitable<std::vector<MinedTx>> mined_between(pg::Pool& pool, std::string node, std::int64_t chain_id, MinedPlace after,
                                              std::int64_t to, std::size_t limit);

// The signer's lowest nonce without a receipt, and how long it has been so since the first broadcast.
struct OpenHead {
  SignerLease lease;
  Uuid tx_id;
  TxState state = TxState::kTracking;
  std::int64_t nonce = 0;
  std::optional<std::string> sub_state;
  std::optional<std::string> tx_hash;
  std::optional<std::chrono::milliseconds> since_submit;
};
awaitable<std::vector<OpenHead>> open_heads(pg::Pool& pool, std::string node, std::int64_t chain_id);

}  // namespace fencepost::tx

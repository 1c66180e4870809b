// An operator's writes about transactions that are not open: takes back one that had ended and that the chain has
// undone, or ends one that still waits for a nonce.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pg/batch.hpp"
#include "pg/pool.hpp"
#include "tx/model/state.hpp"
#include "tx/store/attempt_store.hpp"
#include "tx/store/operator_store.hpp"

namespace fencepost::tx {

namespace sql {
extern const pg::Statement kLockEnded;
extern const pg::Statement kReopen;
extern const pg::Statement kCancelWaiting;
}  // namespace sql

// What the chain says about a transaction that had ended.
struct UndoneProof {
  std::int64_t chain_count = 0;             // the signer's count, from an endpoint that has this node's head
  std::optional<std::string> orphan_block;  // the block of its receipt, if it is not on this node's branch
};

// How an ended transaction becomes open again.
struct Reopening {
  TxState from = TxState::kConfirmed;
  UndoneProof proof;
  std::optional<Claim> cancel;  // nullopt: sends the stored bytes again
};

// The statements that reopen sends. Requires: act.tx_id.
pg::Batch reopen_statements(const std::string& node, const OperatorAct& act, const Reopening& reopening);
// The transaction is TRACKING at its old nonce, without its receipt and due for broadcast now: the attempt that was
// mined (or the newest one with bytes), or the operator's cancel. kMoved, with nothing written, unless all of this
// holds under the locks of lease, cursor and record:
//   - it has ended in that state, and a reorganization undid it (`finality_violated`, or its block is the orphan);
//     for a cancel also if it ended without a receipt of its own;
//   - its nonce is at or above the chain's count and below the cursor, and no open transaction has it;
//   - there are bytes to send.
// Throws as Connection::run, or `tx_locked`.
awaitable<StepOutcome> reopen(pg::Pool& pool, std::string node, OperatorAct act, Reopening reopening);

// The statements that cancel_waiting sends. Requires: act.tx_id.
pg::Batch cancel_waiting_statements(const std::string& node, const OperatorAct& act);
// Ends a CREATED transaction, FAILED_FINAL `cancelled_by_operator`, which never gets a nonce. kMoved when it does not
// wait for one any more.
awaitable<StepOutcome> cancel_waiting(pg::Pool& pool, std::string node, OperatorAct act);

}  // namespace fencepost::tx

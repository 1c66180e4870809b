// Ends a transaction that can never be sent, and releases its nonce. docs/correctness.md has the conditions and why.
#pragma once

#include <string>

#include "base/uuid.hpp"
#include "pg/batch.hpp"
#include "pg/pool.hpp"
#include "tx/model/state.hpp"
#include "tx/model/sub_state.hpp"
#include "tx/store/fence.hpp"

namespace fencepost::tx {

namespace sql {
extern const pg::Statement kReject;
}  // namespace sql

struct Rejection {
  SignerLease lease;
  Uuid tx_id;
  TxState from = TxState::kAllocated;  // or kStuck, and then with this sub state
  SubState reason = SubState::kInvalid;
  std::string message;  // for a person
};

// The statements that reject sends.
pg::Batch reject_statements(const std::string& node, const Rejection& rejection);
// kDone: the transaction has ended, FAILED_FINAL `rejected`, and the cursor is back at its nonce. kMoved, with nothing
// written, unless all of this holds under the locks of lease, cursor and row:
//   - every attempt is ours, of the caller's payload, and was refused: none is unknown or being sent;
//   - its nonce is the last one that was assigned, and the chain does not count it as used;
//   - it has no receipt and never had one.
// Throws as Connection::run.
awaitable<StepOutcome> reject(pg::Pool& pool, std::string node, Rejection rejection);

}  // namespace fencepost::tx

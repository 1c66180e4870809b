// The writes of operator actions: fenced, with the audit row in the same commit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/uuid.hpp"
#include "pg/pool.hpp"
#include "tx/model/lease.hpp"
#include "tx/model/state.hpp"
#include "tx/store/attempt_store.hpp"

namespace fencepost::tx {

// All functions here throw as Connection::run, or kUnavailable `tx_locked` when nothing was written because of a lock.
struct OperatorAct {
  SignerLease lease;
  std::optional<Uuid> tx_id;
  std::string action;
  std::string reason;
  std::string actor;
  std::string detail = "{}";  // JSON
};

// Makes the current attempt due now; the newest one with bytes where the current one was recorded and has none. A STUCK
// transaction goes back to TRACKING, or, when every attempt was refused, to ALLOCATED, where it is priced anew. kMoved
// also when there are no bytes to send.
awaitable<StepOutcome> rebroadcast_now(pg::Pool& pool, std::string node, OperatorAct act, TxState from);

// Adds an attempt that was signed outside Fencepost, and makes it the current one.
awaitable<StepOutcome> record_attempt(pg::Pool& pool, std::string node, OperatorAct act, TxState from,
                                      std::string tx_hash);

// Stores the operator's cancel as the newest attempt, due now. The state becomes TRACKING, because from now on either
// attempt may be mined.
awaitable<StepOutcome> store_cancel(pg::Pool& pool, std::string node, OperatorAct act, Claim cancel);

// Creates a transaction at a nonce below the cursor that no transaction has. kMoved: a transaction has the nonce, or it
// is not below the cursor.
struct GapFill {
  Uuid tx_id;
  std::int64_t nonce = 0;
  std::string payload;
  std::string payload_hash;  // raw
  std::int64_t gas_limit = 0;
};
awaitable<StepOutcome> fill_gap(pg::Pool& pool, std::string node, OperatorAct act, GapFill fill);

// Moves the cursor up to at least `chain_nonce` and assigns nonces again. kMoved: the signer does not wait for an
// operator because the chain is ahead.
struct Accepted {
  StepOutcome outcome = StepOutcome::kFenced;
  std::int64_t next_nonce = 0;
};
awaitable<Accepted> accept_chain_nonce(pg::Pool& pool, std::string node, OperatorAct act, std::int64_t chain_nonce);

}  // namespace fencepost::tx

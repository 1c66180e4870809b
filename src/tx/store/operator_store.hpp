// What operators do, in the tables: fenced, with the audit row in the same commit.
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

// The code of a refusal: another session held a lock for longer than kLockPatience.
inline constexpr std::string_view kTxLocked = "tx_locked";

// All of these throw as Connection::run, or kUnavailable `tx_locked`: nothing was written then.
struct OperatorAct {
  SignerLease lease;
  std::optional<Uuid> tx_id;
  std::string action;
  std::string reason;
  std::string actor;
  std::string detail = "{}";  // JSON
};

// Makes the newest attempt due now; STUCK goes back to TRACKING when it was broadcast before.
awaitable<StepOutcome> rebroadcast_now(pg::Pool& pool, std::string node, OperatorAct act, TxState from, TxState to);

// Adds an attempt that somebody else signed; it counts from now on.
awaitable<StepOutcome> record_attempt(pg::Pool& pool, std::string node, OperatorAct act, TxState from,
                                      std::string tx_hash);

// Stores the operator's cancel as the newest attempt, due now: as TRACKING, since from now on either may be mined.
awaitable<StepOutcome> store_cancel(pg::Pool& pool, std::string node, OperatorAct act, Claim cancel);

// A transaction of ours at a nonce that nobody has, below the cursor. kMoved: somebody has it, or it is not below.
struct GapFill {
  Uuid tx_id;
  std::int64_t nonce = 0;
  std::string payload;
  std::string payload_hash;  // raw
  std::int64_t gas_limit = 0;
};
awaitable<StepOutcome> fill_gap(pg::Pool& pool, std::string node, OperatorAct act, GapFill fill);

// The next nonce, once the cursor is at least `chain_nonce` and numbering goes on. Nothing: fenced.
awaitable<std::optional<std::int64_t>> accept_chain_nonce(pg::Pool& pool, std::string node, OperatorAct act,
                                                          std::int64_t chain_nonce);

}  // namespace fencepost::tx

// Moves open transactions from state to state, and ends them. Each write is fenced and guarded, and appends to the log
// in the same commit.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/uuid.hpp"
#include "pg/batch.hpp"
#include "pg/pool.hpp"
#include "tx/model/attempt.hpp"
#include "tx/model/confirmations.hpp"
#include "tx/model/event_type.hpp"
#include "tx/model/state.hpp"
#include "tx/model/sub_state.hpp"
#include "tx/store/fence.hpp"

namespace fencepost::tx {

namespace sql {
// Constants, here and in the other stores, so that tests can check their plans.
extern const pg::Statement kApplySteps;
extern const pg::Statement kEndSteps;
}  // namespace sql

// A receipt as it is stored, and its block.
struct StoredReceipt {
  std::string json;
  std::int64_t block = 0;
  std::string block_hash;
  bool succeeded = false;
};

inline constexpr std::chrono::milliseconds kNever{-1};

// One change of one transaction. Members that are not set change nothing. A step whose guards fail writes nothing and
// is kMoved.
struct Step {
  Step(SignerLease held, Uuid id, TxState from_state, TxState to_state, std::string reason)
      : lease(std::move(held)), tx_id(id), from(from_state), to(to_state), why(std::move(reason)) {}

  SignerLease lease;
  Uuid tx_id;
  TxState from;
  TxState to;
  std::string why;                                 // written to the history, unless `quiet`
  bool quiet = false;                              // timers and retries only: no entry in the history
  std::optional<std::string> expect_receipt_hash;  // guard: the stored receipt is of this block; "": there is none

  std::optional<SubState> sub_state;  // kNone clears it
  std::optional<std::string> error;   // "" clears it
  bool failed_try = false;            // counts one retry
  bool reset_tries = false;
  std::optional<std::chrono::milliseconds> due_in;  // until the next broadcast; kNever: none is scheduled
  std::optional<std::string> tx_hash;               // the current attempt from now on
  std::optional<StoredReceipt> receipt;
  bool drop_receipt = false;  // also makes the newest attempt that can be sent the current one
  std::optional<AnnouncedBlock> announced;
  bool retract = false;
  std::optional<AttemptOutcome> attempt_outcome;  // of the attempt that is current after this step
  bool begins_broadcast = false;                  // counts one more claim of that attempt; with attempt_outcome
  std::optional<std::int64_t> expect_claims;      // guard: no broadcast of that attempt was claimed since
  // Guard of STUCK to ALLOCATED: its sub state is still that of a refusal, and every attempt was refused. Such a step
  // also begins the time until it is STUCK anew (watched_since). Required for it, and allowed for no other step.
  bool expect_unsent = false;
  std::optional<std::string> expect_due_at;  // guard: no other broadcast was requested since; Resubmit::due_at
  std::vector<std::pair<TxEvent, std::string>> events;  // type and JSON data, in order

  // A step to a terminal state ends the transaction: its work is removed, and how it ended is stored. Besides these
  // confirmations it can have sub_state, error, expect_receipt_hash and events, and nothing else.
  bool ends() const { return kManagedTx.terminal(to); }
  std::optional<std::string> confirmations;  // JSON
};

// The statements that apply_steps sends.
pg::Batch step_statements(const std::string& node, const std::vector<Step>& steps);
// One round trip and one commit; one outcome per step, in order. Requires: each transaction appears at most once, and
// kManagedTx allows each step (else throws `forbidden_step`). Throws as Connection::run.
awaitable<std::vector<StepOutcome>> apply_steps(pg::Pool& pool, std::string node, std::vector<Step> steps);

}  // namespace fencepost::tx

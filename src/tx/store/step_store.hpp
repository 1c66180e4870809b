// Moving transactions forward: the money path's second half. Each write is fenced and guarded, and carries its
// history and its events with it.
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
// As constants, here and in the other stores, so that tests can ask PostgreSQL for their plans.
extern const pg::Statement kApplySteps;
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

  std::optional<SubState> sub_state;  // kNone clears it
  std::optional<std::string> error;   // "" clears it
  bool failed_try = false;            // counts one retry
  bool reset_tries = false;
  std::optional<std::chrono::milliseconds> due_in;  // until the next broadcast; kNever: not by itself
  std::optional<std::string> tx_hash;               // the attempt that counts from now on
  std::optional<StoredReceipt> receipt;
  bool drop_receipt = false;  // and the newest attempt that can be sent counts again
  std::optional<AnnouncedBlock> announced;
  bool retract = false;
  std::optional<std::string> confirmations;       // JSON
  bool final = false;                             // sets confirmed_at
  std::optional<AttemptOutcome> attempt_outcome;  // of the attempt that counts, after this step
  bool begins_broadcast = false;                  // counts one more claim of that attempt; with attempt_outcome
  std::optional<std::int64_t> expect_claims;      // guards: no broadcast of that attempt was begun since
  std::optional<std::string> expect_due_at;       // guards: nobody has asked for another broadcast since; as Resubmit's
  std::vector<std::pair<TxEvent, std::string>> events;  // type and JSON data, in order
};

// What apply_steps sends.
pg::Batch step_statements(const std::string& node, const std::vector<Step>& steps);
// One round trip, one commit; one outcome for each, in order. A transaction may appear once. Throws as Connection::run.
awaitable<std::vector<StepOutcome>> apply_steps(pg::Pool& pool, std::string node, std::vector<Step> steps);

}  // namespace fencepost::tx

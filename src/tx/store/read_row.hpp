// Reads values that many statements return, so that each is read in one place.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "pg/result.hpp"
#include "tx/model/attempt.hpp"
#include "tx/model/confirmations.hpp"
#include "tx/model/lease.hpp"
#include "tx/model/reconcile_reason.hpp"
#include "tx/model/state.hpp"
#include "tx/model/sub_state.hpp"

namespace fencepost::tx {

SignerKey read_key(const pg::Row& row);                            // chain_id, signer
SignerLease read_lease(const pg::Row& row);                        // chain_id, signer, token
TxState read_state(const pg::Row& row);                            // state
std::optional<AnnouncedBlock> read_announced(const pg::Row& row);  // announced_block, announced_hash
SubState read_sub_state(const pg::Row& row);  // sub_state; kNone also for a name that only a newer version knows
AttemptKind read_attempt_kind(const pg::Row& row, std::string_view column);
std::optional<AttemptOutcome> read_attempt_outcome(const pg::Row& row);    // outcome
std::optional<ReconcileReason> read_reconcile_reason(const pg::Row& row);  // reconcile_reason
// A column of seconds, as double precision.
std::optional<std::chrono::milliseconds> read_seconds(const pg::Row& row, std::string_view column);

}  // namespace fencepost::tx

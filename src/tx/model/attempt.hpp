// An attempt: a transaction at the nonce of a managed transaction, signed here or reported by an operator or the chain.
#pragma once

#include "base/name_table.hpp"

namespace fencepost::tx {

enum class AttemptKind { kOriginal, kCancel, kRecorded, kExternal };

// tx_attempt.kind
inline constexpr auto kAttemptKinds = name_table<AttemptKind>({
    {AttemptKind::kOriginal, "original", "The caller's payload, signed here."},
    {AttemptKind::kCancel, "cancel", "The operator's self-transfer at the same nonce, signed here."},
    {AttemptKind::kRecorded, "recorded",
     "The caller's payload, broadcast outside Fencepost; an operator recorded its hash."},
    {AttemptKind::kExternal, "external", "Another sender's transaction at this nonce."},
});

// What the endpoints answered to the last broadcast. NULL while no answer is stored yet. "nonce too low" to a later
// broadcast is not stored: usually the transaction was just mined, and its receipt decides.
enum class AttemptOutcome { kAccepted, kRefused, kUnknown };

// tx_attempt.outcome
inline constexpr auto kAttemptOutcomes = name_table<AttemptOutcome>({
    {AttemptOutcome::kAccepted, "accepted", "The chain has it."},
    {AttemptOutcome::kRefused, "refused", "No endpoint has it, so it may be signed again."},
    {AttemptOutcome::kUnknown, "unknown", "An endpoint may have it."},
});

}  // namespace fencepost::tx

// Why a signer gets no new nonces until an operator has acted.
#pragma once

#include "base/name_table.hpp"

namespace fencepost::tx {

enum class ReconcileReason { kChainAhead, kUndone, kGap };

// signer_nonce_cursor.reconcile_reason. The sentence tells a caller or an operator what happened and what to do.
inline constexpr auto kReconcileReasons = name_table<ReconcileReason>({
    {ReconcileReason::kChainAhead, "chain_ahead",
     "the chain has more transactions of this signer than Fencepost sent; an operator finds out why, then calls "
     "accept-reconcile"},
    {ReconcileReason::kUndone, "undone",
     "the chain has undone a transaction of this signer that had ended, and later ones cannot be mined before its "
     "nonce is used; an operator calls resend or cancel for that transaction, or reset-cursor if the chain was reset"},
    {ReconcileReason::kGap, "gap",
     "the signer has a nonce below the cursor that the chain does not count as used and that no open transaction has; "
     "an operator calls fill-nonce, or reset-cursor if the chain was reset"},
});

}  // namespace fencepost::tx

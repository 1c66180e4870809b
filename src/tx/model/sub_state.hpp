// sub_state of tx_open and tx_ended: the reason for a transaction's state, in one word. Callers see it as `subState`.
#pragma once

#include "base/name_table.hpp"
#include "evm/submit_class.hpp"

namespace fencepost::tx {

enum class SubState {
  kNone,  // NULL in the table
  kExternal,
  kGapFill,
  kFeesUnknown,
  kFeeAboveCeiling,
  kNoDynamicFees,
  kSignerUnavailable,
  kBadTransaction,
  kNonceTooLow,
  kNonceTooHigh,
  kUnderpriced,
  kFeeTooLow,
  kFeeCapExceeded,
  kInsufficientFunds,
  kIntrinsicGas,
  kInvalid,
  kTransient,
  kUnknown,
  kMined,
  kReorged,
  kRecorded,
  kCancelling,
  kNoReceipt,
  kGap,
  kNonceTaken,
  kReverted,
  kCancelledByOperator,
  kNonceConsumedElsewhere,
  kRejected,
  kGivenUp,
  kFinalityViolated,
  kMinedAfterEnd,
};

inline constexpr auto kSubStates = name_table<SubState>({
    {SubState::kNone, "", "The state needs no further reason."},
    // The purpose of a row that is not a caller's transaction.
    {SubState::kExternal, "external", "Reserves a nonce that another sender of a shared signer uses."},
    {SubState::kGapFill, "gap_fill", "An operator's self-transfer at a nonce that no transaction had."},
    // ALLOCATED and waiting for a retry, or STUCK before the first broadcast.
    {SubState::kFeesUnknown, "fees_unknown", "Waits: no endpoint says what a transaction costs."},
    {SubState::kFeeAboveCeiling, "fee_above_ceiling", "Waits: the chain asks more than the ceiling allows."},
    {SubState::kNoDynamicFees, "no_dynamic_fees", "The caller gave maxFeePerGas, and the chain has no base fee."},
    {SubState::kSignerUnavailable, "signer_unavailable",
     "Waits: no live node has the key of the signer, or the key cannot be used."},
    {SubState::kBadTransaction, "bad_transaction", "The signer refuses to sign it."},
    // The endpoints' answer to a broadcast, named as evm::SubmitClass.
    {SubState::kNonceTooLow, "nonce_too_low", "The endpoint says that the nonce is used up."},
    {SubState::kNonceTooHigh, "nonce_too_high", "The endpoint requires the lower nonces first."},
    {SubState::kUnderpriced, "underpriced", "Another transaction at this nonce pays as much."},
    {SubState::kFeeTooLow, "fee_too_low", "The fee cap is under what the chain or the endpoint asks."},
    {SubState::kFeeCapExceeded, "fee_cap_exceeded", "Gas times the fee cap is above what the endpoint lets through."},
    {SubState::kInsufficientFunds, "insufficient_funds", "The signer's balance does not cover value and fees."},
    {SubState::kIntrinsicGas, "intrinsic_gas", "Its gas is under the intrinsic cost."},
    {SubState::kInvalid, "invalid", "Every endpoint calls it malformed, or above a limit of the chain."},
    {SubState::kTransient, "transient", "The endpoint could not accept it at the moment."},
    {SubState::kUnknown, "unknown", "The endpoint's answer does not say whether it was accepted."},
    // TRACKING.
    {SubState::kMined, "mined", "In a block that is not final yet."},
    {SubState::kReorged, "reorged", "A reorganization dropped its block; it is broadcast again."},
    {SubState::kRecorded, "recorded", "An operator recorded a hash that was broadcast outside Fencepost."},
    {SubState::kCancelling, "cancelling", "An operator's cancel was signed; either of the two may be mined."},
    // STUCK.
    {SubState::kNoReceipt, "no_receipt", "No receipt for longer than stuck.after."},
    {SubState::kGap, "gap", "The other sender has not used the nonce for longer than stuck.after."},
    {SubState::kNonceTaken, "nonce_taken", "A transaction that is not ours has taken the nonce."},
    // FAILED_FINAL; `reverted` is also an endpoint's refusal, and then ALLOCATED or STUCK.
    {SubState::kReverted, "reverted", "Its execution failed."},
    {SubState::kCancelledByOperator, "cancelled_by_operator", "The operator's cancel is final."},
    {SubState::kNonceConsumedElsewhere, "nonce_consumed_elsewhere",
     "Another sender's transaction at its nonce is final."},
    {SubState::kRejected, "rejected", "It can never be sent, and no endpoint has it; its nonce was released."},
    {SubState::kGivenUp, "given_up",
     "An operator gave it up: no endpoint knew it, and its nonce was released, or used by a transaction that was not "
     "found."},
    // CONFIRMED or FAILED_FINAL.
    {SubState::kFinalityViolated, "finality_violated",
     "A reorganization undid its block after the transaction had ended."},
    {SubState::kMinedAfterEnd, "mined_after_end",
     "It had ended as never to be mined, and a block lists it: the endpoints were wrong."},
});

// Why an endpoint did not accept a broadcast. kNone for kAccepted and kKnownTransaction.
SubState sub_state_of(evm::SubmitClass answer);

}  // namespace fencepost::tx

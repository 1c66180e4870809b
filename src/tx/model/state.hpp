// The states of a managed transaction and the steps between them. finality.hpp decides which transaction took the nonce
// and whether that is final; this table says which steps are allowed.
//
// TRACKING with sub state `mined` is mined but not final. STUCK keeps its nonce and stays tracked. A transaction that
// has ended goes back to TRACKING only by an operator's action, after a reorganization undid it
// (store/reopen_store.hpp).
#pragma once

#include "base/lifecycle.hpp"

namespace fencepost::tx {

enum class TxState {
  kCreated,      // accepted, no nonce yet: the signer's window is full, or the chain did not return its nonce
  kAllocated,    // has a nonce; no endpoint is known to have accepted it
  kTracking,     // broadcast
  kConfirmed,    // final, and it succeeded
  kFailedFinal,  // its payload was not carried out, and never will be: the use of its nonce is final, or it was
                 // released
  kStuck,        // waits for an operator or for the chain
};

inline constexpr auto kManagedTx = lifecycle<TxState>(
    "managed_tx",
    {
        {TxState::kCreated,
         "CREATED",
         {{TxState::kAllocated, "the window opens"}, {TxState::kFailedFinal, "cancelled before it had a nonce"}}},
        {TxState::kAllocated,
         "ALLOCATED",
         {{TxState::kTracking, "broadcast or found on chain"},
          {TxState::kStuck, "cannot be sent, or its nonce was taken"},
          {TxState::kFailedFinal, "can never be sent, and its nonce is released"}}},
        {TxState::kTracking,
         "TRACKING",
         {{TxState::kConfirmed, "final"},
          {TxState::kFailedFinal, "final, but reverted, cancelled or not ours"},
          {TxState::kStuck, "no receipt for long, or its nonce was taken"}}},
        {TxState::kConfirmed,
         "CONFIRMED",
         {{TxState::kTracking, "an operator sends again what a reorganization undid", ExitKind::kReopens}}},
        {TxState::kFailedFinal,
         "FAILED_FINAL",
         {{TxState::kTracking, "an operator sends again what a reorganization undid", ExitKind::kReopens}}},
        {TxState::kStuck,
         "STUCK",
         {{TxState::kTracking, "mined, rebroadcast, or its nonce is free again"},
          {TxState::kAllocated, "every attempt was refused: it is priced anew"},
          {TxState::kConfirmed, "final"},
          {TxState::kFailedFinal, "final, but reverted, cancelled or not ours"}}},
    });

}  // namespace fencepost::tx

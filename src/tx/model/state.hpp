// The states of a managed transaction and the steps between them. finality.hpp decides which transaction took the nonce
// and whether that is final; this table says which steps are allowed.
//
// TRACKING with sub state `mined` is mined but not final. STUCK keeps its nonce and stays tracked.
#pragma once

#include "base/lifecycle.hpp"

namespace fencepost::tx {

enum class TxState {
  kCreated,      // accepted, no nonce yet: the signer's window is full, or the chain did not return its nonce
  kAllocated,    // has a nonce; no endpoint is known to have accepted it
  kTracking,     // broadcast
  kConfirmed,    // final, and it succeeded
  kFailedFinal,  // the use of its nonce is final, and its payload was not carried out
  kStuck,        // waits for an operator or for the chain
};

inline constexpr auto kManagedTx =
    lifecycle<TxState>("managed_tx", {
                                         {TxState::kCreated, "CREATED", {{TxState::kAllocated, "the window opens"}}},
                                         {TxState::kAllocated,
                                          "ALLOCATED",
                                          {{TxState::kTracking, "broadcast or found on chain"},
                                           {TxState::kStuck, "cannot be sent, or its nonce was taken"}}},
                                         {TxState::kTracking,
                                          "TRACKING",
                                          {{TxState::kConfirmed, "final"},
                                           {TxState::kFailedFinal, "final, but reverted, cancelled or not ours"},
                                           {TxState::kStuck, "no receipt for long, or its nonce was taken"}}},
                                         {TxState::kConfirmed, "CONFIRMED", {}},
                                         {TxState::kFailedFinal, "FAILED_FINAL", {}},
                                         {TxState::kStuck,
                                          "STUCK",
                                          {{TxState::kTracking, "mined, rebroadcast, or its nonce is free again"},
                                           {TxState::kConfirmed, "final"},
                                           {TxState::kFailedFinal, "final, but reverted, cancelled or not ours"}}},
                                     });

}  // namespace fencepost::tx

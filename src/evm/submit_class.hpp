// What an endpoint's answer to a broadcast means. Nodes say it in words, each in its own; the table is in the .cpp.
#pragma once

#include <cstdint>
#include <string_view>

namespace fencepost::evm {

enum class SubmitClass {
  kAccepted,
  kKnownTransaction,  // it has these very bytes already
  kNonceTooLow,       // the nonce is used up: by us, or by somebody else
  kNonceTooHigh,      // the endpoint wants the ones before it first
  kUnderpriced,       // another transaction with this nonce is there and pays as much
  kFeeTooLow,         // the cap is under the base fee or the endpoint's minimum
  kInsufficientFunds,
  kIntrinsicGas,  // gas under the intrinsic cost: no retry cures it
  kReverted,
  kTransient,  // about the endpoint, not about the transaction: full pool, overload, syncing
  kInvalid,    // malformed, wrong chain, over the block's gas limit, …: no retry cures it
  kUnknown,    // words nobody here has seen, or that leave open what became of it (internal error, timeout)
};

// "known_transaction" and so on: for metrics, sub states and logs.
std::string_view to_string(SubmitClass outcome);

// By the error's code and message as JSON-RPC gave them; never kAccepted. Serves calls and estimates as well, which
// fail with the same words: kReverted there is any failure of the execution itself, out of gas included.
SubmitClass classify_submit_error(std::int64_t code, std::string_view message);

// Whether the transaction may be in a pool or a block although the endpoint refused it: known already, its nonce used
// up (perhaps by itself), or the answer does not say.
bool leaves_doubt(SubmitClass outcome);

}  // namespace fencepost::evm

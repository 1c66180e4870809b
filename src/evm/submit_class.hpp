// The meaning of an endpoint's answer to a broadcast. Each node software has its own messages; the table is in the
// .cpp.
#pragma once

#include <cstdint>
#include <string_view>

namespace fencepost::evm {

enum class SubmitClass {
  kAccepted,
  kKnownTransaction,  // the endpoint already has these very bytes
  kNonceTooLow,       // the nonce is used: by this or by another transaction
  kNonceTooHigh,      // the endpoint requires the nonces before it first
  kUnderpriced,       // the pool has another transaction with this nonce that pays as much
  kFeeTooLow,         // the cap is under the base fee or the endpoint's minimum
  kFeeCapExceeded,    // gas times the cap is above what the endpoint lets through: a lower cap may pass
  kInsufficientFunds,
  kIntrinsicGas,  // gas under the intrinsic cost: a retry cannot succeed
  kReverted,
  kTransient,  // about the endpoint, not about the transaction: full pool, overload, syncing
  kInvalid,    // malformed, wrong chain, over the block's gas limit, …: a retry cannot succeed
  kUnknown,    // an unknown message, or one that leaves the outcome open (internal error, timeout)
};

// "known_transaction" and so on: for metrics, sub states and logs.
std::string_view to_string(SubmitClass outcome);

// Classifies the code and message of a JSON-RPC error; never kAccepted. Also for calls and estimates, which fail with
// the same messages: there kReverted is any failure of the execution itself, including out of gas.
SubmitClass classify_submit_error(std::int64_t code, std::string_view message);

// Whether the transaction may be in a pool or a block although the endpoint refused it: the endpoint already has it,
// its nonce is used (perhaps by itself), or the outcome is unknown.
bool leaves_doubt(SubmitClass outcome);

}  // namespace fencepost::evm

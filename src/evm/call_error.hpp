// Why a call or an estimate failed, out of the many ways in which nodes say that a contract said no.
#pragma once

#include <optional>
#include <string_view>

#include "base/error.hpp"
#include "base/hex.hpp"

namespace fencepost::evm {

// An error of JsonRpcClient as a caller wants it: kUnprocessable `would_revert` (with `revertReason`, and `revertData`
// when there was any and it is not too long) for whatever fails in the execution, kUnprocessable `insufficient_funds`;
// any other unchanged.
Error call_error(Error error);

// What the contract gave back with its revert, out of the `data` member of an error (JSON text): "0x…", "Reverted 0x…",
// or either somewhere inside an object. Nothing when there is none; empty when it reverted without a word.
std::optional<Bytes> revert_data(std::string_view data);

}  // namespace fencepost::evm

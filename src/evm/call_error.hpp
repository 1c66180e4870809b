// Why a call or an estimate failed. Each node software reports a revert in its own way.
#pragma once

#include <optional>
#include <string_view>

#include "base/error.hpp"
#include "base/hex.hpp"

namespace fencepost::evm {

// Classifies an error of JsonRpcClient. A failed execution becomes kUnprocessable `would_revert` with `revertReason`,
// and with `revertData` when there is any and it is not too long. A lack of funds becomes kUnprocessable
// `insufficient_funds`. Any other error is returned unchanged.
Error call_error(Error error);

// The bytes that the contract returned with its revert, from the `data` member of an error (JSON text): "0x…",
// "Reverted 0x…", or either somewhere inside an object. Nothing when there are none; empty for "0x".
std::optional<Bytes> revert_data(std::string_view data);

}  // namespace fencepost::evm

// A signed transaction as eth_getTransactionByHash shows it. Pure: no I/O.
#pragma once

#include <optional>
#include <string>

#include "evm/transaction.hpp"

namespace fencepost::tx {

// JSON text. `receipt` is the JSON of the transaction's receipt; without one the transaction is pending, and its block
// is null.
std::string transaction_json(const evm::DecodedTransaction& signed_tx, const std::optional<std::string>& receipt);

}  // namespace fencepost::tx

// The step that a receipt makes, whoever found it.
#pragma once

#include "tx/service/chain_context.hpp"
#include "tx/store/work_store.hpp"

namespace fencepost::tx {

// Whether the receipt's block is on the node's own branch. Below the window the endpoint that gave the receipt is
// asked for the block at that height; nothing when that cannot be told.
awaitable<std::optional<bool>> on_own_branch(ChainContext& chain, const evm::Receipt& receipt);

// "mined in block N": stores the receipt, makes its attempt the one that counts, tells TxReceiptUpdated, and after a
// reorg the whole list of confirmations anew.
Step mined_step(const ChainContext& chain, const Match& match, const evm::Receipt& receipt);

// The receipt's block is dead and nothing took its place: back to TRACKING, to be broadcast at once.
Step unmined_step(const MinedTx& tx, std::string why);

}  // namespace fencepost::tx

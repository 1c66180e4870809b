// The steps that a found or withdrawn receipt leads to, for every worker that finds one.
#pragma once

#include "tx/service/chain_context.hpp"
#include "tx/store/work_store.hpp"

namespace fencepost::tx {

// Whether the receipt's block is on the node's own branch. For a block below every stored header, asks the endpoint
// that gave the receipt for the block at that height. nullopt when there is no answer.
awaitable<std::optional<bool>> on_own_branch(ChainContext& chain, const evm::Receipt& receipt);

// "mined in block N": stores the receipt, makes its attempt the current one, and announces TxReceiptUpdated. After a
// withdrawn receipt, also announces the whole list of confirmations. `revert_reason`: of a receipt that failed.
Step mined_step(const ChainContext& chain, const Match& match, const evm::Receipt& receipt, std::string revert_reason);

// revert_reasons, for so long that an endpoint that does not answer holds up nothing else.
awaitable<std::vector<std::string>> why_reverted(ChainContext& chain, std::vector<evm::Receipt> receipts);

// For a receipt whose block is orphaned and that was not replaced: back to TRACKING, with a broadcast due at once.
Step unmined_step(const MinedTx& tx, std::string why);

}  // namespace fencepost::tx

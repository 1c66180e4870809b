// Why mined transactions reverted: their receipts do not say.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "evm/chain_connector.hpp"

namespace fencepost::tx {

// One text for each receipt, in order: "execution reverted: ERC20: insufficient allowance". Each transaction is called
// again at the end of its block, at the endpoint that gave the receipt; a text says so if the chain gives no reason, or
// none within `limit`. On the chain's loop. Requires: the receipts are of transactions that failed.
awaitable<std::vector<std::string>> revert_reasons(evm::ChainConnector& connector, std::vector<evm::Receipt> receipts,
                                                   std::chrono::milliseconds limit);

}  // namespace fencepost::tx

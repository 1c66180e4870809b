// The balances of signers on their chain, for the list of signers.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "base/uint256.hpp"
#include "evm/chain_connector.hpp"
#include "runtime/async.hpp"

namespace fencepost::tx {

// In wei, by address, from one batch. An address is missing when the chain gave no answer for it within `limit`.
// `home`: the connector's loop. Any loop may call; the connector must outlive the call to the chain, which a caller
// that stops waiting leaves running.
awaitable<std::map<std::string, Uint256>> signer_balances(Executor home, evm::ChainConnector& connector,
                                                          std::vector<std::string> addresses,
                                                          std::chrono::milliseconds limit);

}  // namespace fencepost::tx

// What can be known at create about a transaction that the chain will refuse. One that passed may be refused later all
// the same: its signer's balance and the chain change.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.hpp"
#include "base/uint256.hpp"
#include "tx/model/payload.hpp"
#include "tx/options.hpp"
#include "tx/service/chain_context.hpp"

namespace fencepost::tx {

// Errors (422): initcode_too_large, tx_too_large.
Result<void> check_size(const Payload& payload, const LimitOptions& limits);

// Lowers gas that was estimated with a margin to the chain's limits, as long as the estimate itself is within them.
std::int64_t within_gas_limits(const ChainContext& chain, std::int64_t gas, const Uint256& estimate);

// Both compare with what is known, and ask the chain only when that comparison fails; then the chain's answer decides.
// No answer is no reason to refuse. Any loop. Errors (422): gas_above_limit, gas_above_block_limit; insufficient_funds.
awaitable<Result<void>> check_gas(ChainContext& chain, std::int64_t gas);
awaitable<Result<void>> check_funds(ChainContext& chain, std::string signer, Uint256 value);

}  // namespace fencepost::tx

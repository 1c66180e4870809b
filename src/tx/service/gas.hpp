// How much gas a transaction may use, from an estimate of the chain.
#pragma once

#include <cstdint>

#include "base/error.hpp"
#include "base/uint256.hpp"
#include "tx/service/chain_context.hpp"

namespace fencepost::tx {

// A plain transfer costs this much on Ethereum, and no transaction costs less anywhere.
inline constexpr std::int64_t kTransferGas = 21'000;

// The estimate and `margin_percent` of it. A contract call may need more gas when it is mined than at the estimate; a
// transfer that costs 21,000 always costs the same. Error: kUnprocessable `gas_too_high` when it does not fit 63 bits.
Result<std::int64_t> with_gas_margin(const Uint256& estimate, std::uint32_t margin_percent);

// The gas of a transfer of value 0 from the signer to itself, as the chain estimates it now: some chains (Arbitrum)
// charge more than 21,000 for it. Any loop. Errors: as ChainConnector::estimate_gas; rpc_unavailable when no endpoint
// answers.
awaitable<Result<std::int64_t>> self_transfer_gas(ChainContext& chain, std::string signer,
                                                  std::uint32_t margin_percent);

}  // namespace fencepost::tx

#include "tx/service/gas.hpp"

#include <algorithm>
#include <limits>

#include "runtime/on_loop.hpp"

namespace fencepost::tx {

Result<std::int64_t> with_gas_margin(const Uint256& estimate, std::uint32_t margin_percent) {
  const Uint256 largest = std::numeric_limits<std::int64_t>::max();
  Uint256 gas = estimate;
  // Compared before the margin is added, which could wrap.
  if (gas > kTransferGas && gas <= largest) gas += gas * margin_percent / 100;
  if (gas > largest) {
    return fail(Error{ErrorKind::kUnprocessable, "gas_too_high", "the estimated gas does not fit 63 bits", {}, {}, {}});
  }
  return static_cast<std::int64_t>(gas);
}

awaitable<Result<std::int64_t>> self_transfer_gas(ChainContext& chain, std::string signer,
                                                  std::uint32_t margin_percent) {
  evm::CallRequest call;
  call.from = signer;
  call.to = signer;
  const auto estimate = co_await on_loop(chain.home, [&chain, call] { return chain.connector.estimate_gas(call); });
  if (!estimate) co_return fail(estimate.error());
  auto gas = with_gas_margin(*estimate, margin_percent);
  if (gas) *gas = std::max(*gas, kTransferGas);
  co_return gas;
}

}  // namespace fencepost::tx

#include "tx/service/create_checks.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "http/errors.hpp"
#include "runtime/on_loop.hpp"
#include "tx/service/signer_balances.hpp"

namespace fencepost::tx {
namespace {

using http::unprocessable;

// A signed transaction is at most this much larger than its data: type 2 with every number at its longest.
constexpr std::uint64_t kLargestRest = 224;
// How long a create waits for a balance that is not known.
constexpr std::chrono::milliseconds kBalancePatience{1'000};

std::uint64_t data_size(const Payload& payload) {
  return payload.data ? (payload.data->size() - 2) / 2 : 0;
}

std::int64_t as_gas(const Uint256& gas) {
  return gas > std::numeric_limits<std::int64_t>::max() ? std::numeric_limits<std::int64_t>::max()
                                                        : static_cast<std::int64_t>(gas);
}

// Of the newest block, fresh from the chain; 0 when no endpoint says it.
awaitable<std::int64_t> fresh_block_gas_limit(ChainContext& chain) {
  const auto block = co_await on_loop(chain.home, [&chain] { return chain.connector.block(evm::BlockTag::kLatest); });
  if (!block || !block->header.gas_limit) co_return 0;
  const auto limit = as_gas(*block->header.gas_limit);
  chain.block_gas_limit.store(limit, std::memory_order_relaxed);
  co_return limit;
}

}  // namespace

Result<void> check_size(const Payload& payload, const LimitOptions& limits) {
  const auto size = data_size(payload);
  if (!payload.to && limits.max_initcode_bytes > 0 && size > limits.max_initcode_bytes) {
    return fail(unprocessable("initcode_too_large",
                              fmt::format("the data that creates the contract has {} bytes, and the chain takes {}",
                                          size, limits.max_initcode_bytes))
                    .with("limit", std::to_string(limits.max_initcode_bytes)));
  }
  if (limits.max_tx_bytes > 0 && size + kLargestRest > limits.max_tx_bytes) {
    return fail(
        unprocessable("tx_too_large",
                      fmt::format("with {} bytes of data the transaction is larger than the {} bytes that nodes "
                                  "accept",
                                  size, limits.max_tx_bytes))
            .with("limit", std::to_string(limits.max_tx_bytes)));
  }
  return {};
}

std::int64_t within_gas_limits(const ChainContext& chain, std::int64_t gas, const Uint256& estimate) {
  auto limit = std::numeric_limits<std::int64_t>::max();
  if (const auto most = chain.options.limits.max_gas; most > 0) limit = as_gas(Uint256(most));
  if (const auto block = chain.block_gas_limit.load(std::memory_order_relaxed); block > 0) {
    limit = std::min(limit, block);
  }
  return estimate <= limit ? std::min(gas, limit) : gas;
}

awaitable<Result<void>> check_gas(ChainContext& chain, std::int64_t gas) {
  const auto most = chain.options.limits.max_gas;
  if (most > 0 && static_cast<std::uint64_t>(gas) > most) {
    co_return fail(unprocessable("gas_above_limit",
                                 fmt::format("{} gas is above limits.max_gas, which is {} on this chain", gas, most))
                       .with("limit", std::to_string(most)));
  }
  const auto known = chain.block_gas_limit.load(std::memory_order_relaxed);
  if (known == 0 || gas <= known) co_return Result<void>();
  const auto fresh = co_await fresh_block_gas_limit(chain);
  if (fresh == 0 || gas <= fresh) co_return Result<void>();
  co_return fail(unprocessable("gas_above_block_limit",
                               fmt::format("{} gas is above the gas limit of a block, which is {}", gas, fresh))
                     .with("limit", std::to_string(fresh)));
}

awaitable<Result<void>> check_funds(ChainContext& chain, std::string signer, Uint256 value) {
  if (value == 0) co_return Result<void>();
  if (const auto known = chain.balances.find(signer); known && value <= *known) co_return Result<void>();
  if (!chain.balances.may_ask()) co_return Result<void>();
  const auto fresh = co_await signer_balances(chain.home, chain.connector, {signer}, kBalancePatience);
  const auto balance = fresh.find(signer);
  if (balance == fresh.end()) {
    chain.balances.asked_in_vain();
    co_return Result<void>();
  }
  chain.balances.set(signer, balance->second);
  if (value <= balance->second) co_return Result<void>();
  co_return fail(unprocessable("insufficient_funds", fmt::format("the value is {} wei, and the signer has {}",
                                                                 to_decimal(value), to_decimal(balance->second)))
                     .with("balance", to_decimal(balance->second)));
}

}  // namespace fencepost::tx

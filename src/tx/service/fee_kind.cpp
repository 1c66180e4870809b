#include "tx/service/fee_kind.hpp"

#include <algorithm>
#include <utility>

#include "runtime/log.hpp"

namespace fencepost::tx {

ChainFeeKind::ChainFeeKind(FeeKind configured, std::string chain, Metrics& metrics)
    : kind_(configured),
      chain_(std::move(chain)),
      contradictions_total_(metrics.counter("tx_fee_kind_contradictions_total",
                                            "Blocks with a base fee on a chain without, or the other way round",
                                            {{"chain", chain_}})) {}

void ChainFeeKind::learn(std::span<const evm::BlockHeader> stored) {
  if (get() != FeeKind::kUnknown || stored.empty()) return;
  const auto has_fee = [](const evm::BlockHeader& one) { return one.base_fee.has_value(); };
  const auto dynamic = static_cast<std::size_t>(std::ranges::count_if(stored, has_fee));
  kind_.store(2 * dynamic >= stored.size() ? FeeKind::kDynamic : FeeKind::kLegacy, std::memory_order_relaxed);
}

void ChainFeeKind::see(const evm::BlockHeader& head) {
  const auto shown = head.base_fee ? FeeKind::kDynamic : FeeKind::kLegacy;
  const auto known = get();
  if (known == FeeKind::kUnknown) {
    kind_.store(shown, std::memory_order_relaxed);
    return;
  }
  if (known == shown) {
    contradicted_ = false;
    return;
  }
  if (head.hash == contradicted_by_) return;
  contradicted_by_ = head.hash;
  contradictions_total_.Increment();
  if (std::exchange(contradicted_, true)) return;
  log::warn(shown == FeeKind::kLegacy ? "a block has no base fee, and this chain has one: an endpoint may be broken"
                                      : "a block has a base fee, and this chain has none: restart after an upgrade of "
                                        "the chain, or set fees.kind",
            {{"chain", chain_}, {"block", head.number}, {"blockHash", head.hash}});
}

}  // namespace fencepost::tx

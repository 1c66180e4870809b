#include "tx/fee_oracle.hpp"

namespace fencepost::tx {
namespace {

constexpr std::uint32_t kHistoryBlocks = 10;
constexpr double kTipPercentile = 50;

}  // namespace

bool FeeOracle::knows_without_asking(const Payload& payload) const {
  return payload.gas_price || (payload.max_fee_per_gas && payload.max_priority_fee_per_gas) || options_.fixed;
}

awaitable<Result<FeeQuote>> FeeOracle::quote() {
  const auto* head = follower_.window().head();
  const auto block = head == nullptr ? std::string() : head->hash;
  if (quote_ && !block.empty() && block == block_) co_return *quote_;
  const bool legacy = head != nullptr && !head->base_fee;

  FeeQuote fresh;
  if (legacy) {
    const auto price = co_await connector_.gas_price();
    if (!price) co_return fail(price.error());
    fresh.gas_price = *price;
  } else {
    const auto history = co_await connector_.fee_history(kHistoryBlocks, kTipPercentile);
    if (!history) co_return fail(history.error());
    fresh.next_base_fee = history->next_base_fee;
    fresh.tip = choose_tip(history->tips, options_);
  }
  quote_ = fresh;
  block_ = block;
  co_return fresh;
}

}  // namespace fencepost::tx

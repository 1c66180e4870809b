#include "tx/service/fee_policy.hpp"

#include <algorithm>
#include <optional>
#include <string>

namespace fencepost::tx {
namespace {

constexpr std::uint32_t kHistoryBlocks = 10;
constexpr double kTipPercentile = 50;

class FixedFees : public FeePolicy {
 public:
  explicit FixedFees(FeeOptions options) : options_(std::move(options)) {}

  awaitable<std::vector<Result<evm::Fees>>> offers(std::vector<Payload> payloads) override {
    std::vector<Result<evm::Fees>> out;
    out.reserve(payloads.size());
    for (const auto& payload : payloads) out.push_back(price(payload, {}, options_));
    co_return out;
  }

 private:
  FeeOptions options_;
};

bool has_all_fees(const Payload& payload) {
  return payload.gas_price || (payload.max_fee_per_gas && payload.max_priority_fee_per_gas);
}

class MarketFees : public FeePolicy {
 public:
  MarketFees(evm::ChainConnector& connector, const evm::BlockFollower& follower, FeeOptions options)
      : connector_(connector), follower_(follower), options_(std::move(options)) {}

  awaitable<std::vector<Result<evm::Fees>>> offers(std::vector<Payload> payloads) override {
    Result<FeeQuote> asked = FeeQuote{};
    if (!std::ranges::all_of(payloads, has_all_fees)) asked = co_await quote();
    std::vector<Result<evm::Fees>> out;
    for (const auto& payload : payloads) {
      if (!asked && !has_all_fees(payload)) {
        out.push_back(fail(untold(asked.error())));
      } else {
        out.push_back(price(payload, has_all_fees(payload) ? FeeQuote{} : *asked, options_));
      }
    }
    co_return out;
  }

 private:
  // Always kUnavailable, whatever the reason: the chain may answer the next time.
  static Error untold(const Error& reason) {
    return reason.kind == ErrorKind::kUnavailable ? reason : unavailable("fees_unknown", reason.message);
  }

  awaitable<Result<FeeQuote>> quote() {
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

  evm::ChainConnector& connector_;
  const evm::BlockFollower& follower_;
  FeeOptions options_;
  std::string block_;  // hash of the head at the time of the quote
  std::optional<FeeQuote> quote_;
};

}  // namespace

std::unique_ptr<FeePolicy> make_fee_policy(evm::ChainConnector& connector, const evm::BlockFollower& follower,
                                           const FeeOptions& options) {
  if (options.fixed) return std::make_unique<FixedFees>(options);
  return std::make_unique<MarketFees>(connector, follower, options);
}

}  // namespace fencepost::tx

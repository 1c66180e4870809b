#include "tx/service/fee_policy.hpp"

#include <algorithm>
#include <optional>
#include <string>

namespace fencepost::tx {
namespace {

constexpr std::uint32_t kHistoryBlocks = 10;
constexpr double kTipPercentile = 50;

// Fees of a caller that do not fit the chain are refused without a quote.
bool fits(const Payload& payload, FeeKind kind) {
  return !payload.max_fee_per_gas || kind != FeeKind::kLegacy;
}

class FixedFees : public FeePolicy {
 public:
  FixedFees(const ChainFeeKind& kind, FeeOptions options) : kind_(kind), options_(std::move(options)) {}

  awaitable<std::vector<Result<evm::Fees>>> offers(std::vector<FeeRequest> requests) override {
    std::vector<Result<evm::Fees>> out;
    out.reserve(requests.size());
    for (const auto& [payload, ceiling, refused_cap] : requests) {
      if (fits(payload, kind_.get())) {
        out.push_back(price(payload, {}, options_, ceiling));
      } else {
        out.push_back(fail(no_dynamic_fees()));
      }
    }
    co_return out;
  }

 private:
  const ChainFeeKind& kind_;
  FeeOptions options_;
};

bool has_all_fees(const Payload& payload) {
  return payload.gas_price || (payload.max_fee_per_gas && payload.max_priority_fee_per_gas);
}

class MarketFees : public FeePolicy {
 public:
  MarketFees(evm::ChainConnector& connector, const evm::BlockFollower& follower, ChainFeeKind& kind, FeeOptions options)
      : connector_(connector), follower_(follower), kind_(kind), options_(std::move(options)) {}

  awaitable<std::vector<Result<evm::Fees>>> offers(std::vector<FeeRequest> requests) override {
    Result<FeeQuote> asked = FeeQuote{};
    const auto needs_none = [](const FeeRequest& request) { return has_all_fees(request.payload); };
    if (!std::ranges::all_of(requests, needs_none)) asked = co_await quote();
    std::vector<Result<evm::Fees>> out;
    for (const auto& [payload, ceiling, refused_cap] : requests) {
      if (!fits(payload, kind_.get())) {
        out.push_back(fail(no_dynamic_fees()));
      } else if (!asked && !has_all_fees(payload)) {
        out.push_back(fail(unavailable_fees(asked.error())));
      } else {
        auto offer = price(payload, has_all_fees(payload) ? FeeQuote{} : *asked, options_, ceiling);
        if (offer && refused_cap && !payload.has_own_fees()) {
          offer = below_cap(*offer, *asked, *refused_cap);
        }
        out.push_back(std::move(offer));
      }
    }
    co_return out;
  }

 private:
  // Always kUnavailable, whatever the reason: the chain may answer the next time.
  static Error unavailable_fees(const Error& reason) {
    return reason.kind == ErrorKind::kUnavailable ? reason : unavailable("fees_unknown", reason.message);
  }

  awaitable<Result<FeeQuote>> quote() {
    const auto* head = follower_.window().head();
    const auto block = head == nullptr ? std::string() : head->hash;
    if (quote_ && !block.empty() && block == block_) co_return *quote_;
    if (head != nullptr) kind_.see(*head);
    // The price of an endpoint that is behind is an old one.
    const auto endpoint = head == nullptr ? std::nullopt : connector_.endpoint_with(head->number);
    auto fresh = co_await ask(endpoint);
    if (!fresh && endpoint) fresh = co_await ask(std::nullopt);
    if (!fresh) co_return fresh;
    quote_ = *fresh;
    block_ = block;
    co_return fresh;
  }

  awaitable<Result<FeeQuote>> ask(evm::Endpoint endpoint) {
    FeeQuote fresh;
    if (kind_.get() == FeeKind::kLegacy) {
      const auto price = co_await connector_.gas_price(endpoint);
      if (!price) co_return fail(price.error());
      fresh.gas_price = *price;
    } else {
      const auto history = co_await connector_.fee_history(kHistoryBlocks, kTipPercentile, endpoint);
      if (!history) co_return fail(history.error());
      fresh.next_base_fee = history->next_base_fee;
      fresh.tip = choose_tip(history->tips, options_);
    }
    co_return fresh;
  }

  evm::ChainConnector& connector_;
  const evm::BlockFollower& follower_;
  ChainFeeKind& kind_;
  FeeOptions options_;
  std::string block_;  // hash of the head at the time of the quote
  std::optional<FeeQuote> quote_;
};

}  // namespace

std::unique_ptr<FeePolicy> make_fee_policy(evm::ChainConnector& connector, const evm::BlockFollower& follower,
                                           ChainFeeKind& kind, const FeeOptions& options) {
  if (options.fixed) return std::make_unique<FixedFees>(kind, options);
  return std::make_unique<MarketFees>(connector, follower, kind, options);
}

}  // namespace fencepost::tx

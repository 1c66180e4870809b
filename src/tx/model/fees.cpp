#include "tx/model/fees.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "base/json.hpp"
#include "base/json_reader.hpp"

namespace fencepost::tx {
namespace {

const Uint256 kLargest = std::numeric_limits<Uint256>::max();
constexpr std::size_t kMaxFeesBytes = 1024;

using evm::DynamicFees;
using evm::LegacyFees;

// Both return nullopt on overflow.
std::optional<Uint256> add(const Uint256& a, const Uint256& b) {
  if (a > kLargest - b) return std::nullopt;
  return a + b;
}
std::optional<Uint256> multiply(const Uint256& a, std::uint32_t factor) {
  if (factor != 0 && a > kLargest / factor) return std::nullopt;
  return a * factor;
}

Result<evm::Fees> market_price(const FeeQuote& quote, const FeeOptions& options) {
  if (quote.gas_price) return LegacyFees{*quote.gas_price};
  const auto cap = multiply(quote.next_base_fee, options.base_fee_multiplier).and_then([&](const Uint256& fees) {
    return add(fees, quote.tip);
  });
  if (!cap) {
    return fail(unavailable("bad_fee_quote", "the chain's quoted fee is so high that the cap does not fit 256 bits")
                    .with("nextBaseFee", to_decimal(quote.next_base_fee))
                    .with("tip", to_decimal(quote.tip)));
  }
  return DynamicFees{*cap, quote.tip};
}

// The lowest offer that replaces an offer of `old`: ten percent more, rounded up, and always more than `old`.
std::optional<Uint256> bump(const Uint256& old) {
  const Uint256 tenth = old / 10 + (old % 10 == 0 ? 0 : 1);
  return add(old, std::max<Uint256>(tenth, 1));
}

// Both kinds of fees as cap and tip, because nodes compare them like this.
DynamicFees as_dynamic(const evm::Fees& fees) {
  if (const auto* legacy = std::get_if<LegacyFees>(&fees)) return {legacy->gas_price, legacy->gas_price};
  return std::get<DynamicFees>(fees);
}

}  // namespace

Uint256 choose_tip(std::vector<Uint256> tips, const FeeOptions& options) {
  Uint256 tip = 0;
  if (!tips.empty()) {
    const auto middle = tips.begin() + static_cast<std::ptrdiff_t>(tips.size() / 2);
    std::ranges::nth_element(tips, middle);
    tip = *middle;
  }
  return std::min(std::max(tip, options.min_tip), options.max_tip);
}

Result<evm::Fees> price(const Payload& payload, const FeeQuote& quote, const FeeOptions& options) {
  if (payload.gas_price) return LegacyFees{*payload.gas_price};
  if (payload.max_fee_per_gas) {
    if (quote.gas_price) {
      return fail(Error{ErrorKind::kUnprocessable,
                        "no_dynamic_fees",
                        "this chain has no base fee; give gasPrice instead of maxFeePerGas",
                        {},
                        {},
                        {}});
    }
    const auto tip = payload.max_priority_fee_per_gas.value_or(std::min(quote.tip, *payload.max_fee_per_gas));
    return DynamicFees{*payload.max_fee_per_gas, tip};
  }
  if (options.fixed) return *options.fixed;
  return market_price(quote, options);
}

Result<evm::Fees> cancel_price(const evm::Fees& old, const evm::Fees& current) {
  const auto before = as_dynamic(old);
  const auto now = as_dynamic(current);
  const auto cap = bump(before.max_fee_per_gas);
  const auto tip = bump(before.max_priority_fee_per_gas);
  if (!cap || !tip) {
    return fail(Error{
        ErrorKind::kUnprocessable, "fee_overflow", "a tenth more than the old fee does not fit 256 bits", {}, {}, {}});
  }
  DynamicFees fees{std::max(*cap, now.max_fee_per_gas), std::max(*tip, now.max_priority_fee_per_gas)};
  if (std::holds_alternative<LegacyFees>(current)) return LegacyFees{fees.max_fee_per_gas};
  return fees;
}

std::string fees_json(const evm::Fees& fees) {
  if (const auto* legacy = std::get_if<LegacyFees>(&fees)) {
    return fmt::format(R"({{"gasPrice":"{}"}})", to_decimal(legacy->gas_price));
  }
  const auto& dynamic = std::get<DynamicFees>(fees);
  return fmt::format(R"({{"maxFeePerGas":"{}","maxPriorityFeePerGas":"{}"}})", to_decimal(dynamic.max_fee_per_gas),
                     to_decimal(dynamic.max_priority_fee_per_gas));
}

evm::Fees stored_fees(std::string_view json) {
  const auto broken = [](const Error& error) {
    return Exception(internal("bad_stored_fees", "stored fees cannot be read").because(error.to_string()));
  };
  const auto document = parse_json(json, kMaxFeesBytes);
  if (!document) throw broken(document.error());
  try {
    const JsonReader in(*document, "fees");
    const auto amount = [&](std::string_view key) { return parse_decimal(in.field(key).uint256_text()).value(); };
    in.reject_unknown({"gasPrice", "maxFeePerGas", "maxPriorityFeePerGas"});
    if (in.field("gasPrice").present()) return LegacyFees{amount("gasPrice")};
    return DynamicFees{amount("maxFeePerGas"), amount("maxPriorityFeePerGas")};
  } catch (const Exception& e) {
    throw broken(e.error());
  }
}

}  // namespace fencepost::tx

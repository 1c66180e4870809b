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

std::optional<Uint256> lower(const std::optional<Uint256>& a, const std::optional<Uint256>& b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

Error above_ceiling(const Uint256& asked, const Uint256& ceiling) {
  return Error{ErrorKind::kUnprocessable,
               "fee_above_ceiling",
               fmt::format("the fee is {} wei per gas, and the ceiling is {}", to_decimal(asked), to_decimal(ceiling)),
               {},
               {},
               {}}
      .with("feePerGas", to_decimal(asked))
      .with("ceilingPerGas", to_decimal(ceiling));
}

Result<evm::Fees> market_price(const FeeQuote& quote, const FeeOptions& options,
                               const std::optional<Uint256>& ceiling) {
  if (quote.gas_price) return within_ceiling(LegacyFees{*quote.gas_price}, ceiling);
  auto cap = multiply(quote.next_base_fee, options.base_fee_multiplier).and_then([&](const Uint256& fees) {
    return add(fees, quote.tip);
  });
  if (!cap) {
    return fail(unavailable("bad_fee_quote", "the chain's quoted fee is so high that the cap does not fit 256 bits")
                    .with("nextBaseFee", to_decimal(quote.next_base_fee))
                    .with("tip", to_decimal(quote.tip)));
  }
  // Fits: the multiplier is at least 1.
  const Uint256 needed = quote.next_base_fee + quote.tip;
  if (ceiling && needed > *ceiling) return fail(above_ceiling(needed, *ceiling));
  if (ceiling) cap = std::min(*cap, *ceiling);
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

FeeCeiling FeeCeiling::tightest(const FeeCeiling& other) const {
  return {lower(max_fee_per_gas, other.max_fee_per_gas), lower(max_total_fee, other.max_total_fee)};
}

std::optional<Uint256> FeeCeiling::per_gas(std::uint64_t gas) const {
  if (!max_total_fee || gas == 0) return max_fee_per_gas;
  return lower(max_fee_per_gas, Uint256(*max_total_fee / gas));
}

Result<evm::Fees> below_cap(const evm::Fees& offer, const FeeQuote& quote, const Uint256& refused_cap) {
  const auto* dynamic = std::get_if<DynamicFees>(&offer);
  // A legacy price is needed in full.
  const Uint256 needed = dynamic == nullptr ? as_dynamic(offer).max_fee_per_gas : quote.next_base_fee + quote.tip;
  if (needed >= refused_cap) {
    return fail(unavailable("fee_cap_exceeded", "the chain asks as much as the endpoints refuse to let through")
                    .with("feePerGas", to_decimal(needed))
                    .with("refusedPerGas", to_decimal(refused_cap)));
  }
  if (dynamic == nullptr) return offer;
  const auto cap = std::min(dynamic->max_fee_per_gas, std::max(needed, Uint256(refused_cap / 2)));
  return DynamicFees{cap, dynamic->max_priority_fee_per_gas};
}

std::optional<Uint256> cost_of(const Uint256& value, std::uint64_t gas, const evm::Fees& fees) {
  const auto per_gas = as_dynamic(fees).max_fee_per_gas;
  if (gas != 0 && per_gas > kLargest / gas) return std::nullopt;
  return add(value, per_gas * gas);
}

FeeCeiling ceiling_of(const Payload& payload) {
  return {payload.fee_ceiling_per_gas, payload.fee_ceiling_total};
}

Error no_dynamic_fees() {
  return {ErrorKind::kUnprocessable,
          "no_dynamic_fees",
          "this chain has no base fee; give gasPrice instead of maxFeePerGas",
          {},
          {},
          {}};
}

Result<evm::Fees> within_ceiling(evm::Fees fees, const std::optional<Uint256>& ceiling) {
  const auto offered = as_dynamic(fees).max_fee_per_gas;
  if (ceiling && offered > *ceiling) return fail(above_ceiling(offered, *ceiling));
  return fees;
}

Uint256 choose_tip(std::vector<Uint256> tips, const FeeOptions& options) {
  Uint256 tip = 0;
  if (!tips.empty()) {
    const auto middle = tips.begin() + static_cast<std::ptrdiff_t>(tips.size() / 2);
    std::ranges::nth_element(tips, middle);
    tip = *middle;
  }
  return std::min(std::max(tip, options.min_tip), options.max_tip);
}

Result<evm::Fees> price(const Payload& payload, const FeeQuote& quote, const FeeOptions& options,
                        const std::optional<Uint256>& ceiling) {
  if (payload.gas_price) return within_ceiling(LegacyFees{*payload.gas_price}, ceiling);
  if (payload.max_fee_per_gas) {
    if (quote.gas_price) return fail(no_dynamic_fees());
    const auto tip = payload.max_priority_fee_per_gas.value_or(std::min(quote.tip, *payload.max_fee_per_gas));
    return within_ceiling(DynamicFees{*payload.max_fee_per_gas, tip}, ceiling);
  }
  if (options.fixed) return within_ceiling(*options.fixed, ceiling);
  return market_price(quote, options, ceiling);
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

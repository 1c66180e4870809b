// Computes what a transaction offers for its gas. The quote says what the chain asks, the options limit what Fencepost
// offers, and the caller's own values take precedence over both. Pure: no I/O.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/uint256.hpp"
#include "evm/transaction.hpp"
#include "tx/model/payload.hpp"

namespace fencepost::tx {

// What the chain asks now.
struct FeeQuote {
  Uint256 next_base_fee;             // of the next block
  Uint256 tip;                       // choose_tip() of the fee history
  std::optional<Uint256> gas_price;  // set on chains without a base fee; the other members are unused then

  friend bool operator==(const FeeQuote&, const FeeQuote&) = default;
};

// Whether blocks have a base fee (kDynamic, EIP-1559) or transactions just a gas price.
enum class FeeKind { kUnknown, kDynamic, kLegacy };

// The most that a transaction may offer, in wei. nullopt: no limit.
struct FeeCeiling {
  std::optional<Uint256> max_fee_per_gas;
  std::optional<Uint256> max_total_fee;  // gas limit times the fee per gas

  // The lower one of each limit.
  FeeCeiling tightest(const FeeCeiling& other) const;
  // The most per gas for a transaction with this gas limit; nullopt: no limit.
  std::optional<Uint256> per_gas(std::uint64_t gas) const;

  friend bool operator==(const FeeCeiling&, const FeeCeiling&) = default;
};

struct FeeOptions {
  // The policy `fixed`: these fees are offered whatever the chain asks. nullopt: market fees, the default policy.
  std::optional<evm::Fees> fixed;
  // The cap is this many times the next base fee, plus the tip. A transaction pays the actual base fee, not the cap. A
  // cap of four base fees is high enough for a dozen full blocks in a row.
  std::uint32_t base_fee_multiplier = 4;
  // Bounds of the tip; the upper bound takes precedence. Nodes commonly refuse a tip of 0.
  Uint256 min_tip = 1;
  Uint256 max_tip = 500'000'000'000;
  FeeCeiling ceiling;
  FeeKind kind = FeeKind::kUnknown;  // kUnknown: learned from the chain
  // Cancel a transaction that can never be sent and whose nonce cannot be released, as an operator would.
  bool fill_rejected = false;

  friend bool operator==(const FeeOptions&, const FeeOptions&) = default;
};

// The median of the blocks' tips (the upper median of an even number), within the bounds; the lower bound when `tips`
// is empty. Requires: no tips of empty blocks, which are 0 and say nothing about what the chain asks.
Uint256 choose_tip(std::vector<Uint256> tips, const FeeOptions& options);

// The fees to offer: the caller's own, else the fixed fees, else market fees. A caller's cap without a tip gets the
// quoted tip, at most the cap. `ceiling` is the most per gas: market fees above it get a lower cap, as long as that
// still covers the next base fee and the tip. Errors:
//   no_dynamic_fees    kUnprocessable: maxFeePerGas on a chain without a base fee
//   fee_above_ceiling  kUnprocessable: the fees are above the ceiling; the market may fall
//   bad_fee_quote      kUnavailable: the quote is so high that the cap does not fit 256 bits
Result<evm::Fees> price(const Payload& payload, const FeeQuote& quote, const FeeOptions& options,
                        const std::optional<Uint256>& ceiling = std::nullopt);

// Error: fee_above_ceiling when the fees offer more per gas than the ceiling.
Result<evm::Fees> within_ceiling(evm::Fees fees, const std::optional<Uint256>& ceiling);

// Market fees after endpoints refused a cap as too high: at most half of that cap, or what the next block needs. Error:
// kUnavailable `fee_cap_exceeded` when the next block needs as much as was refused.
Result<evm::Fees> below_cap(const evm::Fees& offer, const FeeQuote& quote, const Uint256& refused_cap);

// What a transaction may cost its signer at most; nullopt: more than 256 bits.
std::optional<Uint256> cost_of(const Uint256& value, std::uint64_t gas, const evm::Fees& fees);

// The limits that a request sets for itself.
FeeCeiling ceiling_of(const Payload& payload);

Error no_dynamic_fees();

// The fees with which an operator's cancel replaces a transaction that offered `old`. Cap and tip are each a tenth
// higher than in `old`, rounded up, as nodes demand, and at least `current`, the fees of a new transaction. The result
// is of the same kind as `current`; a legacy price counts as cap and as tip. Errors: kUnprocessable `fee_overflow`.
Result<evm::Fees> cancel_price(const evm::Fees& old, const evm::Fees& current);

// tx_attempt.fees: {"gasPrice": "1"} or {"maxFeePerGas": "2", "maxPriorityFeePerGas": "1"}. stored_fees throws
// Exception kInternal `bad_stored_fees`.
std::string fees_json(const evm::Fees& fees);
evm::Fees stored_fees(std::string_view json);

}  // namespace fencepost::tx

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

struct FeeOptions {
  // The policy `fixed`: these fees are offered whatever the chain asks. nullopt: market fees, the default policy.
  std::optional<evm::Fees> fixed;
  // The cap is this many times the next base fee, plus the tip. A transaction pays the actual base fee, not the cap. A
  // cap of four base fees is high enough for a dozen full blocks in a row.
  std::uint32_t base_fee_multiplier = 4;
  // Bounds of the tip; the upper bound takes precedence. Nodes commonly refuse a tip of 0.
  Uint256 min_tip = 1;
  Uint256 max_tip = 500'000'000'000;

  friend bool operator==(const FeeOptions&, const FeeOptions&) = default;
};

// The median of the blocks' tips (the upper median of an even number), within the bounds; the lower bound when `tips`
// is empty.
Uint256 choose_tip(std::vector<Uint256> tips, const FeeOptions& options);

// The fees to offer: the caller's own, else the fixed fees, else market fees. A caller's cap without a tip gets the
// quoted tip, at most the cap. Errors:
//   no_dynamic_fees  kUnprocessable: maxFeePerGas on a chain without a base fee
//   bad_fee_quote    kUnavailable: the quote is so high that the cap does not fit 256 bits
Result<evm::Fees> price(const Payload& payload, const FeeQuote& quote, const FeeOptions& options);

// The fees with which an operator's cancel replaces a transaction that offered `old`. Cap and tip are each a tenth
// higher than in `old`, rounded up, as nodes demand, and at least `current`, the fees of a new transaction. The result
// is of the same kind as `current`; a legacy price counts as cap and as tip. Errors: kUnprocessable `fee_overflow`.
Result<evm::Fees> cancel_price(const evm::Fees& old, const evm::Fees& current);

// tx_attempt.fees: {"gasPrice": "1"} or {"maxFeePerGas": "2", "maxPriorityFeePerGas": "1"}. stored_fees throws
// Exception kInternal `bad_stored_fees`.
std::string fees_json(const evm::Fees& fees);
evm::Fees stored_fees(std::string_view json);

}  // namespace fencepost::tx

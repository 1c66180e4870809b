// What a transaction offers for its gas. Pure: the quote says what the chain asks, the options what we are willing to
// pay, and the caller's own values come before both.
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
  std::optional<Uint256> gas_price;  // set on chains without a base fee, where it is all that counts

  friend bool operator==(const FeeQuote&, const FeeQuote&) = default;
};

struct FeeOptions {
  // The policy `fixed`: offered whatever the chain asks. None: the default policy, by the market.
  std::optional<evm::Fees> fixed;
  // The cap is this many times the next base fee, plus the tip. What is not needed of a cap is not paid, and four base
  // fees outlast a dozen full blocks in a row.
  std::uint32_t base_fee_multiplier = 4;
  // Bounds of the tip; the upper one rules. Nodes commonly refuse a tip of 0.
  Uint256 min_tip = 1;
  Uint256 max_tip = 500'000'000'000;

  friend bool operator==(const FeeOptions&, const FeeOptions&) = default;
};

// The median of the blocks' tips (the upper one of two), within the bounds; the lower bound when there are none.
Uint256 choose_tip(std::vector<Uint256> tips, const FeeOptions& options);

// What to offer: the caller's own fees, else the fixed ones, else by the market. A caller's cap without a tip gets the
// quoted tip as far as the cap allows. Errors:
//   no_dynamic_fees  kUnprocessable: maxFeePerGas on a chain without a base fee
//   bad_fee_quote    kUnavailable: the quote is so high that the cap does not fit 256 bits
Result<evm::Fees> price(const Payload& payload, const FeeQuote& quote, const FeeOptions& options);

// What the operator's cancel must offer to replace a transaction that offered `old`: at least a tenth more of cap and
// tip each, rounded up, which is what nodes demand, and at least `current`, what a new transaction would offer. It is
// of the same kind as `current`; a legacy price counts as cap and tip at once. Errors: kUnprocessable `fee_overflow`.
Result<evm::Fees> cancel_price(const evm::Fees& old, const evm::Fees& current);

// tx_attempt.fees: {"gasPrice": "1"} or {"maxFeePerGas": "2", "maxPriorityFeePerGas": "1"}. Reading throws Exception
// kInternal `bad_stored_fees`.
std::string fees_json(const evm::Fees& fees);
evm::Fees stored_fees(std::string_view json);

}  // namespace fencepost::tx

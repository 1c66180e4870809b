#include "evm/submit_class.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "base/text.hpp"

namespace fencepost::evm {
namespace {

struct Wording {
  std::string_view phrase;  // lowercase, with spaces for '_' and '-'
  SubmitClass outcome;
};

// The first phrase found in the message decides, so specific phrases come before general ones: "replacement transaction
// underpriced" before "underpriced". The revert phrases come first, since a contract's own text may follow them.
// Covers geth, anvil, erigon, nethermind (old names without spaces, new sentences as geth) and besu.
constexpr auto kWordings = std::to_array<Wording>({
    {"execution reverted", SubmitClass::kReverted},
    {"reverted 0x", SubmitClass::kReverted},
    {"vm execution error", SubmitClass::kReverted},
    {"vm exception", SubmitClass::kReverted},

    {"already known", SubmitClass::kKnownTransaction},
    {"alreadyknown", SubmitClass::kKnownTransaction},
    {"unknown transaction", SubmitClass::kInvalid},
    {"known transaction", SubmitClass::kKnownTransaction},
    {"already imported", SubmitClass::kKnownTransaction},
    {"already exists", SubmitClass::kKnownTransaction},
    {"already in mempool", SubmitClass::kKnownTransaction},
    {"already in the pool", SubmitClass::kKnownTransaction},
    {"existing txn with same hash", SubmitClass::kKnownTransaction},
    {"existing tx with same hash", SubmitClass::kKnownTransaction},

    {"nonce exceeds max nonce", SubmitClass::kInvalid},
    {"nonce has max value", SubmitClass::kInvalid},
    {"authority nonce", SubmitClass::kInvalid},
    {"notcurrentnoncefordelegation", SubmitClass::kNonceTooHigh},
    {"nonce too low", SubmitClass::kNonceTooLow},
    {"nonce is too low", SubmitClass::kNonceTooLow},
    {"below sender account nonce", SubmitClass::kNonceTooLow},
    {"oldnonce", SubmitClass::kNonceTooLow},
    {"noncetoolow", SubmitClass::kNonceTooLow},
    {"nonce too high", SubmitClass::kNonceTooHigh},
    {"nonce is too high", SubmitClass::kNonceTooHigh},
    {"nonce too far", SubmitClass::kNonceTooHigh},
    {"nonce is too distant", SubmitClass::kNonceTooHigh},
    {"noncetoofarinfuture", SubmitClass::kNonceTooHigh},
    {"noncegap", SubmitClass::kNonceTooHigh},
    {"nonce gap", SubmitClass::kNonceTooHigh},
    {"gapped nonce", SubmitClass::kNonceTooHigh},
    {"with a lower nonce exists", SubmitClass::kNonceTooHigh},

    {"replacement transaction underpriced", SubmitClass::kUnderpriced},
    {"replacement underpriced", SubmitClass::kUnderpriced},
    {"could not replace existing", SubmitClass::kUnderpriced},
    {"to replace existing transaction", SubmitClass::kUnderpriced},
    {"replacementnotallowed", SubmitClass::kUnderpriced},
    {"replacement not allowed", SubmitClass::kUnderpriced},
    {"replaced by transaction with higher tip", SubmitClass::kUnderpriced},

    {"floor data gas", SubmitClass::kIntrinsicGas},
    {"gasfloormorethangaslimit", SubmitClass::kIntrinsicGas},
    {"callgascostmorethangaslimit", SubmitClass::kIntrinsicGas},
    {"intrinsic gas too high", SubmitClass::kInvalid},
    {"intrinsic gas", SubmitClass::kIntrinsicGas},
    {"intrinsicgas", SubmitClass::kIntrinsicGas},

    {"insufficient funds", SubmitClass::kInsufficientFunds},
    {"insufficientfunds", SubmitClass::kInsufficientFunds},
    {"insufficient balance", SubmitClass::kInsufficientFunds},
    {"insufficient sender balance", SubmitClass::kInsufficientFunds},
    {"insufficient maxfeepergas", SubmitClass::kFeeTooLow},
    {"upfront cost exceeds", SubmitClass::kInsufficientFunds},
    {"up front cost", SubmitClass::kInsufficientFunds},
    {"outoffunds", SubmitClass::kInsufficientFunds},

    {"max priority fee per gas higher", SubmitClass::kInvalid},
    {"max priority fee per gas exceeds", SubmitClass::kInvalid},
    {"invalidmaxpriorityfeepergas", SubmitClass::kInvalid},
    {"max fee per gas higher", SubmitClass::kInvalid},
    {"max fee per gas less than block base fee", SubmitClass::kFeeTooLow},
    {"below current base fee", SubmitClass::kFeeTooLow},
    {"less than block base fee", SubmitClass::kFeeTooLow},
    {"fee cap less than", SubmitClass::kFeeTooLow},
    {"gas price below", SubmitClass::kFeeTooLow},
    {"gas price too low", SubmitClass::kFeeTooLow},
    {"gas tip cap", SubmitClass::kFeeTooLow},
    {"fee too low", SubmitClass::kFeeTooLow},
    {"feetoolow", SubmitClass::kFeeTooLow},
    {"fee per gas too low", SubmitClass::kFeeTooLow},
    {"underpriced", SubmitClass::kFeeTooLow},

    {"block gas limit", SubmitClass::kInvalid},
    {"gas limit reached", SubmitClass::kInvalid},
    {"gas limit exceeded", SubmitClass::kInvalid},
    {"gaslimitexceeded", SubmitClass::kInvalid},
    {"gas limit is too high", SubmitClass::kInvalid},
    {"gas limit too high", SubmitClass::kInvalid},
    {"gaslimitcapexceeded", SubmitClass::kInvalid},
    {"gas uint64 overflow", SubmitClass::kInvalid},
    {"gasuintoverflow", SubmitClass::kInvalid},
    {"int256overflow", SubmitClass::kInvalid},
    {"cost overflow", SubmitClass::kInvalid},
    {"exceeds the configured cap", SubmitClass::kFeeCapExceeded},
    {"fee cap exceeded", SubmitClass::kFeeCapExceeded},
    {"oversized data", SubmitClass::kInvalid},
    {"maxtxsizeexceeded", SubmitClass::kInvalid},
    {"transaction too large", SubmitClass::kInvalid},
    {"rlptoolong", SubmitClass::kInvalid},
    {"initcode", SubmitClass::kInvalid},
    {"type not supported", SubmitClass::kInvalid},
    {"unsupported transaction type", SubmitClass::kInvalid},
    {"invalid transaction type", SubmitClass::kInvalid},
    {"this transaction type is not activated", SubmitClass::kInvalid},
    {"notsupportedtxtype", SubmitClass::kInvalid},
    {"invalidtxtype", SubmitClass::kInvalid},
    {"not supported by the current hardfork", SubmitClass::kInvalid},
    {"invalid sender", SubmitClass::kTransient},
    {"failedtoresolvesender", SubmitClass::kInvalid},
    {"failed to recover sender", SubmitClass::kInvalid},
    {"sender not an eoa", SubmitClass::kInvalid},
    {"senderiscontract", SubmitClass::kInvalid},
    {"sender account not authorized", SubmitClass::kInvalid},
    {"invalid signature", SubmitClass::kInvalid},
    {"invalidtxsignature", SubmitClass::kInvalid},
    {"invalid chain id", SubmitClass::kTransient},
    {"invalidtxchainid", SubmitClass::kTransient},
    {"wrong chainid", SubmitClass::kTransient},
    {"chainid not supported", SubmitClass::kTransient},
    {"chainid is required", SubmitClass::kTransient},
    {"signed for another chain", SubmitClass::kInvalid},
    {"replay protected", SubmitClass::kInvalid},
    {"negative value", SubmitClass::kInvalid},
    {"failed to decode", SubmitClass::kInvalid},
    {"empty transaction data", SubmitClass::kInvalid},
    {"unable to parse rlp", SubmitClass::kInvalid},
    {"rlp:", SubmitClass::kInvalid},
    {"typed transaction too short", SubmitClass::kInvalid},
    {"marked the transaction as invalid", SubmitClass::kInvalid},

    {"pool is full", SubmitClass::kTransient},
    {"pool overflow", SubmitClass::kTransient},
    {"pool not enabled", SubmitClass::kTransient},
    {"spammer", SubmitClass::kTransient},
    {"account limit exceeded", SubmitClass::kTransient},
    {"already reserved", SubmitClass::kTransient},
    {"future transaction tries to replace pending", SubmitClass::kTransient},
    {"in flight transaction limit", SubmitClass::kTransient},
    {"pendingtxsofconflictingtype", SubmitClass::kTransient},
    {"pending transaction type conflict", SubmitClass::kTransient},
    {"has pending transaction", SubmitClass::kTransient},
    {"delegatorhaspendingtx", SubmitClass::kTransient},
    {"syncing", SubmitClass::kTransient},
    {"sync is still in progress", SubmitClass::kTransient},
    {"not yet in sync", SubmitClass::kTransient},
    {"rate limit", SubmitClass::kTransient},
    {"ratelimit", SubmitClass::kTransient},
    {"too many requests", SubmitClass::kTransient},
    {"request limit", SubmitClass::kTransient},
    {"limit exceeded", SubmitClass::kTransient},
    {"quota", SubmitClass::kTransient},
    {"capacity", SubmitClass::kTransient},
    {"overloaded", SubmitClass::kTransient},
    {"too busy", SubmitClass::kTransient},
    {"try again", SubmitClass::kTransient},
    {"unavailable", SubmitClass::kTransient},
    {"does not exist/is not available", SubmitClass::kTransient},
    {"method not found", SubmitClass::kTransient},
    {"method not enabled", SubmitClass::kTransient},

    {"gas required exceeds allowance", SubmitClass::kReverted},
    {"out of gas", SubmitClass::kReverted},
    {"outofgas", SubmitClass::kReverted},
    {"invalid opcode", SubmitClass::kReverted},
    {"invalid jump", SubmitClass::kReverted},
    {"badinstruction", SubmitClass::kReverted},
    {"badjumpdestination", SubmitClass::kReverted},
    {"stack underflow", SubmitClass::kReverted},
    {"stack limit reached", SubmitClass::kReverted},
    {"evm error", SubmitClass::kReverted},
    {"could not be completed due to an exception", SubmitClass::kReverted},

    {"transaction invalid", SubmitClass::kInvalid},
    {"invalid transaction", SubmitClass::kInvalid},
    {"invalid,", SubmitClass::kInvalid},
});

std::string normal(std::string_view message) {
  std::string text(message);
  std::ranges::transform(text, text.begin(), [](char c) { return c == '_' || c == '-' ? ' ' : lower(c); });
  return text;
}

}  // namespace

std::string_view to_string(SubmitClass outcome) {
  switch (outcome) {
    case SubmitClass::kAccepted:
      return "accepted";
    case SubmitClass::kKnownTransaction:
      return "known_transaction";
    case SubmitClass::kNonceTooLow:
      return "nonce_too_low";
    case SubmitClass::kNonceTooHigh:
      return "nonce_too_high";
    case SubmitClass::kUnderpriced:
      return "underpriced";
    case SubmitClass::kFeeTooLow:
      return "fee_too_low";
    case SubmitClass::kFeeCapExceeded:
      return "fee_cap_exceeded";
    case SubmitClass::kInsufficientFunds:
      return "insufficient_funds";
    case SubmitClass::kIntrinsicGas:
      return "intrinsic_gas";
    case SubmitClass::kReverted:
      return "reverted";
    case SubmitClass::kTransient:
      return "transient";
    case SubmitClass::kInvalid:
      return "invalid";
    case SubmitClass::kUnknown:
      break;
  }
  return "unknown";
}

SubmitClass classify_submit_error(std::int64_t code, std::string_view message) {
  constexpr std::int64_t kExecutionReverted = 3;  // geth's
  if (code == kExecutionReverted) return SubmitClass::kReverted;
  const auto text = normal(message);
  if (text == "mined") return SubmitClass::kNonceTooLow;  // erigon's; other nodes use the word in sentences
  if (text == "invalid") return SubmitClass::kInvalid;    // nethermind's
  for (const auto& [phrase, outcome] : kWordings) {
    if (text.contains(phrase)) return outcome;
  }
  constexpr std::int64_t kMethodNotFound = -32601;
  constexpr std::int64_t kInvalidParams = -32602;
  constexpr std::int64_t kLimitExceeded = -32005;
  if (code == kMethodNotFound || code == kLimitExceeded || code == 429) return SubmitClass::kTransient;
  if (code == kInvalidParams) return SubmitClass::kInvalid;
  return SubmitClass::kUnknown;
}

bool leaves_doubt(SubmitClass outcome) {
  return outcome == SubmitClass::kKnownTransaction || outcome == SubmitClass::kNonceTooLow ||
         outcome == SubmitClass::kUnknown;
}

}  // namespace fencepost::evm

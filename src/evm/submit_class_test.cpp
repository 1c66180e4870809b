#include "evm/submit_class.hpp"

#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace fencepost::evm {
namespace {

struct Case {
  std::string_view client;
  std::int64_t code;
  std::string_view message;
  SubmitClass outcome;
};

using enum SubmitClass;

// The messages of each node software, from its sources or from its replies.
const std::vector<Case> kCases{
    {"geth", -32000, "already known", kKnownTransaction},
    {"a proxy", -32000, "unknown transaction type 0x2", kInvalid},
    {"geth", -32000, "nonce too low: next nonce 5, tx nonce 4", kNonceTooLow},
    {"geth", -32000, "nonce too high: tx nonce 9, gapped nonce 4", kNonceTooHigh},
    {"geth", -32000, "gapped-nonce tx from delegated accounts", kNonceTooHigh},
    {"geth", -32000, "replacement transaction underpriced", kUnderpriced},
    {"geth", -32000, "replacement transaction underpriced: new tx gas fee cap 2 < 3 queued", kUnderpriced},
    {"geth", -32000, "transaction underpriced", kFeeTooLow},
    {"geth", -32000, "transaction underpriced: gas tip cap 0, minimum needed 1", kFeeTooLow},
    {"geth", -32000, "transaction gas price below minimum: gas tip cap 0, minimum needed 1", kFeeTooLow},
    {"geth", -32000,
     "max fee per gas less than block base fee: address 0xf39F, maxFeePerGas: 1, baseFee: 1000000000 (supplied gas 1)",
     kFeeTooLow},
    {"geth", -32000, "insufficient funds for gas * price + value: balance 0, tx cost 5, overshot 5",
     kInsufficientFunds},
    {"geth", -32000, "insufficient funds for transfer", kInsufficientFunds},
    {"geth", -32000, "intrinsic gas too low: gas 20000, minimum needed 21000", kIntrinsicGas},
    {"geth", -32000, "insufficient gas for floor data gas cost: gas 21000, minimum needed 31000", kIntrinsicGas},
    {"geth", -32000, "exceeds block gas limit", kInvalid},
    {"geth", -32000, "transaction gas limit too high (cap: 16777216, tx: 30000000)", kInvalid},
    {"geth", -32000, "transaction type not supported: tx type 3 not supported by this pool", kInvalid},
    {"geth", -32000, "invalid sender: invalid chain id for signer: have 1 want 31337", kTransient},
    {"geth", -32000, "only replay-protected (EIP-155) transactions allowed over RPC", kInvalid},
    {"geth", -32000, "tx fee (21.00 ether) exceeds the configured cap (1.00 ether)", kFeeCapExceeded},
    {"geth", -32000, "oversized data: transaction size 200000, limit 131072", kInvalid},
    {"geth", -32000, "max priority fee per gas higher than max fee per gas", kInvalid},
    {"geth", -32000, "max initcode size exceeded: code size 60000, limit 49152", kInvalid},
    {"geth", -32000, "nonce has max value", kInvalid},
    {"geth", -32000, "rlp: expected List", kInvalid},
    {"geth", -32000, "typed transaction too short", kInvalid},
    {"geth", -32602, "invalid argument 0: json: cannot unmarshal hex string of odd length", kInvalid},
    {"geth", -32000, "sender not an eoa: address 0xf39F, len(code): 23", kInvalid},
    {"geth", -32000, "txpool is full", kTransient},
    {"geth", -32000, "account limit exceeded: pooled 64 txs", kTransient},
    {"geth", -32000, "address already reserved", kTransient},
    {"geth", -32000, "future transaction tries to replace pending", kTransient},
    {"geth", -32000, "in-flight transaction limit reached for delegated accounts", kTransient},
    {"geth", -32601, "the method eth_sendRawTransaction does not exist/is not available", kTransient},
    {"geth", 3, "execution reverted: insufficient funds", kReverted},
    {"geth", -32000, "execution reverted", kReverted},
    {"geth", -32000, "gas required exceeds allowance (30000000)", kReverted},
    {"geth", -32000, "invalid opcode: opcode 0xfe not defined", kReverted},
    {"geth", -32000, "out of gas", kReverted},

    {"anvil", -32003, "transaction already imported", kKnownTransaction},
    {"anvil", -32003, "nonce too low", kNonceTooLow},
    {"anvil", -32003, "Nonce too high", kNonceTooHigh},
    {"anvil", -32003, "replacement transaction underpriced", kUnderpriced},
    {"anvil", -32003, "max fee per gas less than block base fee", kFeeTooLow},
    {"anvil", -32003, "Insufficient funds for gas * price + value", kInsufficientFunds},
    {"anvil", -32000, "intrinsic gas too low", kIntrinsicGas},
    {"anvil", -32000, "intrinsic gas too high -- CallGasCostMoreThanGasLimit", kIntrinsicGas},
    {"anvil", -32000, "intrinsic gas too high -- tx.gas_limit > env.block.gas_limit", kInvalid},
    {"anvil", -32003, "invalid chain id for signer", kTransient},
    {"anvil", -32003, "Incompatible EIP-155 transaction, signed for another chain", kInvalid},
    {"anvil", -32602, "Failed to decode transaction", kInvalid},
    {"anvil", -32602, "Empty transaction data", kInvalid},
    {"anvil", -32603, "EVM error InvalidFEOpcode", kReverted},
    {"anvil", -32603, "EVM error OutOfFunds", kInsufficientFunds},
    {"anvil", -32003, "Out of gas: gas required exceeds allowance: 21000", kReverted},
    {"anvil", -32603, "Transaction confirmation timeout", kUnknown},

    {"erigon", -32000, "already known", kKnownTransaction},
    {"erigon", -32000, "AlreadyKnown", kKnownTransaction},
    {"erigon", -32000, "existing txn with same hash", kKnownTransaction},
    {"erigon", -32000, "existing tx with same hash", kKnownTransaction},
    {"erigon", -32000, "nonce too low", kNonceTooLow},
    {"erigon", -32000, "mined", kNonceTooLow},
    {"erigon", -32000, "could not replace existing tx", kUnderpriced},
    {"erigon", -32000, "INTERNAL_ERROR: could not replace existing tx", kUnderpriced},
    {"erigon", -32000, "replaced by transaction with higher tip", kUnderpriced},
    {"erigon", -32000, "underpriced", kFeeTooLow},
    {"erigon", -32000, "fee too low", kFeeTooLow},
    {"erigon", -32000, "insufficient funds", kInsufficientFunds},
    {"erigon", -32000, "IntrinsicGas", kIntrinsicGas},
    {"erigon", -32000, "invalid sender", kTransient},
    {"erigon", -32000, "RLPTooLong", kInvalid},
    {"erigon", -32000, "GasUintOverflow", kInvalid},
    {"erigon", -32000, "initcode too large", kInvalid},
    {"erigon", -32000, "gas limit is too high", kInvalid},
    {"erigon", -32000, "fork supporting this transaction type is not activated yet", kInvalid},
    {"erigon", -32000, "pending sub-pool is full", kTransient},
    {"erigon", -32000, "baseFee sub-pool is full", kTransient},
    {"erigon", -32000, "queued sub-pool is full", kTransient},
    {"erigon", -32000, "spammer", kTransient},

    {"nethermind", -32010, "AlreadyKnown", kKnownTransaction},
    {"nethermind", -32010, "already known", kKnownTransaction},
    {"nethermind", -32010, "OldNonce", kNonceTooLow},
    {"nethermind", -32010, "OldNonce, Current nonce: 5, nonce of rejected tx: 4.", kNonceTooLow},
    {"nethermind", -32010, "NonceGap", kNonceTooHigh},
    {"nethermind", -32010, "NonceGap, Future nonce. Expected nonce: 4", kNonceTooHigh},
    {"nethermind", -32010, "NonceTooFarInFuture", kNonceTooHigh},
    {"nethermind", -32010, "nonce too far in future", kNonceTooHigh},
    {"nethermind", -32010, "ReplacementNotAllowed", kUnderpriced},
    {"nethermind", -32010, "FeeTooLow", kFeeTooLow},
    {"nethermind", -32010, "FeeTooLow, MaxFeePerGas too low. MaxFeePerGas: 1, BaseFee: 7", kFeeTooLow},
    {"nethermind", -32010, "FeeTooLowToCompete", kFeeTooLow},
    {"nethermind", -32010, "InsufficientFunds, Account balance: 0, cumulative cost: 21000", kInsufficientFunds},
    {"nethermind", -32010, "Invalid, intrinsic gas too low", kIntrinsicGas},
    {"nethermind", -32010, "transaction invalid, intrinsic gas too low", kIntrinsicGas},
    {"nethermind", -32010, "Invalid", kInvalid},
    {"nethermind", -32010, "Invalid, something nobody has met", kInvalid},
    {"nethermind", -32010, "Invalid, InvalidTxChainId: Expected 1, got 31337.", kTransient},
    {"nethermind", -32010, "GasLimitExceeded", kInvalid},
    {"nethermind", -32010, "gas limit reached", kInvalid},
    {"nethermind", -32010, "Int256Overflow", kInvalid},
    {"nethermind", -32010, "FailedToResolveSender", kInvalid},
    {"nethermind", -32010, "SenderIsContract", kInvalid},
    {"nethermind", -32010, "NotSupportedTxType", kInvalid},
    {"nethermind", -32010, "MaxTxSizeExceeded, size is 200000", kInvalid},
    {"nethermind", -32010, "NonceTooHigh: Nonce exceeds max nonce", kInvalid},
    {"nethermind", -32010, "PendingTxsOfConflictingType", kTransient},
    {"nethermind", -32010, "pending transaction type conflict", kTransient},
    {"nethermind", -32010, "Syncing", kTransient},
    {"nethermind", -32010, "node is syncing", kTransient},
    {"nethermind", -32015, "VM execution error.", kReverted},

    {"besu", -32000, "Known transaction", kKnownTransaction},
    {"besu", -32001, "Nonce too low", kNonceTooLow},
    {"besu", -32001, "NONCE_TOO_LOW", kNonceTooLow},
    {"besu", -32001, "transaction nonce 4 below sender account nonce 5", kNonceTooLow},
    {"besu", -32006, "Nonce too high", kNonceTooHigh},
    {"besu", -32000, "Transaction nonce is too distant from current sender nonce", kNonceTooHigh},
    {"besu", -32000, "An invalid transaction with a lower nonce exists", kNonceTooHigh},
    {"besu", -32000, "Replacement transaction underpriced", kUnderpriced},
    {"besu", -32000, "TRANSACTION_REPLACEMENT_UNDERPRICED", kUnderpriced},
    {"besu", -32009, "Gas price below configured minimum gas price", kFeeTooLow},
    {"besu", -32009, "Gas price below current base fee", kFeeTooLow},
    {"besu", -32009, "GAS_PRICE_TOO_LOW", kFeeTooLow},
    {"besu", -32004, "Upfront cost exceeds account balance", kInsufficientFunds},
    {"besu", -32004, "UPFRONT_COST_EXCEEDS_BALANCE", kInsufficientFunds},
    {"besu", -32004, "transaction up-front cost 0x2 exceeds transaction sender account balance 0x1",
     kInsufficientFunds},
    {"besu", -32003, "Intrinsic gas exceeds gas limit", kIntrinsicGas},
    {"besu", -32003, "intrinsic gas cost 21000 exceeds gas limit 20000", kIntrinsicGas},
    {"besu", -32005, "Transaction gas limit exceeds block gas limit", kInvalid},
    {"besu", -32002, "Invalid signature", kInvalid},
    {"besu", -32602, "Invalid transaction type", kInvalid},
    {"besu", -32000, "Wrong chainId", kTransient},
    {"besu", -32000, "Transaction fee cap exceeded", kFeeCapExceeded},
    {"besu", -32000, "Max priority fee per gas exceeds max fee per gas", kInvalid},
    {"besu", -32007, "Sender account not authorized to send transactions", kInvalid},
    {"besu", -32602, "Invalid block, unable to parse RLP", kInvalid},
    {"besu", -32000, "Plugin has marked the transaction as invalid", kInvalid},
    {"besu", -32008, "Initial sync is still in progress", kTransient},
    {"besu", -32002, "Transaction pool not enabled. (Either txpool explicitly disabled, or node not yet in sync).",
     kTransient},
    {"besu", -32000, "Execution reverted", kReverted},
    {"besu", -32000, "Transaction processing could not be completed due to an exception", kReverted},
    {"besu", -32603, "Timeout expired", kUnknown},

    {"provider", -32005, "daily request count exceeded, request rate limited", kTransient},
    {"provider", 429, "Your app has exceeded its compute units per second capacity", kTransient},
    {"provider", -32005, "slow down", kTransient},
    {"provider", -32000, "rate limit exceeded", kTransient},
    {"provider", -32000, "Too Many Requests", kTransient},
    {"provider", -32000, "server overloaded, try again", kTransient},
    {"provider", -32603, "Internal error", kUnknown},
    {"provider", -32000, "request timed out", kUnknown},
    {"provider", -32000, "the moon is in the wrong phase", kUnknown},
    {"provider", 0, "", kUnknown},
};

TEST(submit_class, the_messages_of_every_node_software_are_classified) {
  for (const auto& [client, code, message, outcome] : kCases) {
    EXPECT_EQ(to_string(classify_submit_error(code, message)), to_string(outcome)) << client << ": " << message;
  }
}

TEST(submit_class, the_cases_cover_the_important_classes_for_every_node_software) {
  for (const std::string_view client : {"geth", "anvil", "erigon", "nethermind", "besu"}) {
    std::set<SubmitClass> seen;
    for (const auto& row : kCases) {
      if (row.client == client) seen.insert(row.outcome);
    }
    for (const auto needed :
         {kKnownTransaction, kNonceTooLow, kUnderpriced, kFeeTooLow, kInsufficientFunds, kIntrinsicGas, kInvalid}) {
      EXPECT_TRUE(seen.contains(needed)) << client << " " << to_string(needed);
    }
  }
}

TEST(submit_class, names_are_distinct) {
  std::set<std::string_view> names;
  for (const auto outcome : {kAccepted, kKnownTransaction, kNonceTooLow, kNonceTooHigh, kUnderpriced, kFeeTooLow,
                             kInsufficientFunds, kIntrinsicGas, kReverted, kTransient, kInvalid, kUnknown}) {
    EXPECT_TRUE(names.insert(to_string(outcome)).second) << to_string(outcome);
  }
}

TEST(submit_class, a_refusal_that_may_hide_a_success_leaves_doubt) {
  for (const auto outcome : {kKnownTransaction, kNonceTooLow, kUnknown}) {
    EXPECT_TRUE(leaves_doubt(outcome)) << to_string(outcome);
  }
  for (const auto outcome : {kAccepted, kNonceTooHigh, kUnderpriced, kFeeTooLow, kInsufficientFunds, kIntrinsicGas,
                             kReverted, kTransient, kInvalid}) {
    EXPECT_FALSE(leaves_doubt(outcome)) << to_string(outcome);
  }
}

}  // namespace
}  // namespace fencepost::evm

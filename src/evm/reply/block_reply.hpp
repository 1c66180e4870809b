// Parses blocks, receipts, transactions and fees from an endpoint's results. Endpoints are not trusted: every member is
// checked, and a missing or wrong one is kUnavailable `bad_rpc_result`.
//
// Hashes and addresses are returned in lowercase. Functions that return an optional give nothing for `null`.
#pragma once

#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/error.hpp"
#include "evm/chain_connector.hpp"
#include "evm/reply/rpc_reply.hpp"

namespace fencepost::evm {

// A block whose transactions are given as hashes.
Result<std::optional<Block>> parse_block(const RpcValue& value);

// A receipt without effectiveGasPrice (nodes older than EIP-1559) gets the price 0.
Result<std::optional<Receipt>> parse_receipt(const RpcValue& value);

// The receipts of the wanted transactions, out of all receipts of a block; the others are not checked. Nothing when the
// endpoint does not have the block.
Result<std::optional<std::vector<Receipt>>> parse_block_receipts(const RpcValue& value,
                                                                 const std::unordered_set<std::string>& wanted);

Result<std::optional<TransactionInfo>> parse_transaction(const RpcValue& value);

Result<FeeHistory> parse_fee_history(const RpcValue& value);

// Single values: a 256-bit quantity, a number that fits 63 bits, "0x…" of any length.
Result<Uint256> parse_uint256_result(const RpcValue& value);
Result<std::int64_t> parse_int64_result(const RpcValue& value);
Result<Bytes> parse_bytes_result(const RpcValue& value);

}  // namespace fencepost::evm

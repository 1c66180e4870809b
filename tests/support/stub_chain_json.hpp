// Writes blocks, receipts and transactions as an EVM node does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "tests/support/stub_chain.hpp"

namespace fencepost::test {

// The block lists the hashes of its transactions.
std::string block_json(const StubBlock& block, std::uint64_t gas_limit);
std::string receipt_json(const StubBlock& block, std::size_t index);
// `block` is nullptr while the transaction waits in the pool.
std::string transaction_json(const evm::DecodedTransaction& tx, const StubBlock* block, std::size_t index);

}  // namespace fencepost::test

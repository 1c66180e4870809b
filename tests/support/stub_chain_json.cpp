#include "tests/support/stub_chain_json.hpp"

#include <span>
#include <variant>

#include <fmt/format.h>

#include "base/hex.hpp"

namespace fencepost::test {
namespace {

std::string zeros(std::size_t bytes) {
  return "0x" + std::string(2 * bytes, '0');
}

const std::string kZeroWord = zeros(32);
const std::string kZeroAddress = zeros(20);
const std::string kNoLogs = zeros(256);
constexpr std::string_view kEmptyUncles = "0x1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347";

bool is_legacy(const evm::Transaction& tx) {
  return std::holds_alternative<evm::LegacyFees>(tx.fees);
}

std::string address_or_null(const std::optional<evm::Address>& address) {
  return address ? fmt::format("\"{}\"", to_hex0x(*address)) : "null";
}

// A contract creation deploys no code here, but it has an address of its own; any unique address works.
std::string contract_of(const evm::DecodedTransaction& tx) {
  if (tx.transaction.to) return "null";
  return fmt::format("\"{}\"", to_hex0x(std::span(tx.hash).first<20>()));
}

std::string quantity(const evm::Hash32& bytes) {
  return to_quantity(from_big_endian(bytes));
}

}  // namespace

std::string block_json(const StubBlock& block, std::uint64_t gas_limit) {
  std::string transactions;
  transactions.reserve(block.receipts.size() * 70);
  for (const auto& receipt : block.receipts) {
    if (!transactions.empty()) transactions += ',';
    transactions += '"';
    transactions += to_hex0x(receipt.transaction->hash);
    transactions += '"';
  }
  return fmt::format(
      R"({{"number":"0x{:x}","hash":"{}","parentHash":"{}","timestamp":"0x{:x}","baseFeePerGas":"0x{:x}",)"
      R"("gasLimit":"0x{:x}","gasUsed":"0x{:x}","miner":"{}","difficulty":"0x0","extraData":"0x","logsBloom":"{}",)"
      R"("mixHash":"{}","nonce":"0x0000000000000000","receiptsRoot":"{}","sha3Uncles":"{}","size":"0x200",)"
      R"("stateRoot":"{}","transactionsRoot":"{}","uncles":[],"transactions":[{}]}})",
      block.number, to_hex0x(block.hash), to_hex0x(block.parent), block.timestamp, block.base_fee, gas_limit,
      block.gas_used, kZeroAddress, kNoLogs, kZeroWord, kZeroWord, kEmptyUncles, kZeroWord, kZeroWord, transactions);
}

std::string receipt_json(const StubBlock& block, std::size_t index) {
  const auto& receipt = block.receipts.at(index);
  const auto& tx = *receipt.transaction;
  return fmt::format(
      R"({{"transactionHash":"{}","transactionIndex":"0x{:x}","blockHash":"{}","blockNumber":"0x{:x}","from":"{}",)"
      R"("to":{},"contractAddress":{},"status":"0x{:x}","gasUsed":"0x{:x}","cumulativeGasUsed":"0x{:x}",)"
      R"("effectiveGasPrice":"{}","type":"0x{:x}","logs":[],"logsBloom":"{}"}})",
      to_hex0x(tx.hash), index, to_hex0x(block.hash), block.number, to_hex0x(tx.sender),
      address_or_null(tx.transaction.to), contract_of(tx), receipt.succeeded ? 1 : 0, receipt.gas_used,
      receipt.gas_so_far, to_quantity(receipt.gas_price), is_legacy(tx.transaction) ? 0 : 2, kNoLogs);
}

std::string transaction_json(const evm::DecodedTransaction& tx, const StubBlock* block, std::size_t index) {
  const auto& t = tx.transaction;
  std::string place = R"("blockHash":null,"blockNumber":null,"transactionIndex":null)";
  if (block != nullptr) {
    place = fmt::format(R"("blockHash":"{}","blockNumber":"0x{:x}","transactionIndex":"0x{:x}")", to_hex0x(block->hash),
                        block->number, index);
  }
  std::string fees;
  std::uint64_t v = tx.signature.y_parity ? 1 : 0;
  if (const auto* legacy = std::get_if<evm::LegacyFees>(&t.fees)) {
    fees = fmt::format(R"("type":"0x0","gasPrice":"{}")", to_quantity(legacy->gas_price));
    v += 35 + 2 * t.chain_id;
  } else {
    const auto& dynamic = std::get<evm::DynamicFees>(t.fees);
    const auto price = block == nullptr ? dynamic.max_fee_per_gas : block->receipts.at(index).gas_price;
    fees = fmt::format(
        R"("type":"0x2","gasPrice":"{}","maxFeePerGas":"{}","maxPriorityFeePerGas":"{}","accessList":[],"yParity":"0x{:x}")",
        to_quantity(price), to_quantity(dynamic.max_fee_per_gas), to_quantity(dynamic.max_priority_fee_per_gas), v);
  }
  return fmt::format(
      R"({{"hash":"{}","from":"{}","to":{},"nonce":"0x{:x}","value":"{}","gas":"0x{:x}","input":"{}","chainId":"0x{:x}",)"
      R"({},{},"v":"0x{:x}","r":"{}","s":"{}"}})",
      to_hex0x(tx.hash), to_hex0x(tx.sender), address_or_null(t.to), t.nonce, to_quantity(t.value), t.gas,
      to_hex0x(t.data), t.chain_id, place, fees, v, quantity(tx.signature.r), quantity(tx.signature.s));
}

}  // namespace fencepost::test

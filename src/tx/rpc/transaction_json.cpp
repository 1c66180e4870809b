#include "tx/rpc/transaction_json.hpp"

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "base/hex.hpp"
#include "base/uint256.hpp"
#include "evm/address.hpp"

namespace fencepost::tx {
namespace {

namespace json = boost::json;

void add_fees(json::object& out, const evm::Fees& fees) {
  if (const auto* legacy = std::get_if<evm::LegacyFees>(&fees)) {
    out["type"] = "0x0";
    out["gasPrice"] = to_quantity(legacy->gas_price);
    return;
  }
  const auto& dynamic = std::get<evm::DynamicFees>(fees);
  out["type"] = "0x2";
  out["gasPrice"] = to_quantity(dynamic.max_fee_per_gas);  // as nodes show a pending one
  out["maxFeePerGas"] = to_quantity(dynamic.max_fee_per_gas);
  out["maxPriorityFeePerGas"] = to_quantity(dynamic.max_priority_fee_per_gas);
  out["accessList"] = json::array();
}

void add_signature(json::object& out, const evm::DecodedTransaction& tx) {
  const auto parity = Uint256(tx.signature.y_parity ? 1 : 0);
  const bool legacy = std::holds_alternative<evm::LegacyFees>(tx.transaction.fees);
  out["v"] = to_quantity(legacy ? Uint256(35 + 2 * Uint256(tx.transaction.chain_id) + parity) : parity);
  if (!legacy) out["yParity"] = to_quantity(parity);
  out["r"] = to_quantity(from_big_endian(tx.signature.r));
  out["s"] = to_quantity(from_big_endian(tx.signature.s));
}

void add_block(json::object& out, const std::optional<std::string>& receipt) {
  json::value mined;
  if (receipt) mined = json::parse(*receipt);
  for (const auto* name : {"blockHash", "blockNumber", "transactionIndex"}) {
    const auto* value = mined.is_object() ? mined.get_object().if_contains(name) : nullptr;
    out[name] = value == nullptr ? json::value(nullptr) : *value;
  }
}

}  // namespace

std::string transaction_json(const evm::DecodedTransaction& signed_tx, const std::optional<std::string>& receipt) {
  const auto& tx = signed_tx.transaction;
  json::object out;
  add_block(out, receipt);
  out["hash"] = to_hex0x(signed_tx.hash);
  out["from"] = evm::address_text(signed_tx.sender);
  out["to"] = tx.to ? json::value(evm::address_text(*tx.to)) : json::value(nullptr);
  out["nonce"] = to_quantity(Uint256(tx.nonce));
  out["gas"] = to_quantity(Uint256(tx.gas));
  out["value"] = to_quantity(tx.value);
  out["input"] = to_hex0x(tx.data);
  out["chainId"] = to_quantity(Uint256(tx.chain_id));
  add_fees(out, tx.fees);
  add_signature(out, signed_tx);
  return json::serialize(out);
}

}  // namespace fencepost::tx

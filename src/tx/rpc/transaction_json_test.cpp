#include "tx/rpc/transaction_json.hpp"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

#include "base/hex.hpp"

namespace fencepost::tx {
namespace {

namespace json = boost::json;

// The example of EIP-155.
constexpr std::string_view kLegacy =
    "0xf86c098504a817c800825208943535353535353535353535353535353535353535880de0b6b3a76400008025a028ef61340bd939bc2195fe"
    "53"
    "7567866003e1a15d3c71ff63e1590620aa636276a067cbe9d8997f761aecb703304b3800ccf555c9f3dc64214b297fb1966a3b6d83";

evm::DecodedTransaction decoded(std::string_view raw) {
  return evm::decode_transaction(from_hex0x(raw).value()).value();
}

TEST(transaction_json, shows_a_pending_legacy_transaction) {
  const auto tx = json::parse(transaction_json(decoded(kLegacy), std::nullopt));
  EXPECT_EQ(tx, json::parse(R"({
    "blockHash": null, "blockNumber": null, "transactionIndex": null,
    "hash": "0x33469b22e9f636356c4160a87eb19df52b7412e8eac32a4a55ffe88ea8350788",
    "from": "0x9d8a62f656a8d1615c1294fd71e9cfb3e4855a4f", "to": "0x3535353535353535353535353535353535353535",
    "nonce": "0x9", "gas": "0x5208", "value": "0xde0b6b3a7640000", "input": "0x", "chainId": "0x1", "type": "0x0",
    "gasPrice": "0x4a817c800", "v": "0x25",
    "r": "0x28ef61340bd939bc2195fe537567866003e1a15d3c71ff63e1590620aa636276",
    "s": "0x67cbe9d8997f761aecb703304b3800ccf555c9f3dc64214b297fb1966a3b6d83"})"));
}

TEST(transaction_json, a_receipt_gives_the_block) {
  const auto tx = json::parse(transaction_json(
      decoded(kLegacy), R"({"blockHash": "0xab", "blockNumber": "0x5", "transactionIndex": "0x0", "status": "0x1"})"));
  EXPECT_EQ(tx.at("blockHash").as_string(), "0xab");
  EXPECT_EQ(tx.at("blockNumber").as_string(), "0x5");
  EXPECT_EQ(tx.at("transactionIndex").as_string(), "0x0");
  EXPECT_FALSE(tx.as_object().contains("status"));
}

}  // namespace
}  // namespace fencepost::tx

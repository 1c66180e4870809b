#include "tx/model/payload.hpp"

#include <gtest/gtest.h>

#include "base/digest.hpp"
#include "base/error.hpp"
#include "base/hex.hpp"
#include "base/json.hpp"

namespace fencepost::tx {
namespace {

const std::string kChecksummed = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";
const std::string kLower = "0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed";
const std::string kLargest = "115792089237316195423570985008687907853269984665640564039457584007913129639935";
const std::string kOneMore = "115792089237316195423570985008687907853269984665640564039457584007913129639936";

// Reads the payload as the member "payload" of a request.
Payload read(const std::string& text) {
  const auto body = parse_json(R"({"payload":)" + text + "}", 1 << 20).value();
  return read_payload(JsonReader(body).field("payload"));
}
Error error_of_reading(const std::string& text) {
  try {
    read(text);
  } catch (const Exception& e) {
    return e.error();
  }
  return internal("", "nothing was thrown");
}

TEST(payload, reads_every_member_in_every_spelling) {
  const auto payload = read(R"({"to":")" + kChecksummed + R"(","value":"0xde0b6b3a7640000","data":"0xABcd","gas":30000,
      "maxFeePerGas":"100","maxPriorityFeePerGas":"0x2"})");
  EXPECT_EQ(payload.to, kLower);
  EXPECT_EQ(payload.value, Uint256("1000000000000000000"));
  EXPECT_EQ(payload.data, "0xabcd");
  EXPECT_EQ(payload.gas, 30000U);
  EXPECT_EQ(payload.gas_price, std::nullopt);
  EXPECT_EQ(payload.max_fee_per_gas, Uint256(100));
  EXPECT_EQ(payload.max_priority_fee_per_gas, Uint256(2));
  EXPECT_EQ(payload.canonical(), R"({"to":")" + kLower +
                                     R"(","value":"1000000000000000000","data":"0xabcd","gas":"30000",)"
                                     R"("maxFeePerGas":"100","maxPriorityFeePerGas":"2"})");
}

TEST(payload, two_spellings_of_one_request_are_one_request) {
  const auto one = read(R"({"to":")" + kChecksummed + R"(","value":"255","gas":"0x7530","data":"0xFF"})");
  const auto other = read(R"({"data":"0xff","gas":30000,"value":"0xff","to":")" + kLower + R"(","gasPrice":null})");
  EXPECT_EQ(one, other);
  EXPECT_EQ(one.canonical(), other.canonical());
  EXPECT_EQ(one.hash(), other.hash());
  const auto another = read(R"({"data":"0xff","gas":30001,"value":"0xff","to":")" + kLower + R"("})");
  EXPECT_NE(one.hash(), another.hash());
}

TEST(payload, an_absent_member_differs_from_any_given_one) {
  const auto bare = read(R"({"to":")" + kLower + R"("})");
  EXPECT_EQ(bare.canonical(), R"({"to":")" + kLower + R"("})");
  const auto with = [](const std::string& member) { return read(R"({"to":")" + kLower + "\"," + member + "}"); };
  for (const auto* member : {R"("gas":21000)", R"("value":"0")", R"("data":"0x")", R"("gasPrice":"0")",
                             R"("feeCeilingPerGas":"0")", R"("feeCeilingTotal":"0")"}) {
    EXPECT_NE(with(member), bare) << member;
    EXPECT_NE(with(member).hash(), bare.hash()) << member;
  }
  EXPECT_EQ(with(R"("value":null)"), bare);
}

TEST(payload, the_hash_is_of_the_canonical_form) {
  const auto payload = read(R"({"to":")" + kChecksummed + R"(","value":"0x10"})");
  const auto hash = payload.hash();
  ASSERT_EQ(hash.size(), 32U);
  const std::vector<std::uint8_t> bytes(hash.begin(), hash.end());
  EXPECT_EQ(to_hex(bytes), sha256_hex(R"({"to":")" + kLower + R"(","value":"16"})"));
}

TEST(payload, says_what_the_members_of_other_clients_are_called_here) {
  const std::pair<std::string, std::string> cases[] = {
      {"too", R"(; did you mean "to"?)"},
      {"gasLimit", R"(; did you mean "gas"?)"},
      {"input", R"(; did you mean "data"?)"},
      {"nonce", "; Fencepost assigns the nonce: leave it out"},
      {"accessList", "; access lists are not supported: leave it out"},
      {"from", "; the sender is `signer`, beside the payload"},
      {"type", "; the type follows from the fees: leave it out"},
  };
  for (const auto& [member, hint] : cases) {
    const auto error = error_of_reading("{\"to\":\"" + kLower + "\",\"" + member + "\":null}");
    EXPECT_EQ(error.message, "payload: unknown field \"" + member + "\"" + hint);
    EXPECT_EQ(error.context, (Error::Context{{"field", "payload." + member}}));
  }
}

TEST(payload, says_which_field_is_wrong_and_why) {
  struct Case {
    std::string text;
    std::string code;
    std::string message;
  };
  const auto to = R"("to":")" + kLower + "\"";
  const Case cases[] = {
      {R"({})", "empty_payload", "payload: needs `to`, or `data` to create a contract"},
      {R"({"value":"1"})", "empty_payload", "payload: needs `to`, or `data` to create a contract"},
      {R"({"data":"0x"})", "empty_payload", "payload: needs `to`, or `data` to create a contract"},
      {R"([])", "bad_request", "payload: expected an object, got an array"},
      {R"({"to":5})", "bad_request", "payload.to: expected a string, got number 5"},
      {"{" + to + R"(,"value":1})", "bad_request", "payload.value: expected decimal or 0x string, got number 1"},
      {"{" + to + R"(,"value":"-1"})", "bad_request", R"(payload.value: expected decimal or 0x string, got "-1")"},
      {"{" + to + R"(,"value":"010"})", "bad_request",
       R"(payload.value: expected decimal or 0x string, got "010": leading zero)"},
      {"{" + to + R"(,"value":")" + kOneMore + R"("})", "bad_request",
       "payload.value: expected decimal or 0x string, got \"" + kOneMore + "\": over 256 bits"},
      {"{" + to + R"(,"gas":-1})", "bad_request",
       "payload.gas: expected an integer from 0 to 9223372036854775807, got number -1"},
      {"{" + to + R"(,"gas":9223372036854775808})", "bad_request",
       "payload.gas: expected an integer from 0 to 9223372036854775807, got number 9223372036854775808"},
      {"{" + to + R"(,"gas":"9223372036854775808"})", "bad_request",
       "payload.gas: expected at most 9223372036854775807, got 9223372036854775808"},
      {"{" + to + R"(,"gas":1.5})", "bad_request", "payload.gas: expected an integer, got number 1.5E0"},
      {"{" + to + R"(,"gas":20999})", "gas_too_low",
       "payload.gas: 20999 is under the intrinsic cost of 21000: it could never be mined"},
      {R"({"data":"0x00","gas":"21000"})", "gas_too_low",
       "payload.gas: 21000 is under the intrinsic cost of 53006: it could never be mined"},
      {"{" + to + R"(,"gasPrice":"1","maxFeePerGas":"1"})", "bad_fees",
       "payload.gasPrice: must not be given together with maxFeePerGas or maxPriorityFeePerGas"},
      {"{" + to + R"(,"gasPrice":"1","maxPriorityFeePerGas":"1"})", "bad_fees",
       "payload.gasPrice: must not be given together with maxFeePerGas or maxPriorityFeePerGas"},
      {"{" + to + R"(,"maxPriorityFeePerGas":"1"})", "bad_fees",
       "payload.maxPriorityFeePerGas: needs maxFeePerGas beside it"},
      {"{" + to + R"(,"maxFeePerGas":"1","maxPriorityFeePerGas":"2"})", "bad_fees",
       "payload.maxPriorityFeePerGas: must not be above maxFeePerGas"},
      {"{" + to + R"(,"data":"0x)" + std::string(2 * kPayloadMaxDataBytes + 2, '0') + R"("})", "data_too_large",
       "payload.data: expected at most 131072 bytes of data"},
  };
  for (const auto& c : cases) {
    const auto error = error_of_reading(c.text);
    EXPECT_EQ(error.message, c.message);
    EXPECT_EQ(error.code, c.code) << c.message;
    EXPECT_EQ(error.kind, ErrorKind::kInvalid) << c.message;
    ASSERT_EQ(error.context.size(), 1U) << c.message;
    EXPECT_EQ(error.context[0],
              (std::pair<std::string, std::string>("field", c.message.substr(0, c.message.find(": ")))));
  }
}

TEST(payload, checks_addresses_and_hex) {
  struct Case {
    std::string text;
    std::string code;
    std::string field;
  };
  auto mistyped = kChecksummed;
  mistyped[4] = 'E';  // was e
  const Case cases[] = {
      {R"({"to":"0x12"})", "bad_address", "payload.to"},
      {R"({"to":""})", "bad_address", "payload.to"},
      {R"({"to":")" + kLower.substr(2) + R"("})", "bad_address", "payload.to"},
      {R"({"to":"vitalik.eth"})", "bad_address", "payload.to"},
      {R"({"to":")" + mistyped + R"("})", "bad_checksum", "payload.to"},
      {R"({"data":"0xabc"})", "bad_hex", "payload.data"},
      {R"({"data":"abcd"})", "bad_hex", "payload.data"},
      {R"({"data":"0xzz"})", "bad_hex", "payload.data"},
      {R"({"data":""})", "bad_hex", "payload.data"},
  };
  for (const auto& c : cases) {
    const auto error = error_of_reading(c.text);
    EXPECT_EQ(error.code, c.code) << c.text;
    ASSERT_EQ(error.context.size(), 1U) << c.text;
    EXPECT_EQ(error.context[0].second, c.field) << c.text;
  }
}

TEST(payload, takes_the_largest_of_everything) {
  const auto payload = read(R"({"to":")" + kLower + R"(","value":")" + kLargest + R"(","maxFeePerGas":")" + kLargest +
                            R"(","maxPriorityFeePerGas":")" + kLargest + R"(","gas":"9223372036854775807","data":"0x)" +
                            std::string(2 * kPayloadMaxDataBytes, 'f') + R"("})");
  EXPECT_EQ(to_decimal(*payload.value), kLargest);
  EXPECT_EQ(payload.gas, 9223372036854775807U);
  EXPECT_EQ(stored_payload(payload.canonical()), payload);
}

TEST(payload, a_stored_payload_is_read_back) {
  const std::string spellings[] = {
      R"({"to":")" + kLower + R"("})",
      R"({"data":"0x6001","value":"5"})",
      R"({"to":")" + kLower + R"(","gasPrice":"7","gas":"21000"})",
      R"({"to":")" + kLower + R"(","maxFeePerGas":"7","maxPriorityFeePerGas":"1","data":"0x"})",
  };
  for (const auto& text : spellings) {
    const auto payload = read(text);
    EXPECT_EQ(stored_payload(payload.canonical()), payload) << text;
  }
  // jsonb returns members in another order and with spaces.
  EXPECT_EQ(stored_payload(R"({"to": ")" + kLower + R"(", "gas": "21000", "value": "5"})"),
            read(R"({"value":"5","gas":"21000","to":")" + kLower + R"("})"));
}

TEST(payload, only_the_form_of_a_stored_payload_is_checked) {
  EXPECT_EQ(stored_payload(R"({"to":")" + kLower + R"(","gas":"1"})").gas, 1U);
  EXPECT_EQ(stored_payload("{}"), Payload{});
  for (const auto* text : {"", "[]", R"({"gas":"x"})", R"({"nonce":"1"})", R"({"to":"0x1"})"}) {
    try {
      stored_payload(text);
      ADD_FAILURE() << text;
    } catch (const Exception& e) {
      EXPECT_EQ(e.error().code, "bad_stored_payload") << text;
      EXPECT_EQ(e.error().kind, ErrorKind::kInternal);
    }
  }
}

TEST(payload, becomes_a_transaction) {
  const auto payload = read(R"({"to":")" + kChecksummed + R"(","value":"5","data":"0x0102"})");
  const evm::Fees fees = evm::DynamicFees{100, 2};
  const auto transaction = build_transaction(payload, 31337, 9, 60000, fees);
  EXPECT_EQ(transaction, (evm::Transaction{.chain_id = 31337,
                                           .nonce = 9,
                                           .gas = 60000,
                                           .to = from_hex0x_fixed<20>(kLower).value(),
                                           .value = 5,
                                           .data = {1, 2},
                                           .fees = fees}));
  const auto creation = build_transaction(read(R"({"data":"0x6001"})"), 1, 0, 60000, evm::LegacyFees{3});
  EXPECT_EQ(creation.to, std::nullopt);
  EXPECT_EQ(creation.value, 0);
  EXPECT_EQ(creation.data, (Bytes{0x60, 0x01}));
}

}  // namespace
}  // namespace fencepost::tx

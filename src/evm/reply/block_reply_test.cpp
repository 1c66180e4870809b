#include "evm/reply/block_reply.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>

namespace fencepost::evm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string hash(char digit) {
  return "0x" + std::string(64, digit);
}
std::string address(char digit) {
  return "0x" + std::string(40, digit);
}

RpcValue value(const boost::json::value& json) {
  RpcValue out(boost::json::serialize(json));
  out.set_endpoint(3);
  return out;
}

boost::json::object block_json() {
  return {{"number", "0x10"},
          {"hash", hash('a')},
          {"parentHash", hash('b')},
          {"timestamp", "0x65"},
          {"baseFeePerGas", "0x7"},
          {"extraData", "0x"},
          {"uncles", boost::json::array{}},
          {"transactions", {hash('1'), hash('2')}}};
}

boost::json::object receipt_json() {
  return {{"transactionHash", hash('1')},
          {"blockHash", hash('a')},
          {"blockNumber", "0x10"},
          {"transactionIndex", "0x2"},
          {"status", "0x1"},
          {"gasUsed", "0x5208"},
          {"effectiveGasPrice", "0x77359400"},
          {"contractAddress", nullptr},
          {"logs", {{{"address", address('c')}, {"data", "0x"}}}}};
}

boost::json::value text(const std::string& content) {
  return boost::json::value(boost::json::string(content));
}

using Changes = std::vector<std::pair<std::string, boost::json::value>>;

template <class Parse>
void each_change_is_bad(const boost::json::object& good, const Changes& bad, const std::vector<std::string>& required,
                        Parse parse) {
  ASSERT_TRUE(parse(value(good)));
  for (const auto& [member, wrong] : bad) {
    auto changed = good;
    changed[member] = wrong;
    const auto parsed = parse(value(changed));
    ASSERT_FALSE(parsed) << member << " " << boost::json::serialize(wrong);
    EXPECT_EQ(parsed.error().code, "bad_rpc_result");
    EXPECT_EQ(parsed.error().kind, ErrorKind::kUnavailable);
  }
  for (const auto& member : required) {
    auto changed = good;
    changed.erase(member);
    const auto parsed = parse(value(changed));
    ASSERT_FALSE(parsed) << "without " << member;
    EXPECT_THAT(parsed.error().message, HasSubstr(member));
  }
  for (const auto* text : {"true", "7", "\"x\"", "[]", "{}", "{", "", "{}{}", "[{}]"}) {
    const auto parsed = parse(RpcValue(text));
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, "bad_rpc_result");
  }
}

TEST(block_reply, a_block_is_read) {
  const auto block = parse_block(value(block_json()));
  ASSERT_TRUE(block) << block.error().to_string();
  EXPECT_EQ((*block)->header, (BlockHeader{16, hash('a'), hash('b'), 101, Uint256(7)}));
  EXPECT_THAT((*block)->transactions, ElementsAre(hash('1'), hash('2')));
  EXPECT_EQ((*block)->endpoint, 3U);
}

TEST(block_reply, a_bloom_is_read_wherever_it_stands) {
  auto json = block_json();
  json["logsBloom"] = text("0x80" + std::string(510, '0'));
  const auto last = parse_block(value(json));
  ASSERT_TRUE(last && (*last)->header.logs_bloom);
  EXPECT_EQ((*last)->header.logs_bloom->front(), 0x80);
  auto in_front = boost::json::serialize(block_json());
  in_front.insert(1, fmt::format(R"("logsBloom":"0x01{}",)", std::string(510, '0')));
  const auto first = parse_block(RpcValue(in_front));
  ASSERT_TRUE(first && (*first)->header.logs_bloom);
  EXPECT_EQ((*first)->header.logs_bloom->front(), 0x01);
}

TEST(block_reply, a_bloom_that_cannot_be_trusted_is_unknown) {
  auto json = block_json();
  for (const boost::json::value& bloom : std::vector<boost::json::value>{
           nullptr, "0x", "", 7, boost::json::array{}, text(std::string(514, '1')), text("0x" + std::string(510, '1')),
           text("0x" + std::string(512, 'g')), text("0x" + std::string(512, '0'))}) {
    json["logsBloom"] = bloom;
    const auto block = parse_block(value(json));
    ASSERT_TRUE(block) << boost::json::serialize(bloom) << block.error().to_string();
    EXPECT_EQ((*block)->header.logs_bloom, nullptr) << boost::json::serialize(bloom);
    EXPECT_EQ((*block)->transactions.size(), 2U);
  }
  json["transactions"] = boost::json::array{};
  EXPECT_NE((*parse_block(value(json)))->header.logs_bloom, nullptr) << "zeros of an empty block are certain";
}

TEST(block_reply, null_means_that_there_is_no_block) {
  EXPECT_FALSE(parse_block(RpcValue("null"))->has_value());
}

TEST(block_reply, old_blocks_have_no_base_fee_and_hashes_become_lowercase) {
  auto json = block_json();
  json.erase("baseFeePerGas");
  json["hash"] = "0x" + std::string(64, 'A');
  const auto block = parse_block(value(json));
  ASSERT_TRUE(block);
  EXPECT_EQ((*block)->header.base_fee, std::nullopt);
  EXPECT_EQ((*block)->header.hash, hash('a'));
}

TEST(block_reply, a_wrong_block_is_refused) {
  each_change_is_bad(block_json(),
                     {{"number", nullptr},
                      {"number", 16},
                      {"number", "16"},
                      {"number", "0x"},
                      {"number", "-0x1"},
                      {"number", "0x8000000000000000"},
                      {"hash", nullptr},
                      {"hash", "0xab"},
                      {"hash", text(std::string(66, 'a'))},
                      {"hash", text("0x" + std::string(64, 'g'))},
                      {"parentHash", 5},
                      {"timestamp", "0xffffffffffffffffff"},
                      {"baseFeePerGas", text("0x1" + std::string(64, '0'))},
                      {"baseFeePerGas", "seven"},
                      {"transactions", nullptr},
                      {"transactions", "0x"},
                      {"transactions", boost::json::array{"0x12"}},
                      {"transactions", boost::json::parse(R"([{"hash":"0x"}])")}},
                     {"number", "hash", "parentHash", "timestamp", "transactions"}, parse_block);
  auto twice = boost::json::serialize(block_json());
  twice.insert(1, R"("number":"0x11",)");
  EXPECT_EQ(parse_block(RpcValue(twice)).error().code, "bad_rpc_result");
}

TEST(block_reply, a_receipt_is_read) {
  const auto receipt = parse_receipt(value(receipt_json()));
  ASSERT_TRUE(receipt) << receipt.error().to_string();
  EXPECT_EQ((*receipt)->tx_hash, hash('1'));
  EXPECT_EQ((*receipt)->block_hash, hash('a'));
  EXPECT_EQ((*receipt)->block_number, 16);
  EXPECT_EQ((*receipt)->transaction_index, 2);
  EXPECT_TRUE((*receipt)->succeeded);
  EXPECT_EQ((*receipt)->gas_used, 21000);
  EXPECT_EQ((*receipt)->effective_gas_price, 2'000'000'000);
  EXPECT_EQ((*receipt)->contract_address, std::nullopt);
  EXPECT_EQ((*receipt)->json, boost::json::serialize(receipt_json()));
  EXPECT_EQ((*receipt)->endpoint, 3U);
  EXPECT_FALSE(parse_receipt(RpcValue("null"))->has_value());
}

TEST(block_reply, a_failed_creation_is_read) {
  auto json = receipt_json();
  json["status"] = "0x0";
  json["contractAddress"] = "0x" + std::string(40, 'D');
  json.erase("effectiveGasPrice");
  const auto receipt = parse_receipt(value(json));
  ASSERT_TRUE(receipt);
  EXPECT_FALSE((*receipt)->succeeded);
  EXPECT_EQ((*receipt)->contract_address, address('d'));
  EXPECT_EQ((*receipt)->effective_gas_price, 0);
}

TEST(block_reply, a_wrong_receipt_is_refused) {
  each_change_is_bad(receipt_json(),
                     {{"transactionHash", "0x1"},
                      {"blockHash", nullptr},
                      {"blockNumber", nullptr},
                      {"transactionIndex", "x"},
                      {"status", nullptr},
                      {"status", true},
                      {"status", "0x2"},
                      {"gasUsed", 21000},
                      {"effectiveGasPrice", ""},
                      {"contractAddress", "0x12"}},
                     {"transactionHash", "blockHash", "blockNumber", "transactionIndex", "status", "gasUsed"},
                     parse_receipt);
}

TEST(block_reply, only_the_wanted_receipts_of_a_block_are_returned) {
  boost::json::array all;
  for (const char digit : {'1', '2', '3', '4'}) {
    auto receipt = receipt_json();
    receipt["transactionHash"] = hash(digit);
    all.emplace_back(receipt);
  }
  const auto some = parse_block_receipts(value(all), {hash('2'), hash('4'), hash('9')});
  ASSERT_TRUE(some) << some.error().to_string();
  ASSERT_EQ((*some)->size(), 2U);
  EXPECT_EQ((**some)[0].tx_hash, hash('2'));
  EXPECT_EQ((**some)[1].tx_hash, hash('4'));
  EXPECT_EQ((**some)[1].endpoint, 3U);
  EXPECT_EQ((**some)[1].json, boost::json::serialize(all[3]));
  EXPECT_EQ(parse_block_receipts(value(boost::json::array{}), {hash('2')})->value().size(), 0U);
  EXPECT_FALSE(parse_block_receipts(RpcValue("null"), {hash('2')})->has_value());
}

TEST(block_reply, wrong_receipts_of_a_block_are_refused) {
  auto nameless = receipt_json();
  nameless.erase("transactionHash");
  auto broken = receipt_json();
  broken["status"] = "x";
  const std::vector<boost::json::value> cases{7, receipt_json(), boost::json::array{nameless},
                                              boost::json::array{broken}, boost::json::array{7}};
  for (const auto& bad : cases) {
    const auto parsed = parse_block_receipts(value(bad), {hash('1')});
    ASSERT_FALSE(parsed) << boost::json::serialize(bad);
    EXPECT_EQ(parsed.error().code, "bad_rpc_result");
  }
  EXPECT_TRUE(parse_block_receipts(value(boost::json::array{broken}), {hash('2')}))
      << "the broken receipt is not a wanted one";
}

TEST(block_reply, a_transaction_is_read) {
  const boost::json::object json{{"hash", hash('1')},  {"from", address('f')}, {"nonce", "0x5"}, {"blockHash", nullptr},
                                 {"to", address('A')}, {"value", "0x9"},       {"input", "0xAB"}};
  const auto pending = parse_transaction(value(json));
  ASSERT_TRUE(pending) << pending.error().to_string();
  EXPECT_EQ((*pending)->hash, hash('1'));
  EXPECT_EQ((*pending)->from, address('f'));
  EXPECT_EQ((*pending)->nonce, 5);
  EXPECT_EQ((*pending)->to, address('a'));
  EXPECT_EQ((*pending)->value, Uint256(9));
  EXPECT_EQ((*pending)->data, "0xab");
  EXPECT_EQ((*pending)->block_hash, std::nullopt);
  auto creation = json;
  creation["to"] = nullptr;
  EXPECT_EQ((*parse_transaction(value(creation)))->to, std::nullopt);
  auto mined = json;
  mined["blockHash"] = hash('a');
  EXPECT_EQ((*parse_transaction(value(mined)))->block_hash, hash('a'));
  EXPECT_FALSE(parse_transaction(RpcValue("null"))->has_value());
  each_change_is_bad(
      json, {{"from", nullptr}, {"nonce", 5}, {"blockHash", "0x1"}, {"to", "0x1"}, {"value", 9}, {"input", "0x1"}},
      {"hash", "from", "nonce", "value", "input"}, parse_transaction);
}

TEST(block_reply, a_fee_history_is_read) {
  const boost::json::object json{{"oldestBlock", "0x1"},
                                 {"baseFeePerGas", {"0x5", "0x6", "0x7"}},
                                 {"gasUsedRatio", {0.5, 0.1}},
                                 {"reward", {boost::json::array{"0x1", "0x9"}, boost::json::array{"0x2", "0x9"}}}};
  const auto history = parse_fee_history(value(json));
  ASSERT_TRUE(history) << history.error().to_string();
  EXPECT_EQ(history->next_base_fee, 7);
  EXPECT_THAT(history->tips, ElementsAre(Uint256(1), Uint256(2)));
  each_change_is_bad(json,
                     {{"baseFeePerGas", boost::json::array{}},
                      {"baseFeePerGas", nullptr},
                      {"baseFeePerGas", boost::json::array{5}},
                      {"reward", nullptr},
                      {"reward", boost::json::parse("[[]]")},
                      {"reward", boost::json::array{"0x1"}}},
                     {"baseFeePerGas", "reward"}, parse_fee_history);
}

TEST(block_reply, the_zero_rewards_of_empty_blocks_are_left_out) {
  const boost::json::array none{"0x0"}, some{"0x3"};
  boost::json::object json{
      {"baseFeePerGas", {"0x5", "0x6", "0x7", "0x8"}}, {"gasUsedRatio", {0, 0.0, 0.2}}, {"reward", {none, some, none}}};
  EXPECT_THAT(parse_fee_history(value(json))->tips, ElementsAre(Uint256(3), Uint256(0)));
  json.erase("gasUsedRatio");
  EXPECT_THAT(parse_fee_history(value(json))->tips, ElementsAre(Uint256(0), Uint256(3), Uint256(0)));
  json["gasUsedRatio"] = nullptr;
  EXPECT_TRUE(parse_fee_history(value(json)));
}

TEST(block_reply, single_values_are_checked) {
  EXPECT_EQ(parse_uint256_result(RpcValue("\"0x1f\"")), Uint256(31));
  EXPECT_EQ(parse_int64_result(RpcValue("\"0x7fffffffffffffff\"")), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(parse_bytes_result(RpcValue("\"0x0102\"")), (Bytes{1, 2}));
  EXPECT_EQ(parse_bytes_result(RpcValue("\"0x\"")), Bytes{});
  for (const auto* text : {"null", "31", "\"31\"", "\"\"", "\"0x\"", "{}", "\"0xg\"", "tru"}) {
    EXPECT_EQ(parse_uint256_result(RpcValue(text)).error().code, "bad_rpc_result") << text;
    EXPECT_EQ(parse_int64_result(RpcValue(text)).error().code, "bad_rpc_result") << text;
  }
  EXPECT_EQ(parse_int64_result(RpcValue("\"0x8000000000000000\"")).error().code, "bad_rpc_result");
  EXPECT_EQ(parse_bytes_result(RpcValue("\"0x123\"")).error().code, "bad_rpc_result");
  EXPECT_EQ(parse_bytes_result(RpcValue("null")).error().code, "bad_rpc_result");
}

}  // namespace
}  // namespace fencepost::evm

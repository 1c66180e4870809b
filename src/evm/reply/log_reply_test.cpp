#include "evm/reply/log_reply.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>

namespace fencepost::evm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string digits(char digit, std::size_t count) {
  return "0x" + std::string(count, digit);
}
const std::string kBlock = digits('b', 64);
const std::string kContract = digits('c', 40);
const LogFilter kContracts{.addresses = {kContract, digits('d', 40)}, .topics = {}};

boost::json::object log_json(std::int64_t block_number = 16, std::int64_t index = 2) {
  return {{"address", kContract},
          {"topics", {digits('1', 64), digits('2', 64)}},
          {"data", "0x00ff"},
          {"blockNumber", fmt::format("0x{:x}", block_number)},
          {"blockHash", kBlock},
          {"blockTimestamp", "0x65"},
          {"transactionHash", digits('e', 64)},
          {"transactionIndex", "0x1"},
          {"logIndex", fmt::format("0x{:x}", index)},
          {"removed", false}};
}

boost::json::value text(const std::string& content) {
  return boost::json::value(boost::json::string(content));
}

RpcValue value(boost::json::array logs) {
  return RpcValue(boost::json::serialize(logs));
}

Result<std::vector<Log>> of_block(const RpcValue& answer) {
  return parse_block_logs(answer, kBlock, kContracts);
}

TEST(log_reply, a_log_is_read_whole) {
  const auto logs = of_block(value({log_json()}));
  ASSERT_TRUE(logs) << logs.error().to_string();
  const Log expected{.address = kContract,
                     .topics = {digits('1', 64), digits('2', 64)},
                     .data = "0x00ff",
                     .tx_hash = digits('e', 64),
                     .block_hash = kBlock,
                     .block_number = 16,
                     .log_index = 2,
                     .block_timestamp = 0x65};
  EXPECT_THAT(*logs, ElementsAre(expected));
}

TEST(log_reply, upper_case_becomes_lower_case) {
  auto log = log_json();
  log["address"] = text("0x" + std::string(40, 'C'));
  log["data"] = "0xAB";
  log["blockHash"] = text("0x" + std::string(64, 'B'));
  log["topics"] = boost::json::array{text("0x" + std::string(64, 'F'))};
  const auto logs = of_block(value({log}));
  ASSERT_TRUE(logs) << logs.error().to_string();
  EXPECT_EQ(logs->front().address, kContract);
  EXPECT_EQ(logs->front().data, "0xab");
  EXPECT_EQ(logs->front().topics, std::vector{digits('f', 64)});
}

TEST(log_reply, no_logs_no_topics_and_no_data_are_fine) {
  EXPECT_THAT(*of_block(RpcValue("[]")), IsEmpty());
  EXPECT_THAT(*of_block(RpcValue(" [ ] ")), IsEmpty());
  auto bare = log_json();
  bare["topics"] = boost::json::array{};
  bare["data"] = "0x";
  bare.erase("removed");
  bare.erase("transactionIndex");
  const auto logs = of_block(value({bare}));
  ASSERT_TRUE(logs) << logs.error().to_string();
  EXPECT_THAT(logs->front().topics, IsEmpty());
  EXPECT_EQ(logs->front().data, "0x");
}

TEST(log_reply, a_timestamp_in_no_known_form_counts_as_absent) {
  for (const boost::json::value& form :
       std::vector<boost::json::value>{nullptr, 1700000000, "1700000000", "0x", "", boost::json::array{1},
                                       boost::json::object{{"a", 1}}, text("0x" + std::string(17, 'f'))}) {
    auto log = log_json();
    log["blockTimestamp"] = form;
    const auto logs = of_block(value({log}));
    ASSERT_TRUE(logs) << boost::json::serialize(form) << logs.error().to_string();
    EXPECT_EQ(logs->front().block_timestamp, std::nullopt) << boost::json::serialize(form);
    EXPECT_EQ(logs->front().log_index, 2) << "what follows is read";
  }
  auto without = log_json();
  without.erase("blockTimestamp");
  EXPECT_EQ(of_block(value({without}))->front().block_timestamp, std::nullopt);
}

TEST(log_reply, logs_are_sorted) {
  auto early = log_json(15, 7);
  early["blockHash"] = text(digits('a', 64));
  const auto logs = parse_range_logs(value({log_json(16, 3), log_json(16, 1), early}), 15, 16, kContracts);
  ASSERT_TRUE(logs) << logs.error().to_string();
  std::vector<std::int64_t> order;
  for (const auto& log : *logs) order.push_back(log.log_index);
  EXPECT_THAT(order, ElementsAre(7, 1, 3));
}

TEST(log_reply, a_log_with_a_wrong_member_is_refused) {
  const std::vector<std::pair<std::string, boost::json::value>> wrong{
      {"removed", true},
      {"removed", "false"},
      {"removed", 0},
      {"address", nullptr},
      {"address", text(digits('c', 39))},
      {"address", text(digits('9', 40))},  // of another contract
      {"address", 5},
      {"address", boost::json::array{text(kContract)}},
      {"topics", nullptr},
      {"topics", "0x"},
      {"topics", boost::json::object{}},
      {"topics", boost::json::array{text(digits('1', 63))}},
      {"topics", boost::json::array{nullptr}},
      {"topics", boost::json::array{1}},
      {"topics", boost::json::array(5, text(digits('1', 64)))},
      {"data", nullptr},
      {"data", ""},
      {"data", "0x1"},
      {"data", "0X12"},
      {"data", "0x1g"},
      {"data", "12"},
      {"data", 12},
      {"blockHash", nullptr},
      {"blockHash", text(digits('a', 64))},  // of another block
      {"blockHash", text(digits('b', 66))},
      {"blockNumber", nullptr},
      {"blockNumber", "16"},
      {"blockNumber", 16},
      {"blockNumber", "0x"},
      {"blockNumber", "0x010"},
      {"blockNumber", "0x-1"},
      {"blockNumber", "0x-0"},
      {"blockNumber", "0x1 "},
      {"blockNumber", "0x8000000000000000"},
      {"blockNumber", text(digits('f', 65))},
      {"transactionHash", nullptr},
      {"transactionHash", "0x"},
      {"logIndex", nullptr},
      {"logIndex", ""},
      {"logIndex", "0xzz"},
      {"logIndex", true}};
  for (const auto& [member, bad] : wrong) {
    auto log = log_json();
    log[member] = bad;
    const auto logs = of_block(value({log_json(16, 1), log}));
    ASSERT_FALSE(logs) << member << " " << boost::json::serialize(bad);
    EXPECT_EQ(logs.error().code, "bad_rpc_result");
  }
  for (const auto* member : {"address", "topics", "data", "blockHash", "blockNumber", "transactionHash", "logIndex"}) {
    auto log = log_json();
    log.erase(member);
    const auto logs = of_block(value({log}));
    ASSERT_FALSE(logs) << member;
    EXPECT_THAT(logs.error().message, HasSubstr(fmt::format("{} is missing", member)));
    auto doubled = boost::json::serialize(log_json());
    doubled.insert(1, fmt::format(R"("{}":{},)", member, boost::json::serialize(log_json().at(member))));
    const auto twice = of_block(RpcValue("[" + doubled + "]"));
    ASSERT_FALSE(twice) << doubled;
    EXPECT_THAT(twice.error().message, HasSubstr(fmt::format("{} is given twice", member)));
  }
}

TEST(log_reply, what_is_no_array_of_logs_is_refused) {
  const auto good = boost::json::serialize(log_json());
  for (const auto& answer :
       {std::string("null"), std::string("{}"), std::string("\"0x\""), std::string("1"), std::string("true"),
        std::string("[null]"), std::string("[1]"), std::string("[[]]"), std::string("[{}]"), std::string(""),
        std::string("["), std::string("]"), good, "[" + good, "[" + good + ",]", fmt::format("[{0} {0}]", good),
        "[" + good + "]]", "[" + good + "] x", "[" + good + "][]"}) {
    const auto logs = of_block(RpcValue(answer));
    ASSERT_FALSE(logs) << answer;
    EXPECT_EQ(logs.error().code, "bad_rpc_result");
  }
}

TEST(log_reply, logs_that_contradict_each_other_are_refused) {
  EXPECT_THAT(of_block(value({log_json(16, 2), log_json(16, 1), log_json(16, 2)})).error().message,
              HasSubstr("given twice"));
  auto fork = log_json(16, 3);
  fork["blockHash"] = text(digits('a', 64));
  const auto two = parse_range_logs(value({log_json(16, 2), fork}), 1, 20, kContracts);
  ASSERT_FALSE(two);
  EXPECT_THAT(two.error().message, HasSubstr("has the hashes"));
}

TEST(log_reply, logs_outside_the_range_are_refused) {
  EXPECT_TRUE(parse_range_logs(value({log_json(16)}), 16, 16, kContracts));
  EXPECT_FALSE(parse_range_logs(value({log_json(16)}), 17, 20, kContracts));
  EXPECT_FALSE(parse_range_logs(value({log_json(16)}), 1, 15, kContracts));
}

TEST(log_reply, truncated_and_corrupt_answers_never_crash) {
  const auto whole = boost::json::serialize(boost::json::array{log_json(16, 1), log_json(16, 2)});
  ASSERT_TRUE(of_block(RpcValue(whole)));
  for (std::size_t cut = 0; cut < whole.size(); ++cut) {
    EXPECT_FALSE(of_block(RpcValue(whole.substr(0, cut)))) << cut;
    for (const char bent : {'\0', '"', '{', '}', '[', ']', ',', ':', '\\', 'x', '\xFF'}) {
      auto broken = whole;
      broken[cut] = bent;
      std::ignore = of_block(RpcValue(broken));  // may succeed or fail, must return
    }
  }
}

TEST(log_reply, large_answers_pass) {
  constexpr std::int64_t kLogs = 50'000;
  std::string answer = "[";
  for (std::int64_t i = kLogs - 1; i >= 0; --i) {
    answer += boost::json::serialize(log_json(16, i));
    answer += i > 0 ? "," : "]";
  }
  const auto logs = of_block(RpcValue(std::move(answer)));
  ASSERT_TRUE(logs) << logs.error().to_string();
  ASSERT_EQ(logs->size(), kLogs);
  EXPECT_EQ(logs->front().log_index, 0);
  EXPECT_EQ(logs->back().log_index, kLogs - 1);
}

Receipt receipt_with(boost::json::array logs, char transaction = 'e') {
  const boost::json::object object{{"status", "0x1"}, {"logs", std::move(logs)}};
  return {.tx_hash = digits(transaction, 64), .block_hash = kBlock, .json = boost::json::serialize(object)};
}

TEST(log_reply, the_logs_of_receipts_are_those_of_the_filter_in_order) {
  auto foreign = log_json(16, 4);
  foreign["address"] = digits('9', 40);
  foreign.erase("data");  // of another contract: not checked
  auto second = log_json(16, 1);
  second["transactionHash"] = digits('f', 64);
  second["topics"] = {digits('3', 64)};
  const std::vector<Receipt> receipts{receipt_with({foreign, log_json(16, 5), log_json(16, 2)}),
                                      receipt_with({second}, 'f'), receipt_with({}, 'a')};
  const auto all = parse_receipt_logs(receipts, kContracts);
  ASSERT_TRUE(all) << all.error().to_string();
  ASSERT_EQ(all->size(), 3U);
  EXPECT_EQ(all->at(0).tx_hash, digits('f', 64));
  EXPECT_EQ(all->at(1), of_block(value({log_json(16, 2)}))->front()) << "as eth_getLogs has it";
  EXPECT_EQ(all->at(2).log_index, 5);
  const auto some = parse_receipt_logs(receipts, {.addresses = {kContract}, .topics = {digits('3', 64)}});
  ASSERT_TRUE(some) << some.error().to_string();
  ASSERT_EQ(some->size(), 1U);
  EXPECT_EQ(some->front().log_index, 1);
}

TEST(log_reply, receipts_that_contradict_themselves_are_refused) {
  auto other_block = log_json();
  other_block["blockHash"] = digits('a', 64);
  EXPECT_FALSE(parse_receipt_logs({receipt_with({other_block})}, kContracts));
  EXPECT_FALSE(parse_receipt_logs({receipt_with({log_json()}, 'f')}, kContracts)) << "a log of another transaction";
  EXPECT_FALSE(parse_receipt_logs({receipt_with({log_json(), log_json()})}, kContracts)) << "the same place twice";
  auto without = receipt_with({});
  for (const auto* json : {R"({"status":"0x1"})", R"({"logs":null})", R"({"logs":[],"logs":[]})", "null", "", "[]"}) {
    without.json = json;
    EXPECT_EQ(parse_receipt_logs({without}, kContracts).error().code, "bad_rpc_result") << json;
  }
}

}  // namespace
}  // namespace fencepost::evm

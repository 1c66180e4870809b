#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "evm/connector_test_support.hpp"
#include "evm/logs/log_refusal.hpp"

namespace fencepost::evm {
namespace {

using ::testing::ElementsAre;
using testing::hash;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::json;
using testing::Node;
using testing::Refusal;
using testing::text;

using EvmConnectorLogsTest = testing::ConnectorTest;

const std::string kTimelock = "0x" + std::string(40, 'a');
const std::string kOther = "0x" + std::string(40, 'b');

LogFilter only(std::vector<std::string> addresses) {
  return {.addresses = std::move(addresses), .topics = {}};
}

json log(std::int64_t block_number, std::int64_t index, const std::string& address = kTimelock) {
  return {{"address", address},
          {"topics", boost::json::array{hash(9, 'd')}},
          {"data", "0x1234"},
          {"blockHash", hash(block_number)},
          {"blockNumber", fmt::format("0x{:x}", block_number)},
          {"transactionHash", hash(index, 'c')},
          {"transactionIndex", "0x0"},
          {"logIndex", fmt::format("0x{:x}", index)},
          {"removed", false}};
}

json transaction(const std::string& tx_hash) {
  return {{"hash", tx_hash}, {"from", kOther}, {"nonce", "0x3"}, {"value", "0x0"}, {"input", "0x"}};
}

TEST_F(EvmConnectorLogsTest, logs_are_asked_for_by_block_hash_and_contract) {
  Node node([](const std::string& method, const boost::json::array& params) -> json {
    EXPECT_EQ(method, "eth_getLogs");
    const auto& filter = params.at(0).as_object();
    EXPECT_EQ(text(filter.at("blockHash")), hash(7));
    EXPECT_EQ(filter.at("address").as_array().at(0), json(boost::json::string(kTimelock)));
    EXPECT_EQ(filter.size(), 2U) << "a range beside a block hash is an error";
    return boost::json::array{log(7, 3), log(7, 1, kOther)};
  });
  connect({node.url()});
  const auto logs = run(chain_().logs_in_block(hash(7), only({kTimelock, kOther})));
  ASSERT_TRUE(logs) << logs.error().to_string();
  ASSERT_EQ(logs->size(), 2U);
  EXPECT_EQ(logs->at(0).log_index, 1);
  EXPECT_EQ(logs->at(0).address, kOther);
  EXPECT_EQ(logs->at(1).tx_hash, hash(3, 'c'));
  EXPECT_EQ(run(chain_().logs_in_block(hash(7), only({kTimelock}))).error().code, "bad_rpc_result")
      << "the answer has a log of a contract that was not asked for";
}

TEST_F(EvmConnectorLogsTest, logs_are_asked_for_by_their_first_topic_and_others_are_left_out) {
  Node node([](const std::string&, const boost::json::array& params) -> json {
    const auto& topics = params.at(0).at("topics").as_array();
    EXPECT_EQ(topics.size(), 1U) << "one place, with the topics that may be there";
    EXPECT_EQ(topics.at(0).as_array().size(), 2U);
    auto other = log(7, 2);
    other.as_object()["topics"] = boost::json::array{hash(8, 'd')};
    auto anonymous = log(7, 3);
    anonymous.as_object()["topics"] = boost::json::array{};
    return boost::json::array{log(7, 1), other, anonymous};
  });
  connect({node.url()});
  const LogFilter filter{.addresses = {kTimelock}, .topics = {hash(7, 'd'), hash(9, 'd')}};
  const auto in_block = run(chain_().logs_in_block(hash(7), filter));
  ASSERT_TRUE(in_block) << in_block.error().to_string();
  ASSERT_EQ(in_block->size(), 1U) << "an endpoint that ignores topics";
  EXPECT_EQ(in_block->front().log_index, 1);
  EXPECT_EQ(run(chain_().logs_in_range(7, 8, filter)).value().logs, *in_block);
}

TEST_F(EvmConnectorLogsTest, no_logs_are_believed_only_of_an_endpoint_that_has_the_block) {
  std::atomic<bool> has_block{true};
  Node node([&](const std::string& method, const boost::json::array& params) -> json {
    if (method == "eth_getLogs") return boost::json::array{};
    EXPECT_EQ(method, "eth_getBlockByHash");
    EXPECT_EQ(text(params.at(0)), hash(7));
    return has_block ? testing::block(7) : json(nullptr);
  });
  connect({node.url()});
  EXPECT_THAT(run(chain_().logs_in_block(hash(7), only({kTimelock}))).value(), IsEmpty());
  has_block = false;
  const auto logs = run(chain_().logs_in_block(hash(7), only({kTimelock})));
  ASSERT_FALSE(logs) << "a node that lags has no logs of the block, either";
  EXPECT_EQ(logs.error().code, "bad_rpc_result");
  EXPECT_THAT(logs.error().message, HasSubstr("does not have the block"));
}

TEST_F(EvmConnectorLogsTest, the_block_behind_no_logs_is_looked_up_at_the_endpoint_that_answered) {
  Node quota([](const std::string&, const boost::json::array&) -> json { throw Refusal{-32005, "daily limit"}; });
  Node lagging([](const std::string& method, const boost::json::array&) -> json {
    return method == "eth_getLogs" ? json(boost::json::array{}) : json(nullptr);
  });
  Node whole([](const std::string&, const boost::json::array&) -> json { return testing::block(7); });
  connect({quota.url(), lagging.url(), whole.url()});
  EXPECT_EQ(run(chain_().logs_in_block(hash(7), only({kTimelock}))).error().code, "bad_rpc_result");
  EXPECT_THAT(whole.take_requests(), IsEmpty());
}

TEST_F(EvmConnectorLogsTest, a_range_comes_sorted_and_with_its_endpoint) {
  Node first([](const std::string&, const boost::json::array&) -> json { throw Refusal{429, "slow down"}; });
  Node second([](const std::string&, const boost::json::array& params) -> json {
    const auto& filter = params.at(0).as_object();
    EXPECT_EQ(filter.at("fromBlock"), "0x5");
    EXPECT_EQ(filter.at("toBlock"), filter.at("address").as_array().size() == 1 ? "0x10" : "0xf");
    return boost::json::array{log(16, 0), log(5, 2), log(5, 1)};
  });
  connect({first.url(), second.url()});
  const auto found = run(chain_().logs_in_range(5, 16, only({kTimelock})));
  ASSERT_TRUE(found) << found.error().to_string();
  EXPECT_EQ(found->endpoint, 1U);
  std::vector<std::pair<std::int64_t, std::int64_t>> places;
  for (const auto& one : found->logs) places.emplace_back(one.block_number, one.log_index);
  EXPECT_THAT(places, ElementsAre(std::pair(5, 1), std::pair(5, 2), std::pair(16, 0)));
  EXPECT_EQ(run(chain_().logs_in_range(5, 15, only({kTimelock, kOther}), 1)).error().code, "bad_rpc_result");
}

TEST_F(EvmConnectorLogsTest, a_refused_range_is_the_answer_of_the_first_endpoint) {
  Node limited([](const std::string&, const boost::json::array&) -> json {
    throw Refusal{-32005, "query returned more than 10000 results. Try with this block range [0x5, 0x8]."};
  });
  Node other([](const std::string&, const boost::json::array&) -> json { return boost::json::array{}; });
  connect({limited.url(), other.url()});
  const auto refused = run(chain_().logs_in_range(5, 16, only({kTimelock})));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, "rpc_error");
  EXPECT_TRUE(is_range_too_large(refused.error()));
  EXPECT_EQ(suggested_span(refused.error()), 4);
  EXPECT_THAT(other.take_requests(), IsEmpty());
  EXPECT_EQ(chain_().endpoint_status(0).consecutive_failures, 0U) << "the endpoint is well";
}

TEST_F(EvmConnectorLogsTest, a_quota_is_no_answer_about_the_range) {
  Node limited([](const std::string&, const boost::json::array&) -> json {
    throw Refusal{-32005, "daily request count exceeded, request rate limited"};
  });
  connect({limited.url()});
  const auto refused = run(chain_().logs_in_range(5, 16, only({kTimelock})));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, "rpc_unavailable");
  EXPECT_FALSE(is_range_too_large(refused.error()));
  EXPECT_EQ(chain_().endpoint_status(0).consecutive_failures, 1U);
}

TEST_F(EvmConnectorLogsTest, a_limit_without_words_is_about_a_range_of_blocks_and_a_quota_at_one_block) {
  Node limited([](const std::string&, const boost::json::array&) -> json { throw Refusal{-32005, "limit exceeded"}; });
  connect({limited.url()});
  const auto range = run(chain_().logs_in_range(5, 6, only({kTimelock})));
  ASSERT_FALSE(range);
  EXPECT_TRUE(is_range_too_large(range.error()));
  EXPECT_EQ(chain_().endpoint_status(0).consecutive_failures, 0U) << "the endpoint is well";
  for (const auto& error : {run(chain_().logs_in_range(5, 5, only({kTimelock}))).error(),
                            run(chain_().logs_in_block(hash(5), only({kTimelock}))).error()}) {
    EXPECT_EQ(error.code, "rpc_unavailable");
    EXPECT_FALSE(is_range_too_large(error));
  }
  EXPECT_EQ(chain_().endpoint_status(0).consecutive_failures, 2U);
  EXPECT_EQ(run(chain_().gas_price()).error().code, "rpc_unavailable");
}

TEST_F(EvmConnectorLogsTest, logs_of_all_contracts_are_never_asked_for) {
  Node node([](const std::string&, const boost::json::array&) -> json { return boost::json::array{}; });
  connect({node.url()});
  EXPECT_THROW(EXPECT_FALSE(run(chain_().logs_in_range(1, 2, only({})))), Exception);
  EXPECT_THROW(EXPECT_FALSE(run(chain_().logs_in_block(hash(1), only({})))), Exception);
  EXPECT_THAT(node.take_requests(), IsEmpty());
}

TEST_F(EvmConnectorLogsTest, the_head_number_names_its_endpoint) {
  Node sick([](const std::string&, const boost::json::array&) -> json { throw Refusal{429, "slow down"}; });
  Node node([](const std::string& method, const boost::json::array&) -> json {
    EXPECT_EQ(method, "eth_blockNumber");
    return "0x1f4";
  });
  connect({sick.url(), node.url()});
  const auto head = run(chain_().head_number());
  ASSERT_TRUE(head) << head.error().to_string();
  EXPECT_EQ(head->number, 500);
  EXPECT_EQ(head->endpoint, 1U);
  EXPECT_EQ(run(chain_().head_number(0)).error().code, "rpc_unavailable");
}

TEST_F(EvmConnectorLogsTest, headers_and_transactions_come_in_batches_each_with_its_own_answer) {
  Node node([](const std::string& method, const boost::json::array& params) -> json {
    const auto asked = text(params.at(0));
    if (asked == hash(2)) return nullptr;
    if (asked == hash(3)) throw Refusal{-32000, "oops"};
    const auto given = asked == hash(4) ? hash(5) : asked;
    return method == "eth_getBlockByHash" ? testing::block(std::stoll(given.substr(3), nullptr, 16))
                                          : transaction(given);
  });
  connect({node.url()});
  const std::vector<std::string> asked{hash(1), hash(2), hash(3), hash(4)};
  const auto check = [](const auto& results) {
    ASSERT_EQ(results.size(), 4U);
    EXPECT_EQ(results[0]->value().hash, hash(1));
    EXPECT_FALSE(results[1]->has_value());
    EXPECT_EQ(results[2].error().code, "rpc_error");
    EXPECT_EQ(results[3].error().code, "bad_rpc_result");
  };
  check(run(chain_().headers_by_hash(asked)));
  check(run(chain_().transactions(asked)));
  EXPECT_EQ(node.take_requests().size(), 2U) << "one request for all headers, one for all transactions";
  EXPECT_THAT(run(chain_().headers_by_hash({})), IsEmpty());
  EXPECT_THAT(run(chain_().transactions({})), IsEmpty());
}

TEST_F(EvmConnectorLogsTest, code_and_calls_are_of_a_block) {
  Node node([](const std::string& method, const boost::json::array& params) -> json {
    if (method == "eth_getCode") return params.at(1) == "0x10" ? "0x" : "0x6001";
    EXPECT_EQ(method, "eth_call");
    EXPECT_FALSE(params.at(0).as_object().contains("from"));
    if (params.at(0).at("data") == "0xff") throw Refusal{3, "execution reverted: no", "0x"};
    return params.at(1) == "0x10" ? "0x01" : "0x02";
  });
  connect({node.url()});
  EXPECT_EQ(run(chain_().code(kTimelock)), (Bytes{0x60, 0x01}));
  EXPECT_EQ(run(chain_().code(kTimelock, 16, 0)), Bytes{});
  const CallRequest good{.to = kTimelock, .data = "0x12"};
  const CallRequest bad{.to = kTimelock, .data = "0xff"};
  EXPECT_EQ(run(chain_().call(good)), Bytes{2});
  EXPECT_EQ(run(chain_().call(good, 16)), Bytes{1});
  node.take_requests();
  const auto results = run(chain_().calls({good, bad, good}, 16));
  ASSERT_EQ(results.size(), 3U);
  EXPECT_EQ(results[0], Bytes{1});
  EXPECT_EQ(results[1].error().code, "would_revert");
  EXPECT_EQ(results[2], Bytes{1});
  EXPECT_THAT(node.take_requests(), ElementsAre("eth_call eth_call eth_call"));
}

TEST_F(EvmConnectorLogsTest, a_bloom_that_does_not_cover_all_logs_is_dropped) {
  Node node([](const std::string&, const boost::json::array&) -> json {
    auto with_bloom = testing::block(1);
    with_bloom.as_object()["logsBloom"] = "0x01" + std::string(510, '0');
    return with_bloom;
  });
  connect({node.url()});
  EXPECT_NE(run(chain_().block(BlockTag::kLatest))->header.logs_bloom, nullptr);
  EvmConnector polygon(*rpc_, 137);
  EXPECT_EQ(run(polygon.block(BlockTag::kLatest, std::nullopt))->header.logs_bloom, nullptr);
  EXPECT_EQ(run(polygon.headers_by_hash({hash(1)}, std::nullopt))[0]->value().logs_bloom, nullptr);
}

}  // namespace
}  // namespace fencepost::evm

// The fees that a node offers when the chain reports a base fee, a gas price, or nothing.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "tests/support/eventually.hpp"
#include "tests/support/rpc_rewriter.hpp"
#include "tests/support/tx_cluster.hpp"

namespace fencepost::test {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

// The fees of a transaction's newest attempt.
json::object offer(const TxCluster& cluster, const std::string& tx_id) {
  const auto fees =
      cluster.sql(fmt::format("SELECT fees FROM tx_attempt WHERE tx_id = '{}' ORDER BY attempt DESC LIMIT 1", tx_id));
  return json::parse(fees).as_object();
}

std::int64_t amount(const json::object& fees, const char* name) {
  return std::stoll(std::string(fees.at(name).as_string()));
}

std::int64_t quantity(const json::value& hex) {
  return std::stoll(std::string(hex.as_string()), nullptr, 16);
}

void mine_and_await(TxCluster& cluster, int blocks) {
  cluster.mine(blocks);
  const auto head = static_cast<double>(cluster.head());
  ASSERT_TRUE(eventually([&] { return cluster.node(0).metric("chain_head_block") == head; })) << cluster.describe();
}

TEST(tx_fees, market_fees_are_four_base_fees_and_the_usual_tip) {
  TxCluster cluster({.anvil = {"--no-mining"}});
  mine_and_await(cluster, 1);
  const auto history = cluster.rpc("eth_feeHistory", {"0xa", "latest", json::array{50}});
  const auto next_base_fee = quantity(history.at("baseFeePerGas").as_array().back());
  ASSERT_GT(next_base_fee, 0);
  const auto id = cluster.create(0, transfer(signer(0), "market", 1));
  ASSERT_TRUE(cluster.becomes(id, "state", "TRACKING")) << cluster.describe();
  const auto fees = offer(cluster, id);
  const auto tip = amount(fees, "maxPriorityFeePerGas");
  EXPECT_GE(tip, 1);
  EXPECT_EQ(amount(fees, "maxFeePerGas"), 4 * next_base_fee + tip);
  const auto sent = cluster.rpc("eth_getTransactionByHash", {cluster.column(id, "tx_hash")});
  EXPECT_EQ(sent.at("type").as_string(), "0x2");
  EXPECT_EQ(quantity(sent.at("maxFeePerGas")), amount(fees, "maxFeePerGas"));
}

TEST(tx_fees, market_fees_are_queried_once_per_block) {
  TxCluster cluster({.anvil = {"--no-mining"}});
  const auto asked = [&] {
    return cluster.node(0).metric("rpc_requests_total{method=\"eth_feeHistory\",result=\"ok\"}");
  };
  const auto send = [&](const std::string& request) {
    const auto id = cluster.create(0, transfer(signer(0), request, 1));
    return cluster.becomes(id, "state", "TRACKING");
  };
  mine_and_await(cluster, 1);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(send(fmt::format("first-{}", i))) << cluster.describe();
  EXPECT_EQ(asked(), 1);
  mine_and_await(cluster, 1);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(send(fmt::format("second-{}", i))) << cluster.describe();
  EXPECT_EQ(asked(), 2);
}

TEST(tx_fees, fees_given_by_the_caller_need_no_query) {
  Anvil anvil({"--block-time", "1"});
  RpcRewriter chain(anvil.url());
  chain.answer_error("eth_feeHistory", -32603, "internal error");
  TxCluster cluster({.rpc_urls = {chain.url()}});
  auto body = transfer(signer(0), "own", 1);
  body["payload"].as_object()["maxFeePerGas"] = "9000000000";
  body["payload"].as_object()["maxPriorityFeePerGas"] = "2000000000";
  const auto id = cluster.create(0, body);
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  EXPECT_EQ(amount(offer(cluster, id), "maxFeePerGas"), 9'000'000'000);
  EXPECT_EQ(chain.changed("eth_feeHistory"), 0U) << "the node queried the chain's fees";
}

TEST(tx_fees, a_transaction_waits_while_the_chains_fees_are_unknown) {
  Anvil anvil({"--block-time", "1"});
  RpcRewriter chain(anvil.url());
  chain.answer_error("eth_feeHistory", -32603, "internal error");
  TxCluster cluster({.rpc_urls = {chain.url()}});
  const auto id = cluster.create(0, transfer(signer(0), "waits", 1));
  ASSERT_TRUE(cluster.becomes(id, "state || ' ' || coalesce(sub_state, '')", "ALLOCATED fees_unknown"))
      << cluster.describe();
  EXPECT_EQ(cluster.sql("SELECT count(*) FROM tx_attempt"), "0") << "the node signed without knowing the fees";
  chain.pass_all();
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  EXPECT_EQ(cluster.column(id, "coalesce(sub_state, '') || coalesce(error_message, '')"), "");
}

TEST(tx_fees, a_chain_without_a_base_fee_gets_its_gas_price) {
  TxCluster cluster({.anvil = {"--no-mining", "--hardfork", "berlin"}});
  mine_and_await(cluster, 1);
  ASSERT_FALSE(cluster.rpc("eth_getBlockByNumber", {"latest", false}).as_object().contains("baseFeePerGas"));
  const auto price = quantity(cluster.rpc("eth_gasPrice"));
  const auto id = cluster.create(0, transfer(signer(0), "legacy", 1));
  ASSERT_TRUE(cluster.becomes(id, "state", "TRACKING")) << cluster.describe();
  EXPECT_EQ(offer(cluster, id), (json::object{{"gasPrice", std::to_string(price)}}));
  const auto sent = cluster.rpc("eth_getTransactionByHash", {cluster.column(id, "tx_hash")});
  EXPECT_EQ(sent.at("type").as_string(), "0x0");
  EXPECT_EQ(quantity(sent.at("gasPrice")), price);
  cluster.mine(3);
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  EXPECT_EQ(cluster.balance(recipient()), 1);
  EXPECT_EQ(cluster.node(0).metric("rpc_requests_total{method=\"eth_feeHistory\"}"), 0);
}

TEST(tx_fees, dynamic_fees_are_stuck_on_a_chain_without_a_base_fee) {
  TxCluster cluster({.anvil = {"--block-time", "1", "--hardfork", "berlin"}});
  auto body = transfer(signer(0), "dynamic", 1);
  body["payload"].as_object()["maxFeePerGas"] = "9000000000";
  const auto id = cluster.create(0, body);
  ASSERT_TRUE(cluster.becomes(id, "state || ' ' || coalesce(sub_state, '')", "STUCK no_dynamic_fees"))
      << cluster.describe();
  EXPECT_EQ(cluster.mined_count(signer(0)), 0);
}

}  // namespace
}  // namespace fencepost::test

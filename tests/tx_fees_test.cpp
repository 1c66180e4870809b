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

// Nothing was ever broadcast: the time counts from the nonce.
TEST(tx_fees, a_transaction_whose_fees_stay_unknown_is_stuck_until_they_are_known) {
  TxCluster cluster({.settings = {.stuck_after = 1s}, .rewritten = true});
  auto& endpoint = cluster.chain_rewriter(0);
  for (const auto* method : {"eth_feeHistory", "eth_gasPrice"}) endpoint.answer_error(method, -32603, "internal error");
  const auto id = cluster.create(0, transfer(signer(0), "waits", 1));
  const auto behind = cluster.create(0, transfer(signer(0), "behind", 1));
  ASSERT_TRUE(cluster.becomes(id, "state || ' ' || sub_state", "STUCK fees_unknown")) << cluster.describe();
  EXPECT_EQ(cluster.sql("SELECT count(*) FROM tx_attempt"), "0");
  EXPECT_EQ(cluster.sql("SELECT data ->> 'reason' FROM event WHERE type = 'TxStuck'"), "fees_unknown");
  const auto page = cluster.get(0, "/api/v1/tx?state=STUCK").json().at("items").as_array();
  ASSERT_EQ(page.size(), 1U);
  EXPECT_EQ(page[0].at("txId").as_string(), id);
  const auto waiting = cluster.get(0, "/api/v1/tx").json().at("items").as_array();
  EXPECT_EQ(waiting[0].at("txId").as_string(), behind);
  EXPECT_EQ(waiting[0].at("blockedBy").as_string(), id);
  EXPECT_EQ(cluster.get(0, "/api/v1/tx/" + behind).json().at("blockedBy").as_string(), id);

  endpoint.pass_all();
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  EXPECT_EQ(cluster.sql("SELECT data ->> 'state' FROM event WHERE type = 'TxResumed'"), "ALLOCATED");
  EXPECT_EQ(cluster.mined_count(signer(0)), 2);
  EXPECT_TRUE(cluster.get(0, "/api/v1/tx").json().at("items").at(0).at("blockedBy").is_null());
}

TEST(tx_fees, a_transaction_that_a_dying_node_took_out_of_stuck_is_sent_by_the_next_one) {
  TxCluster cluster({.nodes = 2, .settings = {.stuck_after = 1s}, .rewritten = true, .start = false});
  for (std::size_t i = 0; i < 2; ++i)
    cluster.chain_rewriter(i).answer_error("eth_feeHistory", -32603, "internal error");
  cluster.node(0).start({"FENCEPOST_TEST_KILL_AT=heads.resumed"});
  const auto id = cluster.create(0, transfer(signer(0), "waits", 1));
  cluster.node(1).start();
  ASSERT_TRUE(cluster.becomes(id, "state || ' ' || sub_state", "STUCK fees_unknown")) << cluster.describe();
  for (std::size_t i = 0; i < 2; ++i) cluster.chain_rewriter(i).pass_all();
  ASSERT_TRUE(cluster.node(0).dies()) << cluster.describe();
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  EXPECT_EQ(cluster.sql("SELECT count(*) FROM event WHERE type = 'TxResumed'"), "1");
  EXPECT_EQ(cluster.mined_count(signer(0)), 1);
}

TEST(tx_fees, a_transaction_that_is_stuck_because_of_its_price_is_sent_when_the_price_falls) {
  TxCluster cluster({.settings = {.stuck_after = 1s}, .anvil = {"--block-time", "1", "--base-fee", "1000000000"}});
  auto body = transfer(signer(0), "cheap", 1);
  body["payload"].as_object()["maxFeePerGas"] = "100000000";
  body["payload"].as_object()["maxPriorityFeePerGas"] = "1";
  const auto id = cluster.create(0, body);
  ASSERT_TRUE(cluster.becomes(id, "state || ' ' || sub_state", "STUCK fee_too_low")) << cluster.describe();
  cluster.rpc("anvil_setNextBlockBaseFeePerGas", {"0x989680"});  // a tenth of the cap
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  EXPECT_EQ(cluster.mined_count(signer(0)), 1);
}

TEST(tx_fees, a_transaction_above_the_ceiling_is_never_stuck) {
  TxCluster cluster({.settings = {.stuck_after = 1s, .fees = "{max_fee_per_gas: 1}"}});
  const auto id = cluster.create(0, transfer(signer(0), "dear", 1));
  ASSERT_TRUE(cluster.becomes(id, "sub_state", "fee_above_ceiling")) << cluster.describe();
  const auto until = cluster.sql("SELECT clock_timestamp() + interval '5 s'");
  ASSERT_TRUE(cluster.sql_becomes("SELECT clock_timestamp() > '" + until + "'", "t"));
  EXPECT_EQ(cluster.column(id, "state"), "ALLOCATED") << cluster.describe();
}

// The node that gave the nonce had the key; the one that has to sign does not.
TEST(tx_fees, a_transaction_whose_signers_key_is_missing_is_stuck_until_the_key_is_there) {
  TxCluster cluster({.settings = {.stuck_after = 1s}, .start = false});
  cluster.node(0).start({"FENCEPOST_TEST_KILL_AT=create.committed"});
  ask(cluster.create_ask(0, transfer(signer(0), "keyless", 1)));
  ASSERT_TRUE(cluster.node(0).dies()) << cluster.describe();
  cluster.node(0).start({"FENCEPOST_KEYSTORE_DEV_KEYS=" + signer_key(1)});
  // By hand, since a node without the key need not take the lease by itself.
  cluster.sql(
      "UPDATE signer_lease SET fencing_token = fencing_token + 1, expires_at = clock_timestamp() + interval '1 h', "
      "owner_node = (SELECT node_id FROM cluster_node ORDER BY started_at DESC LIMIT 1) RETURNING 1");
  ASSERT_TRUE(cluster.sql_becomes("SELECT state || ' ' || sub_state FROM tx_open", "STUCK signer_unavailable"))
      << cluster.describe();
  cluster.node(0).kill();
  cluster.sql("UPDATE signer_lease SET expires_at = '-infinity' RETURNING 1");
  cluster.node(0).start();
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  EXPECT_EQ(cluster.sql("SELECT count(*) FROM event WHERE type = 'TxResumed'"), "1");
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

TEST(tx_fees, dynamic_fees_are_refused_on_a_chain_without_a_base_fee) {
  TxCluster cluster({.anvil = {"--no-mining", "--hardfork", "berlin"}});
  mine_and_await(cluster, 1);
  auto body = transfer(signer(0), "dynamic", 1);
  body["payload"].as_object()["maxFeePerGas"] = "9000000000";
  const auto refused = cluster.post(0, "/api/v1/tx", body);
  EXPECT_EQ(refused.status, 422U) << refused.body;
  EXPECT_EQ(refused.code(), "no_dynamic_fees");
  EXPECT_EQ(cluster.sql("SELECT count(*) FROM managed_tx"), "0");
}

// What the node waits for, and the number of attempts.
constexpr auto kWaits = "state || ' ' || coalesce(sub_state, '')";

TEST(tx_fees, a_transaction_waits_while_the_price_is_above_the_chains_ceiling) {
  TxCluster cluster({.settings = {.fees = "{max_fee_per_gas: 3gwei}"},
                     .anvil = {"--block-time", "1", "--hardfork", "berlin", "--gas-price", "2000000000"},
                     .rewritten = true});
  auto& endpoint = cluster.chain_rewriter(0);
  endpoint.change("eth_gasPrice", [](const json::object&, json::object reply) {
    reply["result"] = "0x1bc16d674ec80000";  // 2 ether per gas
    return reply;
  });
  const auto id = cluster.create(0, transfer(signer(0), "dear", 1));
  ASSERT_TRUE(cluster.becomes(id, kWaits, "ALLOCATED fee_above_ceiling")) << cluster.describe();
  EXPECT_EQ(cluster.sql("SELECT count(*) FROM tx_attempt"), "0") << "the node signed above the ceiling";
  ASSERT_TRUE(eventually([&] { return cluster.node(0).metric("tx_above_ceiling") == 1; })) << cluster.describe();
  EXPECT_NE(cluster.node(0).output().find("the ceiling is 3000000000"), std::string::npos);
  endpoint.pass_all();
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  EXPECT_EQ(offer(cluster, id), (json::object{{"gasPrice", "2000000000"}}));
  EXPECT_EQ(cluster.sql("SELECT count(*) FROM history WHERE sub_state = 'fee_above_ceiling'"), "1");
}

TEST(tx_fees, the_tightest_of_the_ceilings_holds) {
  TxCluster cluster(
      {.settings = {.fees = "{max_fee_per_gas: 100gwei, max_total_fee: 2100000gwei}",
                    .more = fmt::format("signers: [{{address: '{}', max_fee_per_gas: 5gwei}}]\n", signer(1))},
       .anvil = {"--no-mining", "--base-fee", "3000000000"}});
  mine_and_await(cluster, 1);
  const auto send = [&](std::size_t from, const std::string& request, const char* ceiling, const char* value) {
    auto body = transfer(signer(from), request, 1);
    if (ceiling != nullptr) body["payload"].as_object()[ceiling] = value;
    return cluster.create(0, body);
  };
  const auto sent = [&](const std::string& id) {
    return cluster.becomes(id, "state", "TRACKING") ? amount(offer(cluster, id), "maxFeePerGas") : -1;
  };
  EXPECT_GT(sent(send(0, "chain", nullptr, nullptr)), 5'000'000'000);
  EXPECT_EQ(sent(send(1, "signer", nullptr, nullptr)), 5'000'000'000);
  EXPECT_EQ(sent(send(0, "request", "feeCeilingPerGas", "4000000000")), 4'000'000'000);
  EXPECT_EQ(sent(send(0, "total", "feeCeilingTotal", "94500000000000")), 4'500'000'000);
  const auto waits = send(2, "waits", "feeCeilingPerGas", "1000000");
  EXPECT_TRUE(cluster.becomes(waits, kWaits, "ALLOCATED fee_above_ceiling")) << cluster.describe();
}

TEST(tx_fees, fees_of_the_caller_above_a_ceiling_are_refused) {
  TxCluster cluster({.settings = {.fees = "{max_fee_per_gas: 100gwei, max_total_fee: 2100000gwei}"}});
  const auto refused = [&](const char* request, json::object fees) {
    auto body = transfer(signer(0), request, 1);
    for (const auto& [name, value] : fees) body["payload"].as_object()[name] = value;
    const auto answer = cluster.post(0, "/api/v1/tx", body);
    return fmt::format("{} {}", answer.status, answer.status == 202 ? "" : answer.code());
  };
  const std::string kRefused = "422 fee_above_ceiling";
  EXPECT_EQ(refused("cap", {{"maxFeePerGas", "100000000001"}}), kRefused);
  EXPECT_EQ(refused("price", {{"gasPrice", "100000000001"}}), kRefused);
  EXPECT_EQ(refused("total", {{"gas", 210000}, {"gasPrice", "10000000001"}}), kRefused);
  EXPECT_EQ(refused("own", {{"gasPrice", "2000000000"}, {"feeCeilingPerGas", "1999999999"}}), kRefused);
  EXPECT_EQ(cluster.sql("SELECT count(*) FROM managed_tx"), "0");
  EXPECT_EQ(refused("fits", {{"maxFeePerGas", "100000000000"}}), "202 ");
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
}

TEST(tx_fees, an_endpoint_without_base_fees_does_not_make_the_node_pay_its_gas_price) {
  TxCluster cluster({.anvil = {"--no-mining"}, .rewritten = true});
  mine_and_await(cluster, 1);
  auto& endpoint = cluster.chain_rewriter(0);
  for (const auto* method : {"eth_getBlockByNumber", "eth_getBlockByHash"}) {
    endpoint.change(method, [](const json::object&, json::object reply) {
      if (auto* block = reply["result"].if_object()) block->erase("baseFeePerGas");
      return reply;
    });
  }
  endpoint.change("eth_gasPrice", [](const json::object&, json::object reply) {
    reply["result"] = "0x1bc16d674ec80000";
    return reply;
  });
  mine_and_await(cluster, 1);
  const auto id = cluster.create(0, transfer(signer(0), "robbed", 1));
  ASSERT_TRUE(cluster.becomes(id, "state", "TRACKING")) << cluster.describe();
  EXPECT_TRUE(offer(cluster, id).contains("maxFeePerGas")) << "the node switched to the endpoint's gas price";
  EXPECT_GE(cluster.node(0).metric("tx_fee_kind_contradictions_total"), 1);
  EXPECT_NE(cluster.node(0).output().find("a block has no base fee"), std::string::npos);

  // Also a node that begins with such a block: the stored headers have base fees.
  cluster.node(0).stop();
  cluster.node(0).start();
  const auto next = cluster.create(0, transfer(signer(1), "robbed-again", 1));
  ASSERT_TRUE(cluster.becomes(next, "state", "TRACKING")) << cluster.describe();
  EXPECT_TRUE(offer(cluster, next).contains("maxFeePerGas")) << "a restart forgot the kind of the chain";
}

}  // namespace
}  // namespace fencepost::test

// What a chain can do to a broadcast transaction: reorgs, evictions, fee rises, forks. Each test mines its blocks
// itself, so that it decides what the nodes see and when.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "tests/support/eventually.hpp"
#include "tests/support/tx_cluster.hpp"

namespace fencepost::test {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

constexpr auto kMined = "coalesce(sub_state, '') = 'mined'";

std::string hash_of_block(const TxCluster& cluster, std::int64_t number) {
  const auto block = cluster.rpc("eth_getBlockByNumber", {fmt::format("0x{:x}", number), false});
  return std::string(block.at("hash").as_string());
}

// Expects that every confirming block stored with the transaction is on the chain, from the receipt's block on.
void expect_canonical(const TxCluster& cluster, const std::string& tx_id, std::size_t blocks) {
  const auto list = json::parse(cluster.column(tx_id, "confirmations")).as_array();
  ASSERT_EQ(list.size(), blocks);
  EXPECT_EQ(list.front().at("blockHash").as_string(), cluster.column(tx_id, "receipt_hash"));
  for (const auto& block : list) {
    EXPECT_EQ(block.at("blockHash").as_string(), hash_of_block(cluster, block.at("blockNumber").as_int64()));
  }
}

// The events of one type, oldest first, as "newFork:blocks".
std::string announced(const TxCluster& cluster, const std::string& tx_id, const std::string& type) {
  return cluster.sql(
      fmt::format("SELECT string_agg(format('%s:%s', data ->> 'newFork', jsonb_array_length(data -> 'confirmations')), "
                  "' ' ORDER BY "
                  "seq) FROM outbox WHERE subject = 'tx/{}' AND type = '{}'",
                  tx_id, type));
}

TEST(tx_chain, a_reorg_of_the_receipts_block_withdraws_the_receipt_and_the_transaction_is_mined_again) {
  TxCluster cluster({.settings = {.confirmations = "6"}, .anvil = {"--no-mining"}});
  const auto id = cluster.create(0, transfer(signer(0), "r", 1));
  const auto behind = cluster.create(0, transfer(signer(0), "behind", 1));
  ASSERT_TRUE(cluster.becomes(behind, "state", "TRACKING")) << cluster.describe();
  const auto hash = cluster.column(id, "tx_hash");
  cluster.mine(4);  // the receipt's block, and three on top
  ASSERT_TRUE(cluster.becomes(behind, kMined, "t")) << cluster.describe();
  const auto dead = cluster.column(id, "receipt_hash");

  cluster.reorg(4);
  ASSERT_EQ(cluster.mined_count(signer(0)), 0) << "anvil's reorg did not undo the transaction";
  ASSERT_TRUE(cluster.becomes(id, "coalesce(sub_state, '')", "reorged")) << cluster.describe();
  EXPECT_EQ(announced(cluster, id, "TxConfirmations"), "true:0");
  // The node sends both again in order, without an operator.
  for (const auto& tx : {id, behind}) {
    EXPECT_TRUE(eventually([&] {
      return !cluster.rpc("eth_getTransactionByHash", {cluster.column(tx, "tx_hash")}).is_null();
    })) << cluster.describe();
  }
  cluster.mine(1);
  ASSERT_TRUE(cluster.becomes(behind, kMined, "t")) << cluster.describe();
  EXPECT_EQ(cluster.column(id, "state"), "TRACKING");
  EXPECT_EQ(announced(cluster, id, "TxConfirmations"), "true:0 true:1");
  cluster.mine(6);
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  EXPECT_EQ(cluster.column(id, "tx_hash"), hash);
  EXPECT_NE(cluster.column(id, "receipt_hash"), dead);
  expect_canonical(cluster, id, 7);
  expect_canonical(cluster, behind, 7);
  EXPECT_EQ(announced(cluster, id, "TxConfirmed"), "false:7");
  EXPECT_EQ(cluster.mined_count(signer(0)), 2);
  EXPECT_EQ(cluster.sql("SELECT count(*) FROM tx_attempt"), "2");
}

TEST(tx_chain, a_reorg_above_the_receipts_block_is_announced_and_the_receipt_stays) {
  TxCluster cluster({.settings = {.confirmations = "6", .progress = true}, .anvil = {"--no-mining"}});
  const auto id = cluster.create(0, transfer(signer(0), "r", 1));
  ASSERT_TRUE(cluster.becomes(id, "state", "TRACKING")) << cluster.describe();
  cluster.mine(1);
  ASSERT_TRUE(cluster.becomes(id, kMined, "t")) << cluster.describe();
  const auto block = cluster.column(id, "receipt_hash");
  cluster.mine(3);
  ASSERT_TRUE(cluster.becomes(id, "announced_block - receipt_block", "3")) << cluster.describe();

  cluster.reorg(2);
  cluster.mine(1);
  ASSERT_TRUE(cluster.becomes(id, "announced_block - receipt_block", "4")) << cluster.describe();
  const auto list = announced(cluster, id, "TxConfirmations");
  EXPECT_NE(list.find("true:"), std::string::npos) << list;
  EXPECT_EQ(cluster.column(id, "receipt_hash"), block);
  EXPECT_EQ(cluster.column(id, "state"), "TRACKING");
  cluster.mine(3);
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  expect_canonical(cluster, id, 7);
  EXPECT_EQ(
      cluster.sql(fmt::format("SELECT count(*) FROM history WHERE subject = 'tx/{}' AND sub_state = 'reorged'", id)),
      "0");
}

TEST(tx_chain, an_announced_list_of_confirmations_is_replaced_after_a_reorg_even_without_progress_events) {
  TxCluster cluster({.settings = {.confirmations = "9"}, .anvil = {"--no-mining"}});
  const auto id = cluster.create(0, transfer(signer(0), "r", 1));
  ASSERT_TRUE(cluster.becomes(id, "state", "TRACKING")) << cluster.describe();
  cluster.mine(2);
  ASSERT_TRUE(cluster.becomes(id, kMined, "t")) << cluster.describe();
  cluster.reorg(2);
  ASSERT_TRUE(cluster.becomes(id, "coalesce(sub_state, '')", "reorged")) << cluster.describe();
  ASSERT_TRUE(eventually([&] {
    return !cluster.rpc("eth_getTransactionByHash", {cluster.column(id, "tx_hash")}).is_null();
  })) << cluster.describe();
  // The list is announced with the receipt's block and one more; the reorg then removes the latter.
  cluster.node(0).signal(SIGSTOP);
  cluster.mine(2);
  cluster.node(0).resume();
  ASSERT_TRUE(cluster.becomes(id, "announced_block - receipt_block", "1")) << cluster.describe();
  const auto announced_hash = cluster.column(id, "announced_hash");
  cluster.reorg(1);
  ASSERT_TRUE(cluster.becomes(id, fmt::format("announced_hash <> '{}'", announced_hash), "t")) << cluster.describe();
  EXPECT_EQ(announced(cluster, id, "TxConfirmations"), "true:0 true:2 true:2");
  EXPECT_EQ(cluster.column(id, "coalesce(sub_state, '')"), "mined");
}

TEST(tx_chain, a_reorg_while_no_node_runs_is_noticed_at_the_next_start) {
  TxCluster cluster({.settings = {.confirmations = "20"}, .anvil = {"--no-mining"}});
  const auto id = cluster.create(0, transfer(signer(0), "r", 1));
  ASSERT_TRUE(cluster.becomes(id, "state", "TRACKING")) << cluster.describe();
  cluster.mine(2);
  ASSERT_TRUE(cluster.becomes(id, kMined, "t")) << cluster.describe();
  cluster.node(0).kill();
  cluster.reorg(2);
  cluster.node(0).start();
  ASSERT_TRUE(cluster.becomes(id, "coalesce(sub_state, '')", "reorged")) << cluster.describe();
  EXPECT_EQ(announced(cluster, id, "TxConfirmations"), "true:0");
  ASSERT_TRUE(eventually([&] {
    return !cluster.rpc("eth_getTransactionByHash", {cluster.column(id, "tx_hash")}).is_null();
  })) << cluster.describe();
  cluster.mine(21);
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
}

TEST(tx_chain, a_reorg_that_undoes_a_final_transaction_is_reported_and_nothing_is_sent_again) {
  TxCluster cluster({.anvil = {"--no-mining"}});
  const auto id = cluster.create(0, transfer(signer(0), "v", 1));
  ASSERT_TRUE(cluster.becomes(id, "state", "TRACKING")) << cluster.describe();
  cluster.mine(3);
  ASSERT_TRUE(cluster.becomes(id, "state", "CONFIRMED")) << cluster.describe();
  cluster.reorg(3);
  cluster.mine(3);
  EXPECT_TRUE(eventually([&] { return cluster.node(0).metric("tx_finality_violated_total") == 1; }))
      << cluster.describe();
  EXPECT_EQ(cluster.sql("SELECT count(*) FROM outbox WHERE type = 'TxFinalityViolated'"), "1");
  EXPECT_EQ(cluster.column(id, "state"), "CONFIRMED");
  EXPECT_EQ(cluster.mined_count(signer(0)), 0) << "the node sent it again without an operator's decision";
}

TEST(tx_chain, the_chains_finalized_block_decides_finality_when_configured) {
  // With one slot per epoch, anvil reports a block as finalized once two blocks are on top of it.
  TxCluster cluster({.settings = {.confirmations = "finalized"}, .anvil = {"--no-mining", "--slots-in-an-epoch", "1"}});
  const auto id = cluster.create(0, transfer(signer(0), "t", 1));
  ASSERT_TRUE(cluster.becomes(id, "state", "TRACKING")) << cluster.describe();
  cluster.mine(1);
  ASSERT_TRUE(cluster.becomes(id, kMined, "t")) << cluster.describe();
  const auto finalized = [&] { return cluster.rpc("eth_getBlockByNumber", {"finalized", false}).at("number"); };
  while (finalized().as_string() == "0x0") {
    EXPECT_EQ(cluster.column(id, "state"), "TRACKING");
    cluster.mine(1);
  }
  ASSERT_TRUE(cluster.becomes(id, "state", "CONFIRMED")) << cluster.describe();
}

TEST(tx_chain, a_transaction_waits_until_its_signer_is_funded) {
  TxCluster cluster({.anvil = {"--block-time", "1"}});
  cluster.rpc("anvil_setBalance", {signer(0), "0x1"});  // covers the value, and not the fees
  const auto id = cluster.create(0, transfer(signer(0), "poor", 1));
  ASSERT_TRUE(cluster.becomes(id, "coalesce(sub_state, '')", "insufficient_funds")) << cluster.describe();
  EXPECT_EQ(cluster.column(id, "state"), "ALLOCATED");
  cluster.rpc("anvil_setBalance", {signer(0), "0xde0b6b3a7640000"});
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  EXPECT_EQ(cluster.column(id, "coalesce(sub_state, '') || coalesce(error_message, '')"), "");
  EXPECT_EQ(cluster.balance(recipient()), 1);
}

TEST(tx_chain, a_transaction_that_the_pool_dropped_is_sent_again_with_the_same_bytes) {
  TxCluster cluster({.settings = {.resubmit_interval = 500ms}, .anvil = {"--no-mining"}});
  const auto id = cluster.create(0, transfer(signer(0), "d", 1));
  ASSERT_TRUE(cluster.becomes(id, "state", "TRACKING")) << cluster.describe();
  const auto hash = cluster.column(id, "tx_hash");
  cluster.rpc("anvil_dropTransaction", {hash});
  ASSERT_TRUE(eventually([&] { return !cluster.rpc("eth_getTransactionByHash", {hash}).is_null(); }))
      << cluster.describe();
  cluster.mine(3);
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  EXPECT_EQ(cluster.column(id, "tx_hash"), hash);
  EXPECT_EQ(cluster.sql("SELECT count(*) FROM tx_attempt"), "1");
  EXPECT_GE(cluster.node(0).metric("tx_resubmit_total"), 1);
}

TEST(tx_chain, the_answer_to_a_later_broadcast_is_the_attempts_message_until_one_is_accepted) {
  TxCluster cluster({.settings = {.resubmit_interval = 500ms}, .anvil = {"--no-mining"}, .rewritten = true});
  const auto id = cluster.create(0, transfer(signer(0), "d", 1));
  ASSERT_TRUE(cluster.becomes(id, "state", "TRACKING")) << cluster.describe();
  cluster.chain_rewriter(0).answer_error("eth_sendRawTransaction", -32603, "the pool is full of cats");
  const std::string kAttempt = "SELECT outcome || ': ' || coalesce(message, '') FROM tx_attempt";
  EXPECT_TRUE(cluster.sql_becomes(kAttempt, "unknown: the pool is full of cats")) << cluster.describe();
  EXPECT_EQ(cluster.column(id, "error_message"), "the pool is full of cats");
  cluster.chain_rewriter(0).pass_all();
  EXPECT_TRUE(cluster.sql_becomes(kAttempt, "accepted: ")) << cluster.describe();
}

TEST(tx_chain, with_resubmission_disabled_only_an_operator_sends_again) {
  TxCluster cluster({.settings = {.resubmit_interval = 500ms, .resubmit = false}, .anvil = {"--no-mining"}});
  const auto id = cluster.create(0, transfer(signer(0), "d", 1));
  ASSERT_TRUE(cluster.becomes(id, "state || ' ' || coalesce(next_resubmit_at::text, 'never')", "TRACKING never"))
      << cluster.describe();
  const auto hash = cluster.column(id, "tx_hash");
  cluster.rpc("anvil_dropTransaction", {hash});
  const auto sent = cluster.post(0, "/api/v1/tx/" + id + "/rebroadcast", {{"reason", "it was dropped"}});
  ASSERT_EQ(sent.status, 200U) << sent.body;
  ASSERT_TRUE(eventually([&] { return !cluster.rpc("eth_getTransactionByHash", {hash}).is_null(); }))
      << cluster.describe();
  // The chain has the transaction before the node stores the result of the broadcast.
  EXPECT_TRUE(cluster.becomes(id, "coalesce(next_resubmit_at::text, 'never')", "never")) << cluster.describe();
  EXPECT_TRUE(eventually([&] { return cluster.node(0).metric("tx_resubmit_total") == 1; }));
  cluster.mine(3);
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
}

constexpr auto kDear = "0x174876e800";  // 100 gwei, over four times anvil's initial base fee
constexpr auto kCheap = "0x3b9aca00";

TEST(tx_chain, a_fixed_fee_is_offered_regardless_of_the_chains_fees) {
  TxCluster cluster({.settings = {.fees = "{policy: fixed, fixed: {gas_price: 7000000000}}"}});
  const auto id = cluster.create(0, transfer(signer(0), "fixed", 1));
  auto own = transfer(signer(0), "own", 1);
  own["payload"].as_object()["gasPrice"] = "8000000000";
  const auto other = cluster.create(0, own);
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  const auto offered = [&](const std::string& tx_id) {
    return cluster.sql("SELECT fees ->> 'gasPrice' FROM tx_attempt WHERE tx_id = '" + tx_id + "'");
  };
  EXPECT_EQ(offered(id), "7000000000");
  EXPECT_EQ(offered(other), "8000000000") << "the caller's fee takes precedence";
}

TEST(tx_chain, a_fee_rise_before_the_first_broadcast_makes_the_node_sign_again) {
  TxCluster cluster(
      {.settings = {.lease_duration = 60s, .renew_interval = 1s}, .anvil = {"--no-mining"}, .start = false});
  cluster.node(0).start({"FENCEPOST_TEST_STOP_AT=submitter.claimed"});
  const auto answer = ask(cluster.create_ask(0, transfer(signer(0), "f", 1)));  // no answer if the node stops first
  ASSERT_TRUE(answer.status == 202 || answer.status == 0) << answer.body;
  ASSERT_TRUE(cluster.sql_becomes("SELECT count(*) FROM tx_attempt", "1")) << cluster.describe();
  const auto hash = cluster.sql("SELECT tx_hash FROM tx_attempt");
  cluster.rpc("anvil_setNextBlockBaseFeePerGas", {kDear});
  cluster.mine(1);
  cluster.rpc("anvil_setNextBlockBaseFeePerGas", {kDear});
  cluster.node(0).resume();
  ASSERT_TRUE(cluster.sql_becomes("SELECT state FROM tx_view", "TRACKING")) << cluster.describe();
  cluster.mine(3);
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  EXPECT_NE(cluster.sql("SELECT tx_hash FROM tx_view"), hash);
  EXPECT_EQ(cluster.sql("SELECT string_agg(outcome, ' ' ORDER BY attempt) FROM tx_attempt"), "refused accepted");
  EXPECT_EQ(cluster.sql("SELECT nonce FROM tx_view"), "0");
  EXPECT_EQ(cluster.mined_count(signer(0)), 1);
}

TEST(tx_chain, a_fee_rise_after_the_first_broadcast_makes_the_transaction_wait) {
  TxCluster cluster({.settings = {.resubmit_interval = 500ms}, .anvil = {"--no-mining"}});
  const auto id = cluster.create(0, transfer(signer(0), "f", 1));
  ASSERT_TRUE(cluster.becomes(id, "state", "TRACKING")) << cluster.describe();
  const auto hash = cluster.column(id, "tx_hash");
  const auto sent = cluster.node(0).metric("tx_resubmit_total");
  for (int i = 0; i < 4; ++i) {
    cluster.rpc("anvil_setNextBlockBaseFeePerGas", {kDear});
    cluster.mine(1);
  }
  cluster.rpc("anvil_setNextBlockBaseFeePerGas", {kDear});
  ASSERT_TRUE(eventually([&] { return cluster.node(0).metric("tx_resubmit_total") > sent + 1; })) << cluster.describe();
  EXPECT_EQ(cluster.column(id, "state"), "TRACKING");
  EXPECT_EQ(cluster.mined_count(signer(0)), 0);
  EXPECT_EQ(cluster.sql("SELECT count(*) FROM tx_attempt"), "1");

  // The base fee falls: the same transaction is mined once it is in the pool again.
  cluster.rpc("anvil_setNextBlockBaseFeePerGas", {kCheap});
  ASSERT_TRUE(eventually([&] { return !cluster.rpc("eth_getTransactionByHash", {hash}).is_null(); }))
      << cluster.describe();
  EXPECT_TRUE(eventually([&] {
    cluster.rpc("anvil_setNextBlockBaseFeePerGas", {kCheap});
    cluster.mine(1);
    return cluster.mined_count(signer(0)) == 1;
  })) << cluster.describe();
  cluster.mine(2);
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  EXPECT_EQ(cluster.column(id, "tx_hash"), hash);
  EXPECT_EQ(cluster.sql("SELECT count(*) FROM tx_attempt"), "1");
}

json::value on(const Anvil& chain, const std::string& method, json::array params) {
  return ask({"POST", chain.url(), "",
              json::serialize(json::object{{"jsonrpc", "2.0"}, {"id", 1}, {"method", method}, {"params", params}})})
      .json()
      .at("result");
}
std::string block_hash(const Anvil& chain, int number) {
  return std::string(on(chain, "eth_getBlockByNumber", {fmt::format("0x{:x}", number), false}).at("hash").as_string());
}

// Each node leads a signer on its own fork. Which fork is higher changes during the test.
TEST(tx_chain, two_nodes_on_different_forks_each_confirm_by_their_own_fork) {
  Anvil left({"--no-mining"});
  Anvil right({"--no-mining"});
  TxCluster cluster({.nodes = 2,
                     .settings = {.confirmations = "3"},
                     .anvil = {"--no-mining"},
                     .rpc_urls = {left.url(), right.url()}});
  on(right, "anvil_mine", {20});  // so that block numbers do not overlap
  const auto a = cluster.create(0, transfer(signer(0), "a", 1));
  const auto b = cluster.create(1, transfer(signer(1), "b", 1));
  ASSERT_EQ(cluster.leader_of(signer(0)), 0U);
  ASSERT_EQ(cluster.leader_of(signer(1)), 1U);
  for (const auto& id : {a, b}) ASSERT_TRUE(cluster.becomes(id, "state", "TRACKING")) << cluster.describe();
  on(left, "anvil_mine", {3});
  on(right, "anvil_mine", {3});  // one block too few, on both
  ASSERT_TRUE(cluster.becomes(a, "receipt_block", "1")) << cluster.describe();
  ASSERT_TRUE(cluster.becomes(b, "receipt_block", "21")) << cluster.describe();
  // A block on the right fork confirms nothing on the left fork.
  on(right, "anvil_mine", {1});
  ASSERT_TRUE(cluster.becomes(b, "state", "CONFIRMED")) << cluster.describe();
  EXPECT_EQ(cluster.column(a, "state"), "TRACKING");
  on(left, "anvil_mine", {1});
  ASSERT_TRUE(cluster.becomes(a, "state", "CONFIRMED")) << cluster.describe();
  EXPECT_EQ(cluster.column(a, "receipt_hash"), block_hash(left, 1));
  EXPECT_EQ(cluster.column(b, "receipt_hash"), block_hash(right, 21));
}

TEST(tx_chain, a_node_ignores_receipts_that_another_node_stored_from_another_fork) {
  Anvil other({"--no-mining"});
  // Two chains with the same chain id that share no block above the first.
  Anvil own({"--no-mining"});
  TxCluster cluster({.nodes = 2,
                     .settings = {.confirmations = "3"},
                     .anvil = {"--no-mining"},
                     .start = false,
                     .rpc_urls = {own.url(), other.url()}});
  cluster.node(0).start();
  const auto id = cluster.create(0, transfer(signer(0), "x", 1));
  ASSERT_TRUE(cluster.becomes(id, "state", "TRACKING")) << cluster.describe();
  on(own, "anvil_mine", {3});  // one block too few
  ASSERT_TRUE(cluster.becomes(id, kMined, "t")) << cluster.describe();
  const auto there = cluster.column(id, "receipt_hash");
  cluster.node(0).kill();

  // The other chain is far higher and does not have the transaction.
  on(other, "anvil_mine", {50});
  cluster.node(1).start();
  ASSERT_TRUE(cluster.becomes(id, "receipt_hash IS NULL", "t")) << cluster.describe();
  EXPECT_EQ(cluster.column(id, "state"), "TRACKING");
  const auto hash = cluster.column(id, "tx_hash");
  ASSERT_TRUE(eventually([&] { return !on(other, "eth_getTransactionByHash", {hash}).is_null(); }))
      << cluster.describe();
  on(other, "anvil_mine", {4});
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  EXPECT_NE(cluster.column(id, "receipt_hash"), there);
  EXPECT_EQ(cluster.column(id, "receipt_block"), "51");
  EXPECT_EQ(cluster.column(id, "tx_hash"), hash);
}

}  // namespace
}  // namespace fencepost::test

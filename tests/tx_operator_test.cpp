// Operator actions on real nodes: recording a hash that another wallet sent, filling a lost nonce, cancel, rebroadcast.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/eventually.hpp"
#include "tests/support/tx_cluster.hpp"

namespace fencepost::test {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

constexpr auto kEnd = "state || ' ' || coalesce(sub_state, '')";

// Sends from another wallet with the same key.
struct Elsewhere {
  std::string from;
  std::int64_t nonce = 0;
  std::string to = recipient();
  std::int64_t value = 1;
  std::string data = "0x";
};
std::string send_elsewhere(const TxCluster& cluster, const Elsewhere& tx) {
  return std::string(cluster
                         .rpc("eth_sendTransaction", {json::object{{"from", tx.from},
                                                                   {"to", tx.to},
                                                                   {"value", fmt::format("0x{:x}", tx.value)},
                                                                   {"data", tx.data},
                                                                   {"gas", "0x7530"},
                                                                   {"nonce", fmt::format("0x{:x}", tx.nonce)}}})
                         .as_string());
}

// Blocks are mined only by the test, and nothing is resubmitted during it.
TxClusterOptions by_hand() {
  return {.settings = {.resubmit_interval = 60s, .nonce_state_timeout = 1s}, .anvil = {"--no-mining"}};
}

Answer record(const TxCluster& cluster, const std::string& id, const std::string& hash) {
  return cluster.post(0, "/api/v1/tx/" + id + "/record-hash",
                      {{"txHash", hash}, {"reason", "sent by the cold wallet"}});
}

Answer fill(const TxCluster& cluster, const std::string& address, std::int64_t nonce) {
  return cluster.post(0, "/api/v1/signers/" + address + "/fill-nonce", {{"nonce", nonce}, {"reason", "it was lost"}});
}

// Returns the id of a transaction that was broadcast and then dropped by the chain.
std::string create_and_lose(TxCluster& cluster) {
  auto id = cluster.create(0, transfer(signer(0), "mine", 1));
  if (!cluster.becomes(id, "state", "TRACKING")) throw Exception(internal("not_tracking", cluster.describe()));
  cluster.rpc("anvil_dropTransaction", {cluster.column(id, "tx_hash")});
  return id;
}

TEST(tx_operator, a_recorded_hash_with_the_same_payload_confirms_the_transaction) {
  TxCluster cluster(by_hand());
  const auto id = create_and_lose(cluster);
  const auto ours = cluster.column(id, "tx_hash");
  const auto theirs = send_elsewhere(cluster, {.from = signer(0)});
  ASSERT_NE(theirs, ours);
  const auto recorded = record(cluster, id, theirs);
  ASSERT_EQ(recorded.status, 200U) << recorded.body;
  EXPECT_EQ(recorded.json().at("txHash").as_string(), theirs);
  EXPECT_EQ(recorded.json().at("subState").as_string(), "recorded");
  cluster.mine(3);
  ASSERT_TRUE(cluster.becomes(id, "state", "CONFIRMED")) << cluster.describe();
  EXPECT_EQ(cluster.column(id, "tx_hash"), theirs);
  EXPECT_EQ(cluster.column(id, "receipt ->> 'transactionHash'"), theirs);
  EXPECT_EQ(cluster.mined_count(signer(0)), 1);
  EXPECT_EQ(cluster.balance(recipient()), 1);
  EXPECT_EQ(cluster.sql("SELECT action || ': ' || reason || ' ' || (detail ->> 'txHash') FROM operator_action"),
            "record_hash: sent by the cold wallet " + theirs);
}

TEST(tx_operator, a_hash_may_be_recorded_after_it_was_mined) {
  TxCluster cluster(by_hand());
  const auto id = create_and_lose(cluster);
  const auto theirs = send_elsewhere(cluster, {.from = signer(0)});
  cluster.mine(1);
  ASSERT_TRUE(cluster.becomes(id, kEnd, "STUCK nonce_taken")) << cluster.describe();
  const auto recorded = record(cluster, id, theirs);
  ASSERT_EQ(recorded.status, 200U) << recorded.body;
  ASSERT_TRUE(cluster.becomes(id, "receipt_block IS NOT NULL", "t")) << cluster.describe();
  cluster.mine(2);
  ASSERT_TRUE(cluster.becomes(id, "state", "CONFIRMED")) << cluster.describe();
  EXPECT_EQ(cluster.column(id, "tx_hash"), theirs);
  EXPECT_EQ(cluster.balance(recipient()), 1);
}

TEST(tx_operator, a_rebroadcast_after_a_recorded_hash_was_evicted_sends_our_own_bytes) {
  TxCluster cluster(by_hand());
  const auto id = create_and_lose(cluster);
  const auto ours = cluster.column(id, "tx_hash");
  const auto theirs = send_elsewhere(cluster, {.from = signer(0)});
  ASSERT_EQ(record(cluster, id, theirs).status, 200U);
  cluster.rpc("anvil_dropTransaction", {theirs});
  const auto again = cluster.post(0, "/api/v1/tx/" + id + "/rebroadcast", {{"reason", "theirs is gone"}});
  ASSERT_EQ(again.status, 200U) << again.body;
  EXPECT_EQ(again.json().at("txHash").as_string(), ours);
  ASSERT_TRUE(eventually([&] { return !cluster.rpc("eth_getTransactionByHash", {ours}).is_null(); }))
      << cluster.describe();
  cluster.mine(3);
  ASSERT_TRUE(cluster.becomes(id, "state", "CONFIRMED")) << cluster.describe();
  EXPECT_EQ(cluster.balance(recipient()), 1);
}

TEST(tx_operator, a_rebroadcast_without_bytes_is_refused) {
  auto options = by_hand();
  options.rewritten = true;
  TxCluster cluster(options);
  cluster.chain_rewriter(0).answer_error("eth_feeHistory", -32603, "internal error");  // so that nothing is signed
  const auto id = cluster.create(0, transfer(signer(0), "unsigned", 1));
  ASSERT_TRUE(cluster.becomes(id, kEnd, "ALLOCATED fees_unknown")) << cluster.describe();
  const auto theirs = send_elsewhere(cluster, {.from = signer(0)});
  ASSERT_EQ(record(cluster, id, theirs).status, 200U);
  const auto refused = cluster.post(0, "/api/v1/tx/" + id + "/rebroadcast", {{"reason", "again"}});
  EXPECT_EQ(refused.status, 409U) << refused.body;
  EXPECT_EQ(refused.code(), "nothing_to_send");
}

TEST(tx_operator, a_hash_with_another_payload_is_refused_and_never_confirms_the_transaction) {
  const struct {
    const char* differs_in;
    Elsewhere tx;
  } cases[] = {
      {"recipient", {.from = signer(0), .to = recipient(7)}},
      {"value", {.from = signer(0), .value = 2}},
      {"data", {.from = signer(0), .data = "0xab"}},
      {"sender", {.from = signer(1)}},
      {"nonce", {.from = signer(0), .nonce = 1, .to = recipient(8)}},
  };
  TxCluster cluster(by_hand());
  const auto id = create_and_lose(cluster);
  const auto ours = cluster.column(id, "tx_hash");
  for (const auto& c : cases) {
    const auto theirs = send_elsewhere(cluster, c.tx);
    const auto refused = record(cluster, id, theirs);
    EXPECT_EQ(refused.status, 422U) << c.differs_in << ": " << refused.body;
    EXPECT_EQ(refused.code(), "hash_mismatch") << c.differs_in;
    EXPECT_NE(refused.body.find(c.differs_in), std::string::npos) << refused.body;
    cluster.rpc("anvil_dropTransaction", {theirs});
  }
  const auto unknown = record(cluster, id, "0x" + std::string(64, '1'));
  EXPECT_EQ(unknown.status, 422U) << unknown.body;
  EXPECT_EQ(unknown.code(), "hash_unknown");
  EXPECT_EQ(cluster.column(id, "tx_hash"), ours);
  EXPECT_EQ(cluster.sql("SELECT count(*) FROM tx_attempt"), "1");
  EXPECT_EQ(cluster.sql("SELECT count(*) FROM operator_action"), "0");

  // The transaction to another recipient uses the nonce: ours must not be reported as paid.
  send_elsewhere(cluster, cases[0].tx);
  cluster.mine(3);
  ASSERT_TRUE(cluster.becomes(id, kEnd, "FAILED_FINAL nonce_consumed_elsewhere")) << cluster.describe();
  EXPECT_EQ(cluster.balance(recipient()), 0);
}

TEST(tx_operator, filling_a_lost_nonce_unblocks_the_transactions_behind_it) {
  TxCluster cluster({.anvil = {"--no-mining"}});
  // Another wallet's transaction is pending when the signer is first used, so ours get later nonces. Then the chain
  // drops the other one.
  const auto lost = send_elsewhere(cluster, {.from = signer(0), .to = recipient(7)});
  for (const auto* request : {"a", "b"}) cluster.create(0, transfer(signer(0), request, 1));
  ASSERT_TRUE(cluster.sql_becomes("SELECT string_agg(nonce || ' ' || state, ', ' ORDER BY nonce) FROM tx_view",
                                  "1 TRACKING, 2 TRACKING"))
      << cluster.describe();
  cluster.rpc("anvil_dropTransaction", {lost});
  cluster.mine(2);
  EXPECT_EQ(cluster.mined_count(signer(0)), 0);

  const auto taken = fill(cluster, signer(0), 1);
  EXPECT_EQ(taken.status, 409U) << taken.body;
  EXPECT_EQ(taken.code(), "nonce_taken");
  const auto unused = fill(cluster, signer(0), 3);
  EXPECT_EQ(unused.status, 409U) << unused.body;
  EXPECT_EQ(unused.code(), "nonce_unused");
  const auto filled = fill(cluster, signer(0), 0);
  ASSERT_EQ(filled.status, 202U) << filled.body;
  EXPECT_EQ(filled.json().at("nonce").as_int64(), 0);
  EXPECT_EQ(fill(cluster, signer(0), 0).code(), "nonce_taken");
  // Anvil has dropped the transactions behind it too, so the node sends them again first.
  cluster.rpc("evm_setIntervalMining", {1});
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  EXPECT_EQ(cluster.mined_count(signer(0)), 3);
  EXPECT_EQ(cluster.balance(recipient()), 2);
  EXPECT_EQ(cluster.balance(recipient(7)), 0);
  EXPECT_EQ(cluster.sql("SELECT action || ': ' || reason || ' ' || (detail ->> 'nonce') FROM operator_action"),
            "fill_nonce: it was lost 0");
}

TEST(tx_operator, there_is_nothing_to_accept_while_the_chain_and_the_cursor_agree) {
  TxCluster cluster(by_hand());
  const auto id = cluster.create(0, transfer(signer(0), "mine", 1));
  ASSERT_TRUE(cluster.becomes(id, "state", "TRACKING")) << cluster.describe();
  const auto before = cluster.sql("SELECT next_nonce FROM signer_nonce_cursor");
  const auto refused =
      cluster.post(0, "/api/v1/signers/" + signer(0) + "/accept-reconcile", {{"reason", "to be sure"}});
  EXPECT_EQ(refused.status, 409U) << refused.body;
  EXPECT_EQ(refused.code(), "nothing_to_reconcile");
  EXPECT_EQ(cluster.sql("SELECT next_nonce FROM signer_nonce_cursor"), before);
  EXPECT_EQ(cluster.sql("SELECT count(*) FROM operator_action"), "0");
}

TEST(tx_operator, a_nonce_lost_after_an_accepted_reconcile_can_be_filled) {
  TxCluster cluster(by_hand());
  const auto first = cluster.create(0, transfer(signer(0), "first", 1));
  ASSERT_TRUE(cluster.becomes(first, "state", "TRACKING")) << cluster.describe();
  cluster.mine(3);
  ASSERT_TRUE(cluster.becomes(first, "state", "CONFIRMED")) << cluster.describe();
  const auto lost = send_elsewhere(cluster, {.from = signer(0), .nonce = 1, .to = recipient(7)});
  ASSERT_TRUE(cluster.sql_becomes("SELECT needs_reconcile FROM signer_nonce_cursor", "t")) << cluster.describe();
  const auto accepted =
      cluster.post(0, "/api/v1/signers/" + signer(0) + "/accept-reconcile", {{"reason", "it was me"}});
  ASSERT_EQ(accepted.status, 200U) << accepted.body;
  cluster.rpc("anvil_dropTransaction", {lost});
  const auto behind = cluster.create(0, transfer(signer(0), "behind", 1));
  ASSERT_TRUE(cluster.becomes(behind, "nonce || ' ' || state", "2 TRACKING")) << cluster.describe();
  cluster.mine(1);
  EXPECT_EQ(cluster.mined_count(signer(0)), 1);
  const auto filled = fill(cluster, signer(0), 1);
  ASSERT_EQ(filled.status, 202U) << filled.body;
  ASSERT_TRUE(cluster.becomes(std::string(filled.json().at("txId").as_string()), "state", "TRACKING"))
      << cluster.describe();
  cluster.mine(3);
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  EXPECT_EQ(cluster.balance(recipient()), 2);
}

TEST(tx_operator, a_lost_nonce_of_another_wallet_is_closed_by_cancelling_its_external_transaction) {
  TxCluster cluster({.settings = {.shared = true, .nonce_state_timeout = 1s}, .anvil = {"--no-mining"}});
  const auto first = cluster.create(0, transfer(signer(0), "first", 1));
  ASSERT_TRUE(cluster.becomes(first, "state", "TRACKING")) << cluster.describe();
  const auto lost = send_elsewhere(cluster, {.from = signer(0), .nonce = 1, .to = recipient(7)});
  const std::string place = "SELECT coalesce(max(tx_id::text), '') FROM tx_view WHERE sub_state = 'external'";
  ASSERT_TRUE(eventually([&] { return !cluster.sql(place).empty(); })) << cluster.describe();
  const auto id = cluster.sql(place);
  cluster.rpc("anvil_dropTransaction", {lost});
  const auto behind = cluster.create(0, transfer(signer(0), "behind", 1));
  ASSERT_TRUE(cluster.becomes(behind, "nonce || ' ' || state", "2 TRACKING")) << cluster.describe();

  const auto refused = fill(cluster, signer(0), 1);
  EXPECT_EQ(refused.code(), "nonce_taken") << refused.body;
  EXPECT_EQ(refused.json().at("txId").as_string(), id);  // what to cancel instead
  const auto cancelled = cluster.post(0, "/api/v1/tx/" + id + "/cancel", {{"reason", "theirs is gone"}});
  ASSERT_EQ(cancelled.status, 200U) << cancelled.body;
  cluster.rpc("evm_setIntervalMining", {1});
  ASSERT_TRUE(cluster.becomes(behind, "state", "CONFIRMED")) << cluster.describe();
  ASSERT_TRUE(cluster.becomes(id, kEnd, "FAILED_FINAL cancelled_by_operator")) << cluster.describe();
  EXPECT_EQ(cluster.mined_count(signer(0)), 3);
  EXPECT_EQ(cluster.balance(recipient()), 2);
}

// A chain on which a self-transfer needs more than 21,000 gas, as on Arbitrum.
RpcRewriter& expensive_transfers(TxCluster& cluster) {
  auto& endpoint = cluster.chain_rewriter(0);
  endpoint.change("eth_estimateGas", [](const json::object&, json::object reply) {
    reply["result"] = "0x186a0";  // 100,000
    return reply;
  });
  return endpoint;
}

std::string sent_gas(const TxCluster& cluster, const std::string& tx_hash) {
  return std::string(cluster.rpc("eth_getTransactionByHash", {tx_hash}).at("gas").as_string());
}

TEST(tx_operator, a_cancel_has_the_gas_that_the_chain_estimates) {
  auto options = by_hand();
  options.rewritten = true;
  TxCluster cluster(options);
  expensive_transfers(cluster);
  const auto id = create_and_lose(cluster);
  const auto cancelled = cluster.post(0, "/api/v1/tx/" + id + "/cancel", {{"reason", "a typo"}});
  ASSERT_EQ(cancelled.status, 200U) << cancelled.body;
  const auto cancel = cluster.column(id, "tx_hash");
  ASSERT_TRUE(eventually([&] { return !cluster.rpc("eth_getTransactionByHash", {cancel}).is_null(); }))
      << cluster.describe();
  EXPECT_EQ(sent_gas(cluster, cancel), "0x1d4c0") << "expected 100,000 and 20 percent";
  cluster.mine(3);
  ASSERT_TRUE(cluster.becomes(id, kEnd, "FAILED_FINAL cancelled_by_operator")) << cluster.describe();
}

TEST(tx_operator, a_filled_nonce_has_the_gas_that_the_chain_estimates) {
  TxCluster cluster({.anvil = {"--no-mining"}, .rewritten = true});
  expensive_transfers(cluster);
  const auto lost = send_elsewhere(cluster, {.from = signer(0), .to = recipient(7)});
  const auto behind = cluster.create(0, transfer(signer(0), "a", 1));
  ASSERT_TRUE(cluster.becomes(behind, "nonce || ' ' || state", "1 TRACKING")) << cluster.describe();
  cluster.rpc("anvil_dropTransaction", {lost});
  const auto filled = fill(cluster, signer(0), 0);
  ASSERT_EQ(filled.status, 202U) << filled.body;
  EXPECT_EQ(filled.json().at("gas").as_string(), "120000");
  const auto id = std::string(filled.json().at("txId").as_string());
  ASSERT_TRUE(cluster.becomes(id, "state", "TRACKING")) << cluster.describe();
  EXPECT_EQ(sent_gas(cluster, cluster.column(id, "tx_hash")), "0x1d4c0");
}

TEST(tx_operator, a_cancel_is_refused_while_no_endpoint_estimates_its_gas) {
  auto options = by_hand();
  options.rewritten = true;
  TxCluster cluster(options);
  const auto id = create_and_lose(cluster);
  cluster.chain_rewriter(0).answer_error("eth_estimateGas", -32005, "request limit reached");
  const auto refused = cluster.post(0, "/api/v1/tx/" + id + "/cancel", {{"reason", "a typo"}});
  EXPECT_EQ(refused.status, 503U) << refused.body;
  EXPECT_EQ(refused.code(), "rpc_unavailable");
  EXPECT_EQ(cluster.sql("SELECT count(*) FROM tx_attempt"), "1");
}

// The node is killed after it committed the operator's action and before it broadcast anything.
class TxOperatorKill : public testing::TestWithParam<const char*> {};

TEST_P(TxOperatorKill, a_cancel_survives_the_death_of_the_node_that_accepted_it) {
  auto options = by_hand();
  options.nodes = 2;
  options.start = false;
  TxCluster cluster(options);
  cluster.node(1).launch();
  cluster.node(0).start({std::string("FENCEPOST_TEST_KILL_AT=") + GetParam()});
  const auto id = cluster.create(0, transfer(signer(0), "c", 1));
  ASSERT_TRUE(cluster.becomes(id, "state", "TRACKING")) << cluster.describe();
  const auto original = cluster.column(id, "tx_hash");
  cluster.post(0, "/api/v1/tx/" + id + "/cancel", {{"reason", "a typo"}});  // the answer may be lost
  ASSERT_TRUE(cluster.node(0).dies()) << cluster.describe();
  const auto cancel = cluster.column(id, "tx_hash");
  ASSERT_NE(cancel, original);
  EXPECT_TRUE(cluster.rpc("eth_getTransactionByHash", {cancel}).is_null()) << "the node sent it before it was killed";

  ASSERT_TRUE(eventually([&] { return !cluster.rpc("eth_getTransactionByHash", {cancel}).is_null(); }))
      << cluster.describe();
  cluster.mine(3);
  ASSERT_TRUE(cluster.becomes(id, kEnd, "FAILED_FINAL cancelled_by_operator")) << cluster.describe();
  EXPECT_EQ(cluster.column(id, "tx_hash"), cancel);
  EXPECT_EQ(cluster.mined_count(signer(0)), 1);
  EXPECT_EQ(cluster.balance(recipient()), 0);
  EXPECT_EQ(cluster.sql("SELECT string_agg(action || ': ' || reason, ', ') FROM operator_action"), "cancel: a typo");
  EXPECT_EQ(cluster.sql("SELECT count(*) FROM tx_attempt"), "2") << "the other node signed it again";
}

INSTANTIATE_TEST_SUITE_P(at, TxOperatorKill, testing::Values("operator.committed", "resubmitter.claimed"),
                         [](const testing::TestParamInfo<const char*>& info) {
                           std::string name = info.param;
                           name[name.find('.')] = '_';
                           return name;
                         });

// Resubmission is disabled, so the new owner must know that the operator's broadcast is still to be sent.
TEST(tx_operator, a_rebroadcast_survives_the_death_of_the_node_that_accepted_it_with_resubmission_disabled) {
  TxCluster cluster(
      {.nodes = 2, .settings = {.resubmit_interval = 1s, .resubmit = false}, .anvil = {"--no-mining"}, .start = false});
  cluster.node(1).launch();
  cluster.node(0).start({"FENCEPOST_TEST_KILL_AT=resubmitter.claimed"});
  const auto id = cluster.create(0, transfer(signer(0), "r", 1));
  ASSERT_TRUE(cluster.becomes(id, "state", "TRACKING")) << cluster.describe();
  const auto hash = cluster.column(id, "tx_hash");
  cluster.rpc("anvil_dropTransaction", {hash});
  cluster.post(0, "/api/v1/tx/" + id + "/rebroadcast", {{"reason", "the pool lost it"}});  // the answer may be lost
  ASSERT_TRUE(cluster.node(0).dies()) << cluster.describe();
  EXPECT_TRUE(cluster.rpc("eth_getTransactionByHash", {hash}).is_null()) << "the node sent it before it was killed";

  ASSERT_TRUE(eventually([&] { return !cluster.rpc("eth_getTransactionByHash", {hash}).is_null(); }))
      << cluster.describe();
  EXPECT_TRUE(cluster.becomes(id, "next_resubmit_at IS NULL", "t"))
      << "a resubmission is scheduled although resubmission is disabled";
  cluster.mine(3);
  ASSERT_TRUE(cluster.becomes(id, "state", "CONFIRMED")) << cluster.describe();
}

TEST(tx_operator, a_filled_nonce_survives_the_death_of_the_node_that_accepted_it) {
  TxCluster cluster({.nodes = 2, .anvil = {"--no-mining"}, .start = false});
  cluster.node(1).launch();
  cluster.node(0).start({"FENCEPOST_TEST_KILL_AT=operator.committed"});
  const auto lost = send_elsewhere(cluster, {.from = signer(0), .to = recipient(7)});
  const auto behind = cluster.create(0, transfer(signer(0), "a", 1));
  ASSERT_TRUE(cluster.becomes(behind, "nonce || ' ' || state", "1 TRACKING")) << cluster.describe();
  cluster.rpc("anvil_dropTransaction", {lost});
  fill(cluster, signer(0), 0);  // no answer
  ASSERT_TRUE(cluster.node(0).dies()) << cluster.describe();
  EXPECT_EQ(cluster.sql("SELECT count(*) FROM tx_attempt"), "1") << "the node signed it before it was killed";

  cluster.rpc("evm_setIntervalMining", {1});
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  EXPECT_EQ(cluster.sql("SELECT string_agg(nonce::text, ' ' ORDER BY nonce) FROM tx_view"), "0 1");
  EXPECT_EQ(cluster.sql("SELECT string_agg(action || ' ' || (detail ->> 'nonce'), ', ') FROM operator_action"),
            "fill_nonce 0");
  EXPECT_EQ(cluster.mined_count(signer(0)), 2);
  EXPECT_EQ(cluster.balance(recipient()), 1);
}

}  // namespace
}  // namespace fencepost::test

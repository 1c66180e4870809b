// A nonce that another wallet with the same key took: which transaction it was, when that is final, and what an
// endpoint that lies about it can do.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/eventually.hpp"
#include "tests/support/tx_cluster.hpp"

namespace fencepost::test {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

constexpr auto kWhere = "state || ' ' || coalesce(sub_state, '')";

// Sends from another wallet with the same key.
std::string send_directly(const TxCluster& cluster, std::int64_t nonce) {
  const json::object tx{{"from", signer(0)},
                        {"to", recipient(7)},
                        {"value", "0x1"},
                        {"gas", "0x5208"},
                        {"nonce", fmt::format("0x{:x}", nonce)}};
  return std::string(cluster.rpc("eth_sendTransaction", {tx}).as_string());
}

// A transaction of ours whose nonce 0 another wallet took, in block 1. The result is that wallet's transaction.
std::string take_nonce_of(const TxCluster& cluster, const std::string& id) {
  EXPECT_TRUE(cluster.becomes(id, "state", "TRACKING")) << cluster.describe();
  cluster.rpc("anvil_dropTransaction", {cluster.column(id, "tx_hash")});
  auto taker = send_directly(cluster, 0);
  cluster.mine(1);
  EXPECT_EQ(cluster.balance(recipient(7)), 1);
  return taker;
}

std::int64_t block_number(const json::value& text) {
  return std::stoll(std::string(text.as_string()), nullptr, 16);
}

// Refuses the state of blocks that are more than `kept` blocks below the head, as a pruned node does.
void prune_state(TxCluster& cluster, RpcRewriter& endpoint, std::int64_t kept) {
  endpoint.change("eth_getTransactionCount", [&cluster, kept](const json::object& call, json::object reply) {
    const auto& at = call.at("params").at(1);
    if (!at.as_string().starts_with("0x") || block_number(at) >= cluster.head() - kept) return reply;
    reply.erase("result");
    reply["error"] = {{"code", -32000}, {"message", "missing trie node: state is not available"}};
    return reply;
  });
}

TEST(tx_taken_nonce, the_transaction_that_took_the_nonce_is_named) {
  TxCluster cluster({.settings = {.resubmit_interval = 60s, .nonce_state_timeout = 1s}, .anvil = {"--no-mining"}});
  cluster.mine(20);
  const auto id = cluster.create(0, transfer(signer(0), "mine", 1));
  const auto taker = take_nonce_of(cluster, id);
  cluster.mine(1);
  ASSERT_TRUE(cluster.becomes(id, kWhere, "STUCK nonce_taken")) << cluster.describe();
  EXPECT_EQ(cluster.sql("SELECT kind || ' ' || attempt FROM tx_attempt WHERE tx_hash = '" + taker + "'"), "external 0");
  EXPECT_EQ(cluster.sql("SELECT data #>> '{takenBy,txHash}' FROM outbox WHERE type = 'TxStuck'"), taker);
  cluster.mine(2);
  ASSERT_TRUE(cluster.becomes(id, kWhere, "FAILED_FINAL nonce_consumed_elsewhere")) << cluster.describe();
  EXPECT_EQ(cluster.sql("SELECT (data #>> '{takenBy,txHash}') || ' ' || (data #>> '{takenBy,blockNumber}') FROM outbox "
                        "WHERE type = 'TxFailed'"),
            taker + " 21");
  EXPECT_NE(cluster.column(id, "error_message").find(taker), std::string::npos);
}

// The endpoint says that the nonce is used, has no receipt of ours and does not know our transaction: all of it is
// wrong. Our transaction was paid.
TEST(tx_taken_nonce, an_endpoint_that_denies_a_mined_payment_does_not_end_it) {
  TxCluster cluster({.settings = {.stale_receipt_timeout = 1s, .nonce_state_timeout = 1s}, .rewritten = true});
  auto& endpoint = cluster.chain_rewriter(0);
  for (const auto* method : {"eth_getTransactionReceipt", "eth_getBlockReceipts", "eth_getTransactionByHash"}) {
    endpoint.answer_null(method);
  }
  // The blocks that the follower gets do not list it either.
  const auto without_transactions = [](const json::object&, json::object reply) {
    if (reply.contains("result") && reply["result"].is_object()) {
      reply["result"].as_object()["transactions"] = json::array();
    }
    return reply;
  };
  endpoint.change("eth_getBlockByNumber", without_transactions);
  endpoint.change("eth_getBlockByHash", without_transactions);
  const auto id = cluster.create(0, transfer(signer(0), "paid", 7));
  ASSERT_TRUE(eventually([&] { return cluster.balance(recipient()) == 7; })) << cluster.describe();
  ASSERT_TRUE(cluster.becomes(id, kWhere, "STUCK nonce_taken")) << cluster.describe();
  const auto final_at = cluster.head() + 6;
  ASSERT_TRUE(eventually([&] { return cluster.head() > final_at; }));
  EXPECT_TRUE(cluster.becomes(id, "error_message LIKE '%has no transaction of the signer at this nonce%'", "t"))
      << cluster.column(id, "error_message");
  EXPECT_EQ(cluster.column(id, kWhere), "STUCK nonce_taken") << cluster.describe();
  endpoint.pass_all();
  ASSERT_TRUE(cluster.becomes(id, "state", "CONFIRMED")) << cluster.describe();
  EXPECT_EQ(cluster.balance(recipient()), 7);
}

TEST(tx_taken_nonce, one_lying_endpoint_beside_an_honest_one_ends_nothing) {
  TxCluster cluster({.settings = {.stale_receipt_timeout = 1s, .resubmit_interval = 60s, .nonce_state_timeout = 1s},
                     .anvil = {"--no-mining"},
                     .rewritten = true,
                     .second_endpoint = true,
                     .second_rewritten = true});
  const auto id = cluster.create(0, transfer(signer(0), "slow", 7));
  ASSERT_TRUE(cluster.becomes(id, "state", "TRACKING")) << cluster.describe();
  const auto hash = cluster.column(id, "tx_hash");
  cluster.rpc("anvil_dropTransaction", {hash});
  // A payment of another account, in block 1.
  const json::object other{{"from", signer(1)}, {"to", recipient(7)}, {"value", "0x1"}, {"gas", "0x5208"}};
  const std::string innocent(cluster.rpc("eth_sendTransaction", {other}).as_string());
  // The first endpoint counts one transaction too many from block 1 on, and says that the innocent one was it.
  auto& liar = cluster.chain_rewriter(0);
  liar.change("eth_getTransactionCount", [](const json::object& call, json::object reply) {
    const auto& at = call.at("params").at(1).as_string();
    if (call.at("params").at(0).as_string() == signer(0) && at != "0x0") reply["result"] = "0x1";
    return reply;
  });
  liar.change("eth_getTransactionByHash", [innocent](const json::object& call, json::object reply) {
    if (call.at("params").at(0).as_string() != innocent) return reply;
    reply["result"].as_object()["from"] = signer(0);
    reply["result"].as_object()["nonce"] = "0x0";
    return reply;
  });
  cluster.mine(1);
  ASSERT_TRUE(cluster.becomes(id, kWhere, "STUCK nonce_taken")) << cluster.describe();
  cluster.mine(5);
  EXPECT_TRUE(cluster.becomes(id, "error_message LIKE '%no other endpoint confirms it%'", "t"))
      << cluster.column(id, "error_message");
  EXPECT_EQ(cluster.column(id, kWhere), "STUCK nonce_taken") << cluster.describe();
  EXPECT_EQ(cluster.sql("SELECT count(*) FROM tx_attempt WHERE kind = 'external'"), "0");
  liar.pass_all();
  ASSERT_TRUE(cluster.becomes(id, "state", "TRACKING")) << cluster.describe();
  ASSERT_TRUE(eventually([&] { return !cluster.rpc("eth_getTransactionByHash", {hash}).is_null(); }));
  cluster.mine(4);
  ASSERT_TRUE(cluster.becomes(id, "state", "CONFIRMED")) << cluster.describe();
  EXPECT_EQ(cluster.balance(recipient()), 7);
}

Answer give_up(const TxCluster& cluster, const std::string& id) {
  return cluster.post(0, "/api/v1/tx/" + id + "/give-up", {{"reason", "an authorization used the nonce"}});
}

// The blocks name no transactions, as if an EIP-7702 authorization had used the nonce.
void hide_takers(RpcRewriter& endpoint) {
  endpoint.change("eth_getBlockByNumber", [](const json::object&, json::object reply) {
    if (reply.contains("result") && reply["result"].is_object()) {
      reply["result"].as_object()["transactions"] = json::array();
    }
    return reply;
  });
}

TxClusterOptions one_at_a_time() {
  return {.settings = {.max_in_flight = 1, .resubmit_interval = 60s, .nonce_state_timeout = 1s},
          .anvil = {"--no-mining"},
          .rewritten = true};
}

TEST(tx_taken_nonce, an_operator_gives_up_a_transaction_whose_taker_cannot_be_found) {
  TxCluster cluster(one_at_a_time());
  hide_takers(cluster.chain_rewriter(0));
  cluster.mine(20);
  const auto id = cluster.create(0, transfer(signer(0), "taken", 1));
  EXPECT_EQ(give_up(cluster, id).code(), "wrong_state");
  take_nonce_of(cluster, id);
  cluster.mine(1);
  ASSERT_TRUE(cluster.becomes(id, kWhere, "STUCK nonce_taken")) << cluster.describe();
  const auto behind = cluster.create(0, transfer(signer(0), "behind", 2));

  const auto early = give_up(cluster, id);
  EXPECT_EQ(early.status, 409U) << early.body;
  EXPECT_EQ(early.code(), "give_up_refused");
  EXPECT_EQ(early.json().at("why").as_string(), "not_taken");
  EXPECT_EQ(cluster.column(behind, "state"), "CREATED") << "the stuck one holds up its signer";
  EXPECT_EQ(cluster.sql("SELECT count(*) FROM operator_action"), "0");

  cluster.mine(3);
  Answer done;  // refused until the node has seen these blocks
  ASSERT_TRUE(eventually([&] { return (done = give_up(cluster, id)).status == 200U; })) << done.body;
  EXPECT_EQ(done.json().at("state").as_string(), "FAILED_FINAL");
  EXPECT_EQ(done.json().at("subState").as_string(), "given_up");
  EXPECT_EQ(done.json().at("nonce").as_int64(), 0) << "the nonce is used, and is not given again";
  EXPECT_EQ(cluster.sql("SELECT (data ->> 'reason') || ' ' || (data ->> 'nonce') FROM outbox WHERE type = 'TxFailed'"),
            "given_up 0");
  EXPECT_EQ(cluster.sql("SELECT action || ' ' || (detail #>> '{endpoints,0,chainNonce}') FROM operator_action"),
            "give_up 1");
  EXPECT_EQ(give_up(cluster, id).code(), "wrong_state");
  cluster.chain_rewriter(0).pass_all();
  cluster.rpc("evm_setIntervalMining", {1});
  ASSERT_TRUE(cluster.becomes(behind, "state || ' ' || nonce", "CONFIRMED 1")) << cluster.describe();
  EXPECT_EQ(cluster.balance(recipient()), 2) << "only the payment behind it";
}

TEST(tx_taken_nonce, nothing_is_given_up_while_one_endpoint_is_silent_or_contradicts) {
  auto options = one_at_a_time();
  options.second_endpoint = true;
  options.second_rewritten = true;
  TxCluster cluster(options);
  auto& second = cluster.second_rewriter();
  for (auto* endpoint : {&cluster.chain_rewriter(0), &second}) hide_takers(*endpoint);
  const auto id = cluster.create(0, transfer(signer(0), "taken", 1));
  take_nonce_of(cluster, id);
  cluster.mine(4);
  ASSERT_TRUE(cluster.becomes(id, kWhere, "STUCK nonce_taken")) << cluster.describe();
  const auto hash = cluster.column(id, "tx_hash");

  second.answer_error("eth_getTransactionByHash", -32005, "daily request limit");
  const auto silent = give_up(cluster, id);
  EXPECT_EQ(silent.status, 503U) << silent.body;
  EXPECT_EQ(silent.code(), "rpc_unavailable");
  second.change("eth_getTransactionByHash", [hash](const json::object& call, json::object reply) {
    if (call.at("params").as_array().at(0).as_string() != hash) return reply;
    reply["result"] =
        json::object{{"hash", hash},   {"from", signer(0)}, {"to", recipient()},    {"nonce", "0x0"},
                     {"value", "0x1"}, {"input", "0x"},     {"blockHash", nullptr}, {"blockNumber", nullptr}};
    return reply;
  });
  Answer known;  // the endpoint that failed is silent for its cooldown
  ASSERT_TRUE(eventually([&] { return (known = give_up(cluster, id)).status == 409U; })) << known.body;
  EXPECT_EQ(known.json().at("why").as_string(), "transaction_known") << known.body;
  EXPECT_EQ(known.json().at("txHash").as_string(), hash);
  EXPECT_EQ(cluster.column(id, kWhere), "STUCK nonce_taken");
  EXPECT_EQ(cluster.sql("SELECT count(*) FROM operator_action"), "0");
  second.pass("eth_getTransactionByHash");
  EXPECT_TRUE(eventually([&] { return give_up(cluster, id).status == 200U; })) << cluster.describe();
}

// The only endpoint never has the state of the final block: what it counted when the operator asked first is the proof.
TEST(tx_taken_nonce, an_endpoint_without_the_state_of_the_final_block_proves_it_later) {
  TxCluster cluster(one_at_a_time());
  hide_takers(cluster.chain_rewriter(0));
  prune_state(cluster, cluster.chain_rewriter(0), 1);
  const auto id = cluster.create(0, transfer(signer(0), "taken", 1));
  take_nonce_of(cluster, id);
  cluster.mine(8);
  ASSERT_TRUE(cluster.becomes(id, kWhere, "STUCK nonce_taken")) << cluster.describe();
  const auto first = give_up(cluster, id);
  EXPECT_EQ(first.status, 503U) << first.body;
  EXPECT_NE(first.body.find("was noted"), std::string::npos) << first.body;
  cluster.mine(8);
  EXPECT_TRUE(eventually([&] { return give_up(cluster, id).status == 200U; })) << cluster.describe();
}

// The first endpoint has dropped the state of the time when the nonce was taken.
TEST(tx_taken_nonce, an_archive_node_that_is_configured_second_names_the_transaction_that_took_a_nonce) {
  auto options = one_at_a_time();
  options.second_endpoint = true;
  TxCluster cluster(options);
  const auto id = cluster.create(0, transfer(signer(0), "taken", 1));
  ASSERT_TRUE(cluster.becomes(id, "state", "TRACKING")) << cluster.describe();
  prune_state(cluster, cluster.chain_rewriter(0), 4);
  cluster.node(0).kill();
  const auto taker = take_nonce_of(cluster, id);
  cluster.mine(20);
  cluster.node(0).start();
  ASSERT_TRUE(cluster.becomes(id, kWhere, "FAILED_FINAL nonce_consumed_elsewhere")) << cluster.describe();
  EXPECT_EQ(cluster.sql("SELECT data #>> '{takenBy,txHash}' FROM outbox WHERE type = 'TxFailed'"), taker);
}

// `finalized` is 600 blocks behind the head, the window has 256, and the endpoint keeps the state of 128.
class FarTag : public testing::Test {
 protected:
  static constexpr int kBehind = 600;
  TxCluster cluster{{.settings = {.confirmations = "finalized",
                                  .stale_receipt_timeout = 1s,
                                  .resubmit_interval = 60s,
                                  .stuck_after = 300s,
                                  .nonce_state_timeout = 1s},
                     .anvil = {"--no-mining", "--slots-in-an-epoch", std::to_string(kBehind / 2)},
                     .rewritten = true}};
  FarTag() { prune_state(cluster, cluster.chain_rewriter(0), 128); }

  // In steps, so that the node sees each block within its window.
  void mine_until_final() {
    for (int mined = 0; mined < kBehind + 50; mined += 50) {
      cluster.mine(50);
      const auto head = std::to_string(cluster.head());
      ASSERT_TRUE(cluster.sql_becomes("SELECT max(number) FROM chain_header", head)) << cluster.describe();
    }
  }
};

TEST_F(FarTag, a_payment_is_confirmed_with_its_confirmations) {
  const auto id = cluster.create(0, transfer(signer(0), "paid", 1));
  ASSERT_TRUE(cluster.becomes(id, "state", "TRACKING")) << cluster.describe();
  cluster.mine(1);
  ASSERT_TRUE(cluster.becomes(id, "receipt_block", "1")) << cluster.describe();
  mine_until_final();
  ASSERT_TRUE(cluster.becomes(id, "state", "CONFIRMED")) << cluster.describe();
  // From its block to the final one.
  EXPECT_EQ(cluster.sql("SELECT data #>> '{confirmations,0,blockNumber}' FROM outbox WHERE type = 'TxConfirmed'"), "1");
}

TEST_F(FarTag, a_nonce_that_another_wallet_took_ends_although_no_endpoint_has_that_old_a_state) {
  const auto id = cluster.create(0, transfer(signer(0), "mine", 1));
  const auto taker = take_nonce_of(cluster, id);
  ASSERT_TRUE(cluster.becomes(id, kWhere, "STUCK nonce_taken")) << cluster.describe();
  mine_until_final();
  ASSERT_TRUE(cluster.becomes(id, kWhere, "FAILED_FINAL nonce_consumed_elsewhere")) << cluster.describe();
  EXPECT_EQ(cluster.sql("SELECT data #>> '{takenBy,txHash}' FROM outbox WHERE type = 'TxFailed'"), taker);
}

TEST(tx_taken_nonce, a_shared_signers_external_rows_end_by_a_tag_far_behind) {
  TxCluster cluster({.settings = {.shared = true, .confirmations = "finalized", .nonce_state_timeout = 500ms},
                     .anvil = {"--no-mining", "--slots-in-an-epoch", "300"},
                     .rewritten = true});
  prune_state(cluster, cluster.chain_rewriter(0), 128);
  const auto ours = cluster.create(0, transfer(signer(0), "ours", 1));
  ASSERT_TRUE(cluster.becomes(ours, "state", "TRACKING")) << cluster.describe();
  send_directly(cluster, 1);
  cluster.mine(1);
  ASSERT_TRUE(cluster.sql_becomes("SELECT count(*) FROM tx_view WHERE sub_state = 'external'", "1"))
      << cluster.describe();
  const std::string rounds = "worker_runs_total{chain=\"anvil\",result=\"ok\",worker=\"tx_stuck_watcher\"}";
  const auto before = cluster.node(0).metric(rounds);
  ASSERT_TRUE(eventually([&] { return cluster.node(0).metric(rounds) > before + 2; })) << "the count was not noted";
  for (int mined = 0; mined < 650; mined += 50) {
    cluster.mine(50);
    ASSERT_TRUE(cluster.sql_becomes("SELECT max(number) FROM chain_header", std::to_string(cluster.head())));
  }
  ASSERT_TRUE(cluster.sql_becomes("SELECT count(*) FROM tx_view WHERE state NOT IN ('CONFIRMED', 'FAILED_FINAL')", "0"))
      << cluster.describe();
}

}  // namespace
}  // namespace fencepost::test

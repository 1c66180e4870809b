// A signer's nonces when other wallets with the same key use them, when operators act on them, and when the chain's
// nonce is ahead of ours.
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/eventually.hpp"
#include "tests/support/stub_chain_server.hpp"
#include "tests/support/tx_cluster.hpp"

namespace fencepost::test {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

// Sends from another wallet with the same key. Without a nonce, the chain's next one is used.
std::string send_directly(const TxCluster& cluster, const std::string& from, const std::string& to,
                          std::optional<std::int64_t> nonce = {}) {
  json::object tx{{"from", from}, {"to", to}, {"value", "0x1"}, {"gas", "0x5208"}};
  if (nonce) tx["nonce"] = fmt::format("0x{:x}", *nonce);
  return std::string(cluster.rpc("eth_sendTransaction", {tx}).as_string());
}

TEST(tx_nonce, a_nonce_used_by_another_wallet_fails_the_transaction_once_that_use_is_final) {
  TxCluster cluster({.settings = {.resubmit_interval = 60s, .nonce_state_timeout = 1s}, .anvil = {"--no-mining"}});
  const auto id = cluster.create(0, transfer(signer(0), "mine", 1));
  ASSERT_TRUE(cluster.becomes(id, "state", "TRACKING")) << cluster.describe();
  cluster.rpc("anvil_dropTransaction", {cluster.column(id, "tx_hash")});
  send_directly(cluster, signer(0), recipient(7), 0);
  cluster.mine(1);
  ASSERT_EQ(cluster.balance(recipient(7)), 1);
  ASSERT_TRUE(cluster.becomes(id, "state || ' ' || coalesce(sub_state, '')", "STUCK nonce_taken"))
      << cluster.describe();
  EXPECT_EQ(cluster.column(id, "nonce"), "0");
  cluster.mine(2);
  ASSERT_TRUE(cluster.becomes(id, "state || ' ' || coalesce(sub_state, '')", "FAILED_FINAL nonce_consumed_elsewhere"))
      << cluster.describe();
  EXPECT_EQ(cluster.sql("SELECT string_agg(type, ' ' ORDER BY seq) FROM outbox WHERE type IN ('TxStuck', "
                        "'TxFailed', 'TxConfirmed')"),
            "TxStuck TxFailed");

  // The payload was not sent under another nonce, and the next transaction is not blocked.
  EXPECT_EQ(cluster.balance(recipient()), 0);
  const auto next = cluster.create(0, transfer(signer(0), "next", 1));
  ASSERT_TRUE(cluster.becomes(next, "state", "TRACKING")) << cluster.describe();
  cluster.mine(3);
  ASSERT_TRUE(cluster.becomes(next, "state", "CONFIRMED")) << cluster.describe();
  EXPECT_EQ(cluster.column(next, "nonce"), "1");
}

TEST(tx_nonce, a_reorg_that_undoes_another_wallets_transaction_frees_the_nonce) {
  TxCluster cluster({.settings = {.confirmations = "4", .resubmit_interval = 60s, .nonce_state_timeout = 1s},
                     .anvil = {"--no-mining"}});
  const auto id = cluster.create(0, transfer(signer(0), "mine", 1));
  ASSERT_TRUE(cluster.becomes(id, "state", "TRACKING")) << cluster.describe();
  cluster.rpc("anvil_dropTransaction", {cluster.column(id, "tx_hash")});
  send_directly(cluster, signer(0), recipient(7), 0);
  cluster.mine(1);
  ASSERT_TRUE(cluster.becomes(id, "state", "STUCK")) << cluster.describe();
  cluster.reorg(1);
  cluster.mine(1);
  ASSERT_TRUE(cluster.becomes(id, "state", "TRACKING")) << cluster.describe();
  const auto hash = cluster.column(id, "tx_hash");
  ASSERT_TRUE(eventually([&] { return !cluster.rpc("eth_getTransactionByHash", {hash}).is_null(); }))
      << cluster.describe();
  cluster.mine(5);
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  EXPECT_EQ(cluster.balance(recipient()), 1);
  EXPECT_EQ(cluster.balance(recipient(7)), 0);
}

TEST(tx_nonce, an_operators_cancel_ends_a_transaction_that_is_not_mined) {
  TxCluster cluster({.settings = {.stuck_after = 500ms}, .anvil = {"--no-mining"}});
  const auto id = cluster.create(0, transfer(signer(0), "c", 1));
  const auto behind = cluster.create(0, transfer(signer(0), "behind", 1));
  ASSERT_TRUE(cluster.becomes(id, "state", "STUCK")) << cluster.describe();
  EXPECT_EQ(cluster.get(0, "/api/v1/tx/" + behind).json().at("blockedBy").as_string(), id);
  const auto no_reason = cluster.post(0, "/api/v1/tx/" + id + "/cancel", {});
  EXPECT_EQ(no_reason.status, 400U) << no_reason.body;
  const auto cancelled = cluster.post(0, "/api/v1/tx/" + id + "/cancel", {{"reason", "a typo in the amount"}});
  ASSERT_EQ(cancelled.status, 200U) << cancelled.body;
  cluster.rpc("evm_setIntervalMining", {1});
  ASSERT_TRUE(cluster.becomes(id, "state || ' ' || coalesce(sub_state, '')", "FAILED_FINAL cancelled_by_operator"))
      << cluster.describe();
  ASSERT_TRUE(cluster.becomes(behind, "state", "CONFIRMED")) << cluster.describe();
  EXPECT_EQ(cluster.mined_count(signer(0)), 2);
  EXPECT_EQ(cluster.balance(recipient()), 1);  // from the transaction behind it
  EXPECT_EQ(cluster.sql("SELECT action || ': ' || reason FROM operator_action"), "cancel: a typo in the amount");
}

TEST(tx_nonce, of_a_cancel_and_its_original_one_is_mined_and_the_state_says_which) {
  constexpr std::size_t kSigners = 10;
  TxCluster cluster({.anvil = {"--no-mining"}});
  std::vector<std::string> ids;
  ids.reserve(kSigners);
  for (std::size_t i = 0; i < kSigners; ++i) {
    ids.push_back(cluster.create(0, transfer(signer(i), "race", 1, recipient(static_cast<std::uint32_t>(i)))));
  }
  ASSERT_TRUE(cluster.sql_becomes("SELECT count(*) FROM tx_view WHERE state = 'TRACKING'", "10")) << cluster.describe();
  std::vector<Ask> asks;
  asks.reserve(ids.size());
  for (const auto& id : ids) {
    asks.push_back(
        {"POST", cluster.node(0).url("/api/v1/tx/" + id + "/cancel"), cluster.key(), R"({"reason":"race"})"});
  }
  std::jthread miner([&] { cluster.rpc("evm_setIntervalMining", {1}); });
  // Cancel half of them at once, and the rest after a block was mined.
  auto answers = ask_all({asks.begin(), asks.begin() + kSigners / 2});
  ASSERT_TRUE(eventually([&] { return cluster.head() > 0; }));
  for (auto& answer : ask_all({asks.begin() + kSigners / 2, asks.end()})) answers.push_back(std::move(answer));
  for (const auto& answer : answers) EXPECT_TRUE(answer.status == 200 || answer.status == 409) << answer.body;

  ASSERT_TRUE(cluster.sql_becomes("SELECT count(*) FROM tx_view WHERE state NOT IN ('CONFIRMED', 'FAILED_FINAL')", "0"))
      << cluster.describe();
  for (std::size_t i = 0; i < kSigners; ++i) {
    EXPECT_EQ(cluster.mined_count(signer(i)), 1);
    const bool paid = cluster.balance(recipient(static_cast<std::uint32_t>(i))) == 1;
    EXPECT_EQ(cluster.column(ids[i], "state || ' ' || coalesce(sub_state, '')"),
              paid ? "CONFIRMED " : "FAILED_FINAL cancelled_by_operator");
    EXPECT_EQ(cluster.column(ids[i], "receipt ->> 'transactionHash' = tx_hash"), "t");
  }
}

TEST(tx_nonce, an_exclusive_signer_whose_chain_nonce_is_ahead_waits_for_an_operator) {
  TxCluster cluster({.nodes = 2, .settings = {.nonce_state_timeout = 1s}});
  cluster.create(0, transfer(signer(0), "a", 1));
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  send_directly(cluster, signer(0), recipient(7));
  send_directly(cluster, signer(0), recipient(7));
  ASSERT_TRUE(cluster.sql_becomes("SELECT needs_reconcile FROM signer_nonce_cursor", "t")) << cluster.describe();
  ASSERT_TRUE(eventually([&] { return cluster.node(0).metric("signer_needs_reconcile") == 1; }));
  const auto before = cluster.sql("SELECT count(*) FROM tx_view");
  for (std::size_t node = 0; node < 2; ++node) {
    const auto refused = ask(cluster.create_ask(node, transfer(signer(0), "b", 1)));
    EXPECT_EQ(refused.status, 409U) << refused.body;
    EXPECT_EQ(refused.code(), "signer_needs_reconcile");
  }
  EXPECT_EQ(cluster.sql("SELECT count(*) FROM tx_view"), before);

  ASSERT_TRUE(eventually([&] { return cluster.mined_count(signer(0)) == 3; }));
  const auto accepted =
      cluster.post(0, "/api/v1/signers/" + signer(0) + "/accept-reconcile", {{"reason", "it was me"}});
  ASSERT_EQ(accepted.status, 200U) << accepted.body;
  EXPECT_EQ(accepted.json().at("nextNonce").as_int64(), 3);
  const auto next = cluster.create(1, transfer(signer(0), "b", 1));
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  EXPECT_EQ(cluster.column(next, "nonce"), "3");
  EXPECT_EQ(cluster.balance(recipient()), 2);
}

TEST(tx_nonce, a_takeover_does_not_query_the_chains_nonce_when_chain_query_is_off) {
  constexpr auto kAsked = "eth_getTransactionCount";
  StubChainServer chain;
  TxCluster cluster({.nodes = 2, .settings = {.chain_query = false}, .rpc_urls = {chain.url(), chain.url()}});
  cluster.create(0, transfer(signer(0), "first", 1));
  // The first nonce of a new signer still comes from the chain.
  ASSERT_TRUE(eventually([&] { return chain.chain().pool_size() == 1; })) << cluster.describe();
  EXPECT_EQ(chain.rpc().calls(kAsked), 1U);
  cluster.node(0).kill();
  chain.rpc().reset_calls();

  ASSERT_TRUE(eventually([&] { return cluster.leader_of(signer(0)) == 1; })) << cluster.describe();
  const auto next = cluster.create(1, transfer(signer(0), "next", 1));
  EXPECT_EQ(cluster.column(next, "nonce"), "1");
  chain.set_interval(100ms);
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  EXPECT_EQ(chain.rpc().calls(kAsked), 0U);
  EXPECT_EQ(chain.chain().mined_count(), 2U);
}

TEST(tx_nonce, a_nonce_of_a_shared_signer_used_elsewhere_ends_without_a_stuck_event) {
  TxCluster cluster(
      {.settings = {.shared = true, .confirmations = "6", .stuck_after = 200ms, .nonce_state_timeout = 200ms},
       .anvil = {"--no-mining"}});
  const auto ours = cluster.create(0, transfer(signer(0), "ours", 1));
  ASSERT_TRUE(cluster.becomes(ours, "state", "TRACKING")) << cluster.describe();
  send_directly(cluster, signer(0), recipient(7));
  cluster.mine(1);
  const std::string external = "SELECT count(*) FROM tx_view WHERE sub_state = 'external' AND state = 'TRACKING'";
  ASSERT_TRUE(cluster.sql_becomes(external, "1")) << cluster.describe();
  // Long after stuck.after, the worker still sees that the nonce is used and the use is not final.
  const auto rounds = cluster.node(0).metric("worker_runs_total");
  ASSERT_TRUE(eventually([&] { return cluster.node(0).metric("worker_runs_total") > rounds + 60; }));
  cluster.mine(6);
  ASSERT_TRUE(cluster.sql_becomes("SELECT count(*) FROM tx_view WHERE state NOT IN ('CONFIRMED', 'FAILED_FINAL')", "0"))
      << cluster.describe();
  EXPECT_EQ(cluster.sql("SELECT string_agg(h.to_state, ' ' ORDER BY h.seq) FROM history AS h JOIN tx_view AS t ON "
                        "h.subject = 'tx/' || t.tx_id WHERE t.sub_state = 'external'"),
            "TRACKING FAILED_FINAL");
  EXPECT_EQ(cluster.sql("SELECT count(*) FROM outbox WHERE type = 'TxStuck'"), "0");
}

TEST(tx_nonce, a_shared_signer_used_by_another_wallet_at_the_same_time_pays_nothing_twice) {
  constexpr int kEach = 15;
  TxCluster cluster({.nodes = 2, .settings = {.shared = true, .resubmit_interval = 1s, .nonce_state_timeout = 500ms}});
  std::jthread other_wallet([&] {
    for (int i = 0; i < kEach; ++i) {
      try {
        send_directly(cluster, signer(0), recipient(7));
      } catch (const Exception& refused) {  // our transaction already has that nonce
        EXPECT_NE(std::string(refused.what()).find("underpriced"), std::string::npos) << refused.what();
      }
    }
  });
  for (int i = 0; i < kEach; ++i) {
    cluster.create_by_retrying(static_cast<std::size_t>(i) % 2, transfer(signer(0), fmt::format("s-{}", i), 1));
  }
  other_wallet.join();
  ASSERT_TRUE(cluster.sql_becomes("SELECT count(*) FROM tx_view WHERE state NOT IN ('CONFIRMED', 'FAILED_FINAL')", "0"))
      << cluster.describe();
  // Each contested nonce went to one side. Our transactions that lost theirs failed and paid nothing.
  const auto confirmed =
      std::stoll(cluster.sql("SELECT count(*) FROM tx_view WHERE state = 'CONFIRMED' AND request_id IS NOT NULL"));
  EXPECT_EQ(cluster.balance(recipient()), confirmed);
  EXPECT_EQ(cluster.mined_count(signer(0)), confirmed + cluster.balance(recipient(7)));
  EXPECT_EQ(cluster.sql("SELECT count(*) FROM tx_view WHERE request_id IS NOT NULL AND state = 'FAILED_FINAL' AND "
                        "sub_state <> 'nonce_consumed_elsewhere'"),
            "0");
  EXPECT_EQ(cluster.sql("SELECT count(*) FROM tx_view WHERE request_id IS NOT NULL"), std::to_string(kEach));
  RecordProperty("confirmed", std::to_string(confirmed));
}

}  // namespace
}  // namespace fencepost::test

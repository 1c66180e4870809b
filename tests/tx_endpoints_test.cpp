// One chain with two endpoints: the preferred one fails, lags or gives wrong answers, and payments still succeed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/json/serialize.hpp>

#include "tests/support/eventually.hpp"
#include "tests/support/lying_endpoint.hpp"
#include "tests/support/tx_cluster.hpp"

namespace fencepost::test {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

class TxEndpoints : public testing::Test {
 protected:
  // The preferred endpoint is `first`; the other one is anvil itself.
  void start(const std::string& first) {
    cluster_.emplace(
        TxClusterOptions{.settings = {.resubmit_interval = 1s, .more_rpc_urls = {anvil_.url()}}, .rpc_urls = {first}});
    pay(1);
    ASSERT_TRUE(cluster_->all_confirmed()) << cluster_->describe();
    ASSERT_TRUE(endpoint(0).at("healthy").as_bool());
  }
  void pay(int count) {
    for (int i = 0; i < count; ++i) cluster_->create(0, transfer(signer(0), fmt::format("pay-{}", paid_++), 1));
  }
  // Expects that every payment was mined and signed only once.
  void expect_all_paid_once() {
    ASSERT_TRUE(cluster_->all_confirmed(120s)) << cluster_->describe();
    EXPECT_EQ(number("eth_getTransactionCount", {signer(0), "latest"}), paid_);
    EXPECT_EQ(number("eth_getBalance", {recipient(), "latest"}), paid_);
    EXPECT_EQ(cluster_->sql("SELECT count(*) FROM tx_attempt"), std::to_string(paid_));
  }
  std::int64_t number(const std::string& method, json::array params) const {
    const json::object request{{"jsonrpc", "2.0"}, {"id", 1}, {"method", method}, {"params", std::move(params)}};
    const auto answer = ask({"POST", anvil_.url(), "", json::serialize(request)}).json();
    return std::stoll(std::string(answer.at("result").as_string()), nullptr, 16);
  }
  json::object chain() const {
    return cluster_->get(0, "/api/v1/chains").json().at("items").as_array().at(0).as_object();
  }
  json::object endpoint(std::size_t index) const { return chain().at("endpoints").as_array().at(index).as_object(); }
  double up(std::uint16_t port) const {
    return cluster_->node(0).metric(fmt::format("rpc_endpoint_up{{endpoint=\"127.0.0.1:{}\"}}", port));
  }

  Anvil anvil_{{"--block-time", "1"}};
  mutable std::optional<TxCluster> cluster_;
  int paid_ = 0;
};

TEST_F(TxEndpoints, an_endpoint_that_fails_is_replaced_by_the_other_and_used_again_when_it_answers) {
  TcpProxy wire("127.0.0.1", anvil_.port());
  start(fmt::format("http://127.0.0.1:{}", wire.port()));
  wire.refuse();
  wire.cut();
  pay(5);
  expect_all_paid_once();
  // After each pause the endpoint counts as healthy until its next request fails.
  EXPECT_TRUE(eventually([&] { return !endpoint(0).at("healthy").as_bool(); }));
  EXPECT_GE(endpoint(0).at("consecutiveFailures").as_int64(), 1);
  EXPECT_TRUE(endpoint(1).at("healthy").as_bool());
  EXPECT_TRUE(chain().at("synced").as_bool());
  EXPECT_EQ(up(wire.port()), 0);
  EXPECT_EQ(up(anvil_.port()), 1);

  wire.pass();
  EXPECT_TRUE(eventually([&] { return up(wire.port()) == 1; }, 90s)) << cluster_->describe();
  pay(2);
  expect_all_paid_once();
}

TEST_F(TxEndpoints, an_endpoint_that_hides_receipts_does_not_keep_a_payment_open) {
  RpcRewriter first(anvil_.url());
  start(first.url());
  first.answer_null("eth_getTransactionReceipt");
  first.answer_null("eth_getBlockReceipts");
  pay(3);
  expect_all_paid_once();
  EXPECT_GT(first.changed("eth_getTransactionReceipt") + first.changed("eth_getBlockReceipts"), 0U)
      << "the node got no wrong answer";
  EXPECT_TRUE(eventually([&] { return cluster_->node(0).metric("tx_receipts_missing") == 0; }));
}

TEST_F(TxEndpoints, an_endpoint_that_lags_does_not_hold_up_the_head) {
  RpcRewriter first(anvil_.url());
  start(first.url());
  const auto head = number("eth_blockNumber", {});
  first.lag(head);
  pay(3);
  expect_all_paid_once();
  EXPECT_GT(chain().at("head").at("number").as_int64(), head);
}

TEST_F(TxEndpoints, an_endpoint_that_reports_an_error_for_a_sent_broadcast_causes_no_second_payment) {
  RpcRewriter first(anvil_.url());
  start(first.url());
  first.answer_error("eth_sendRawTransaction", -32603, "internal error");
  pay(3);
  expect_all_paid_once();
  EXPECT_GT(first.changed("eth_sendRawTransaction"), 0U) << "the node got no wrong answer";
}

// A node that has lost its peers: its head stands still, and it accepts broadcasts that no other node gets.
TEST_F(TxEndpoints, a_stalled_endpoint_that_answers_gets_neither_broadcasts_nor_questions_alone) {
  RpcRewriter first(anvil_.url());
  start(first.url());
  first.swallow_broadcasts();
  first.lag(number("eth_blockNumber", {}));
  pay(3);
  expect_all_paid_once();
  ASSERT_TRUE(eventually([&] { return endpoint(0).at("behind").as_bool(); })) << json::serialize(chain());
  EXPECT_FALSE(endpoint(0).at("healthy").as_bool());
  EXPECT_LT(endpoint(0).at("head").as_int64(), endpoint(1).at("head").as_int64());

  const auto swallowed = first.changed("eth_sendRawTransaction");
  pay(3);
  expect_all_paid_once();
  EXPECT_EQ(first.changed("eth_sendRawTransaction"), swallowed) << "an endpoint that is behind gets no broadcasts";

  first.lag(std::nullopt);
  EXPECT_TRUE(eventually([&] { return !endpoint(0).at("behind").as_bool(); }, 60s)) << json::serialize(chain());
}

TEST(tx_endpoints, a_cursor_is_not_seeded_from_an_endpoint_that_is_behind) {
  TxCluster cluster({.rewritten = true, .second_endpoint = true, .start = false});
  auto& first = cluster.chain_rewriter(0);
  first.lag(cluster.head());
  cluster.rpc("anvil_setNonce", {signer(0), "0x2a"});
  cluster.mine(3);
  cluster.node(0).start();
  const auto id = cluster.create(0, transfer(signer(0), "first", 1));
  ASSERT_TRUE(cluster.becomes(id, "nonce::text", "42")) << cluster.describe();
  EXPECT_TRUE(cluster.all_confirmed()) << cluster.describe();
}

TEST(tx_endpoints, broadcasts_go_only_to_the_relay_where_one_is_set) {
  TxCluster cluster({.settings = {.resubmit_interval = 1s}, .rewritten = true, .start = false});
  auto& first = cluster.chain_rewriter(0);
  first.swallow_broadcasts();
  RpcRewriter relay(cluster.anvil().url());
  relay.change("eth_sendRawTransaction", [](const json::object&, json::object reply) { return reply; });
  for (const auto* method : {"eth_getBlockByNumber", "eth_getTransactionCount", "eth_blockNumber", "eth_chainId"}) {
    relay.answer_error(method, -32601, "the method does not exist");
  }
  cluster.node(0).start({"FENCEPOST_CHAINS_0_SUBMIT_URLS=" + relay.url()});
  for (int i = 0; i < 3; ++i) cluster.create(0, transfer(signer(0), fmt::format("pay-{}", i), 1));
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  EXPECT_EQ(first.changed("eth_sendRawTransaction"), 0U);
  EXPECT_GE(relay.changed("eth_sendRawTransaction"), 3U);
  EXPECT_EQ(relay.changed("eth_getBlockByNumber") + relay.changed("eth_getTransactionCount"), 0U);
  const auto chain = cluster.get(0, "/api/v1/chains").json().at("items").as_array().at(0).as_object();
  EXPECT_EQ(chain.at("submitEndpoints").as_array().size(), 1U);
}

// Until the chain ids are checked, an endpoint of another chain looks like any other.
TEST(tx_endpoints, no_nonce_is_taken_from_an_endpoint_of_another_chain_while_the_first_one_hangs) {
  const Anvil other({"--chain-id", "1"});
  const json::object used{
      {"jsonrpc", "2.0"}, {"id", 1}, {"method", "anvil_setNonce"}, {"params", json::array{signer(0), "0x2a"}}};
  ASSERT_EQ(ask({"POST", other.url(), "", json::serialize(used)}).status, 200U);
  TxCluster cluster({.settings = {.more_rpc_urls = {other.url()}}, .rewritten = true, .start = false});
  auto& first = cluster.chain_rewriter(0);
  for (const auto* method : {"eth_getTransactionCount", "eth_getBlockByNumber", "eth_chainId"}) {
    first.answer_error(method, -32603, "internal error");
  }
  cluster.node(0).start();
  cluster.create(0, transfer(signer(0), "waits", 1));
  cluster.node(0).kill();

  // The signer has open work: the node takes its lease and asks for its nonce as soon as it may. The first endpoint
  // does not answer what its chain is, so it is asked nothing else.
  first.hold("eth_chainId");
  const auto asked = first.changed("eth_getTransactionCount");
  cluster.node(0).start();
  ASSERT_TRUE(cluster.sql_becomes("SELECT count(*) FROM signer_lease WHERE fencing_token > 1", "1"));
  ASSERT_TRUE(eventually([&] { return cluster.node(0).output().contains("did not return a signer's nonce"); }, 60s))
      << cluster.describe();
  EXPECT_EQ(first.changed("eth_getTransactionCount"), asked) << cluster.describe();
  EXPECT_EQ(cluster.sql("SELECT coalesce(max(next_nonce), -1) FROM signer_nonce_cursor"), "-1") << cluster.describe();

  first.release("eth_chainId");
  first.pass_all();
  EXPECT_TRUE(cluster.all_confirmed()) << cluster.describe();
  EXPECT_EQ(cluster.mined_count(signer(0)), 1);
}

TEST_F(TxEndpoints, the_list_of_chains_shows_the_head_and_the_health_of_endpoints) {
  TcpProxy wire("127.0.0.1", anvil_.port());
  cluster_.emplace(TxClusterOptions{.settings = {.confirmations = "3"},
                                    .rpc_urls = {fmt::format("http://127.0.0.1:{}", wire.port())}});
  ASSERT_TRUE(eventually([&] { return chain().at("synced").as_bool(); }));
  ASSERT_EQ(cluster_->get(0, "/api/v1/chains").json().at("items").as_array().size(), 1U);
  EXPECT_EQ(chain().at("chainId").as_int64(), 31337);
  EXPECT_EQ(chain().at("name").as_string(), "anvil");
  EXPECT_EQ(chain().at("confirmationsRequired").as_string(), "3");
  const auto head = number("eth_blockNumber", {});
  ASSERT_TRUE(eventually([&] { return chain().at("head").at("number").as_int64() > head; }));
  EXPECT_LE(chain().at("head").at("number").as_int64(), number("eth_blockNumber", {}));
  EXPECT_EQ(chain().at("endpoints").as_array().size(), 1U);
  EXPECT_EQ(endpoint(0).at("label").as_string(), fmt::format("127.0.0.1:{}", wire.port()));
  EXPECT_TRUE(endpoint(0).at("healthy").as_bool());
  EXPECT_GT(endpoint(0).at("latencyMs").as_double(), 0);
  EXPECT_TRUE(endpoint(0).at("coolingUntil").is_null());

  wire.refuse();
  wire.cut();
  json::object down;
  ASSERT_TRUE(eventually([&] {
    down = endpoint(0);
    return !down.at("healthy").as_bool();
  }));
  EXPECT_FALSE(down.at("wrongChain").as_bool());
  EXPECT_TRUE(down.at("coolingUntil").is_string());
  EXPECT_EQ(ask({.url = cluster_->node(0).url("/api/v1/chains")}).status, 401U);
}

// An endpoint that takes requests and does not answer fails only after its timeout.
TEST_F(TxEndpoints, a_chain_that_has_stopped_answering_is_neither_synced_nor_healthy) {
  TcpProxy wire("127.0.0.1", anvil_.port());
  cluster_.emplace(TxClusterOptions{.rpc_urls = {fmt::format("http://127.0.0.1:{}", wire.port())}});
  const auto answers = [&] { return chain().at("synced").as_bool() && endpoint(0).at("healthy").as_bool(); };
  ASSERT_TRUE(eventually(answers));
  wire.half_open();
  EXPECT_TRUE(eventually([&] { return !endpoint(0).at("healthy").as_bool(); }, 60s));
  EXPECT_TRUE(eventually([&] { return !chain().at("synced").as_bool(); }, 60s));
  wire.pass();
  EXPECT_TRUE(eventually(answers, 90s));
}

// The first endpoint serves a block of a fork and dies before it is asked for the receipt. The second one never had
// that block: the receipt cannot be had, and the reorg away from the block comes in the next update.
TEST(tx_endpoints, a_receipt_that_died_with_its_endpoint_holds_up_neither_the_reorg_nor_later_blocks) {
  TxCluster cluster({.settings = {.stale_receipt_timeout = 1h, .resubmit_interval = 1s},
                     .anvil = {"--no-mining"},
                     .rewritten = true,
                     .second_endpoint = true,
                     .second_rewritten = true});
  auto& first = cluster.chain_rewriter(0);
  auto& second = cluster.second_rewriter();
  const auto id = cluster.create(0, transfer(signer(0), "forked", 1));
  ASSERT_TRUE(cluster.becomes(id, "state", "TRACKING")) << cluster.describe();
  second.lag(cluster.head());
  for (const auto* method : {"eth_getTransactionReceipt", "eth_getBlockReceipts"}) {
    first.answer_error(method, -32603, "internal error");
  }
  cluster.mine(1);
  ASSERT_TRUE(eventually([&] { return first.changed("eth_getTransactionReceipt") > 0; })) << cluster.describe();
  first.fail();
  cluster.reorg(1);
  second.lag(std::nullopt);

  // Fewer blocks than the backlog of a subscriber: it is not dropped.
  for (int i = 0; i < 6 && cluster.column(id, "state") != "CONFIRMED"; ++i) {
    cluster.mine(1);
    const auto head = cluster.head();
    ASSERT_TRUE(eventually([&] { return cluster.node(0).metric("chain_head_block") == head; })) << cluster.describe();
    if (i == 0)
      ASSERT_TRUE(eventually([&] { return cluster.rpc("txpool_status").at("pending").as_string() == "0x1"; }));
  }
  EXPECT_TRUE(cluster.becomes(id, "state", "CONFIRMED", 20s)) << cluster.describe();
  EXPECT_EQ(cluster.mined_count(signer(0)), 1);
  EXPECT_EQ(cluster.node(0).metric("chain_updates_missed_total"), 0);
  EXPECT_TRUE(eventually([&] { return cluster.node(0).metric("tx_receipts_missing") == 0; })) << cluster.describe();
}

void expect_forgery_is_not_believed(TxCluster& cluster, const std::string& id) {
  auto& endpoint = cluster.chain_rewriter(0);
  ASSERT_TRUE(eventually([&] { return cluster.node(0).output().contains("does not list the transaction"); }))
      << cluster.describe();
  const auto asked = endpoint.changed("eth_getTransactionReceipt");
  ASSERT_TRUE(eventually([&] { return endpoint.changed("eth_getTransactionReceipt") >= asked + 3; }));
  EXPECT_EQ(cluster.column(id, "state"), "TRACKING") << cluster.describe();
  EXPECT_EQ(cluster.column(id, "receipt_block IS NULL"), "t");

  endpoint.pass_all();
  endpoint.swallow_broadcasts(false);
  ASSERT_TRUE(eventually([&] { return cluster.rpc("txpool_status").at("pending").as_string() == "0x1"; }));
  cluster.mine(4);
  EXPECT_TRUE(cluster.becomes(id, "state", "CONFIRMED")) << cluster.describe();
  EXPECT_EQ(cluster.balance(recipient()), 1);
}

const TxSettings kImpatient{.stale_receipt_timeout = 500ms, .resubmit_interval = 500ms};

TEST(tx_endpoints, a_forged_receipt_does_not_confirm_a_payment_that_was_not_made) {
  TxCluster cluster({.settings = kImpatient, .anvil = {"--no-mining"}, .rewritten = true});
  cluster.chain_rewriter(0).swallow_broadcasts();
  const auto id = cluster.create(0, transfer(signer(0), "forged", 1));
  ASSERT_TRUE(cluster.becomes(id, "state", "TRACKING")) << cluster.describe();
  cluster.mine(1);
  forge_receipts(cluster.chain_rewriter(0), cluster.rpc("eth_getBlockByNumber", {"latest", false}));
  cluster.mine(3);
  expect_forgery_is_not_believed(cluster, id);
}

// The node has not read the transactions of that block: another endpoint says what it lists.
TEST(tx_endpoints, a_forged_receipt_of_an_old_block_is_compared_with_another_endpoint) {
  TxCluster cluster(
      {.settings = kImpatient, .anvil = {"--no-mining"}, .rewritten = true, .second_endpoint = true, .start = false});
  cluster.mine(400);
  cluster.node(0).start();
  const auto id = cluster.create(0, transfer(signer(0), "forged", 1));
  ASSERT_TRUE(cluster.becomes(id, "state", "TRACKING")) << cluster.describe();
  const auto hash = cluster.column(id, "tx_hash");
  cluster.chain_rewriter(0).change("eth_getBlockByNumber", [hash](const json::object& call, json::object reply) {
    auto* block = reply["result"].if_object();
    if (block != nullptr && call.at("params").at(0) == "0x1") (*block)["transactions"] = json::array{hash};
    return reply;
  });
  forge_receipts(cluster.chain_rewriter(0), cluster.rpc("eth_getBlockByNumber", {"0x1", false}));
  expect_forgery_is_not_believed(cluster, id);
}

// A retry waits up to a minute. When the outage is over, it does not.
TEST(tx_endpoints, transactions_are_sent_within_seconds_after_an_outage) {
  TxCluster cluster({.proxied = true});
  cluster.create(0, transfer(signer(0), "before", 1));
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  cluster.chain_proxy(0).refuse();
  cluster.chain_proxy(0).cut();
  cluster.create(0, transfer(signer(0), "during", 1));
  // After five failures the next retry is 16 s away.
  ASSERT_TRUE(cluster.sql_becomes("SELECT max(retry_count) FROM tx_open", "5", 90s)) << cluster.describe();
  cluster.chain_proxy(0).pass();
  cluster.create(0, transfer(signer(0), "after", 1));
  EXPECT_TRUE(cluster.sql_becomes("SELECT count(*) FROM tx_open WHERE state = 'ALLOCATED'", "0", 8s))
      << cluster.describe();
  EXPECT_TRUE(cluster.all_confirmed()) << cluster.describe();
  EXPECT_EQ(cluster.mined_count(signer(0)), 3);
}

TEST(tx_endpoints, a_leader_without_endpoints_hands_its_signers_to_a_node_that_has_some) {
  TxCluster cluster({.nodes = 2, .proxied = true});
  cluster.create(0, transfer(signer(0), "before", 1));
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  ASSERT_EQ(cluster.leader_of(signer(0)), 0U);
  cluster.chain_proxy(0).refuse();
  cluster.chain_proxy(0).cut();
  cluster.create(0, transfer(signer(0), "during", 1));
  ASSERT_TRUE(eventually([&] { return cluster.leader_of(signer(0)) == 1U; }, 20s)) << cluster.describe();
  EXPECT_TRUE(cluster.all_confirmed()) << cluster.describe();

  // A signer that no node leads: the node without endpoints passes the request on.
  cluster.create(0, transfer(signer(1), "other-signer", 1));
  EXPECT_EQ(cluster.leader_of(signer(1)), 1U) << cluster.describe();
  EXPECT_TRUE(cluster.all_confirmed()) << cluster.describe();

  // The endpoints are back: the leases stay where they are.
  cluster.chain_proxy(0).pass();
  ASSERT_TRUE(eventually([&] { return cluster.node(0).output().contains("the chain's endpoints answer again"); }, 60s))
      << cluster.describe();
  cluster.create(0, transfer(signer(0), "after", 1));
  EXPECT_TRUE(cluster.all_confirmed()) << cluster.describe();
  EXPECT_EQ(cluster.leader_of(signer(0)), 1U);
  EXPECT_EQ(cluster.sql("SELECT max(fencing_token) FROM signer_lease"), "2");
  cluster.create(0, transfer(signer(2), "leads-again", 1));
  EXPECT_EQ(cluster.leader_of(signer(2)), 0U) << cluster.describe();
  EXPECT_TRUE(cluster.all_confirmed()) << cluster.describe();
}

// No node has endpoints: each gives its leases up once, and one of them takes them again when a request comes.
TEST(tx_endpoints, requests_are_accepted_while_no_node_reaches_the_chain) {
  TxCluster cluster({.nodes = 2, .proxied = true});
  cluster.create(0, transfer(signer(0), "before", 1));
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  for (std::size_t i = 0; i < 2; ++i) {
    cluster.chain_proxy(i).refuse();
    cluster.chain_proxy(i).cut();
  }
  for (std::size_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(eventually([&] { return cluster.node(i).output().contains("no endpoint of the chain answers"); }, 30s))
        << cluster.describe();
  }
  cluster.create(0, transfer(signer(0), "during", 1));
  const auto token = cluster.sql("SELECT max(fencing_token) FROM signer_lease");
  ASSERT_TRUE(cluster.sql_becomes("SELECT max(retry_count) >= 3 FROM tx_open", "t", 60s)) << cluster.describe();
  EXPECT_EQ(cluster.sql("SELECT max(fencing_token) FROM signer_lease"), token) << "the leases come to rest";
  for (std::size_t i = 0; i < 2; ++i) cluster.chain_proxy(i).pass();
  EXPECT_TRUE(cluster.all_confirmed()) << cluster.describe();
}

}  // namespace
}  // namespace fencepost::test

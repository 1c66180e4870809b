// One chain with two endpoints: the preferred one fails, lags or gives wrong answers, and payments still succeed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/json/serialize.hpp>

#include "tests/support/eventually.hpp"
#include "tests/support/rpc_rewriter.hpp"
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
  // refuses that at once and does not answer what its chain is.
  first.hold("eth_chainId");
  cluster.node(0).start();
  ASSERT_TRUE(cluster.sql_becomes("SELECT count(*) FROM signer_lease WHERE fencing_token > 1", "1"));
  const auto asked = first.changed("eth_getTransactionCount");
  ASSERT_TRUE(eventually([&] { return first.changed("eth_getTransactionCount") > asked; }, 60s)) << cluster.describe();
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

}  // namespace
}  // namespace fencepost::test

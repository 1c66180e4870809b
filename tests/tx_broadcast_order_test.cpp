// Signing does not wait for broadcasts: the next batch is signed and claimed while the last one is on its way. A
// signer's transactions still go out in nonce order, each once.
#include <map>
#include <mutex>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/serialize.hpp>

#include "tests/support/eventually.hpp"
#include "tests/support/rpc_rewriter.hpp"
#include "tests/support/tcp_proxy.hpp"
#include "tests/support/tx_cluster.hpp"

namespace fencepost::test {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;
using testing::ElementsAre;
using Hashes = std::vector<std::string>;

constexpr auto kSend = "eth_sendRawTransaction";

class TxBroadcastOrder : public testing::Test {
 protected:
  // The node reaches anvil over a wire and an endpoint that records each broadcast.
  void start() {
    endpoint_.change(kSend, [this](const json::object& call, json::object reply) { return record(call, reply); });
    cluster_.emplace(TxClusterOptions{
        .settings = {.max_in_flight = 0, .resubmit_interval = 3s, .lease_duration = 20s, .renew_interval = 1s},
        .rpc_urls = {fmt::format("http://127.0.0.1:{}", wire_.port())}});
    first_ = send(1);  // takes the lease, and lets the node know the signer's next nonce
    ASSERT_TRUE(cluster_->sql_becomes("SELECT state FROM tx_view", "TRACKING")) << cluster_->describe();
  }
  json::object record(const json::object& call, json::object reply) {
    const std::lock_guard lock(mutex_);
    seen_.emplace_back(call.at("params").at(0).as_string());
    if (refusals_ == 0) return reply;
    --refusals_;
    reply.erase("result");
    reply["error"] = {{"code", -32000}, {"message", "insufficient funds for gas * price + value"}};
    return reply;
  }
  void refuse_next(int broadcasts) {
    const std::lock_guard lock(mutex_);
    refusals_ = broadcasts;
  }
  // eth_sendTransaction; returns the hash, or the error.
  std::string send(std::int64_t value) {
    const json::object call{
        {"jsonrpc", "2.0"},
        {"id", 1},
        {"method", "eth_sendTransaction"},
        {"params",
         {{{"from", signer(0)}, {"to", recipient()}, {"value", fmt::format("0x{:x}", value)}, {"gas", "0x5208"}}}}};
    const auto got = ask({"POST", cluster_->node(0).url("/rpc/31337"), cluster_->key(), json::serialize(call)}).json();
    const auto* hash = got.as_object().if_contains("result");
    return hash != nullptr ? std::string(hash->as_string()) : json::serialize(got);
  }
  // A transaction whose broadcast hangs, and two that are claimed behind it.
  void claim_three_while_the_first_hangs() {
    endpoint_.hold(kSend);
    for (int i = 0; i < 3; ++i) hashes_.push_back(send(1));
    for (const auto& hash : hashes_) ASSERT_EQ(hash.size(), 66U) << hash << cluster_->describe();
    ASSERT_EQ(cluster_->sql("SELECT count(*) FROM tx_view WHERE state = 'ALLOCATED' AND tx_hash IS NOT NULL"), "3");
  }
  // The hashes that the endpoint saw, in order, without the first transaction.
  Hashes broadcasts() {
    Hashes out;
    const std::lock_guard lock(mutex_);
    for (const auto& raw : seen_) {
      const auto hash =
          cluster_->sql("SELECT tx_hash FROM tx_attempt WHERE '0x' || encode(raw, 'hex') = '" + raw + "'");
      if (hash != first_) out.push_back(hash);
    }
    return out;
  }
  void expect_paid_once(int payments) {
    ASSERT_TRUE(cluster_->all_confirmed()) << cluster_->describe();
    EXPECT_EQ(cluster_->sql("SELECT count(*) FROM tx_attempt"), std::to_string(payments)) << "a nonce was signed twice";
    const auto balance = chain("eth_getBalance", {recipient(), "latest"});
    EXPECT_EQ(std::stoll(std::string(balance.as_string()), nullptr, 16), payments);
  }
  // Asks anvil itself.
  json::value chain(const std::string& method, json::array params) {
    const json::object request{{"jsonrpc", "2.0"}, {"id", 1}, {"method", method}, {"params", std::move(params)}};
    return ask({"POST", anvil_.url(), "", json::serialize(request)}).json().at("result");
  }

  Anvil anvil_{{"--block-time", "1"}};
  std::mutex mutex_;  // guards the two below
  std::vector<std::string> seen_;
  int refusals_ = 0;
  RpcRewriter endpoint_{anvil_.url()};
  TcpProxy wire_{"127.0.0.1", static_cast<std::uint16_t>(std::stoi(endpoint_.url().substr(17)))};
  std::optional<TxCluster> cluster_;
  std::string first_;
  Hashes hashes_;
};

TEST_F(TxBroadcastOrder, a_send_is_answered_while_the_broadcast_before_it_hangs) {
  start();
  claim_three_while_the_first_hangs();
  endpoint_.release(kSend);
  expect_paid_once(4);
  EXPECT_EQ(broadcasts(), hashes_) << "in order, and each once";
  EXPECT_EQ(cluster_->sql("SELECT max(claims) FROM tx_attempt"), "1");
}

TEST_F(TxBroadcastOrder, each_signer_is_broadcast_in_nonce_order_at_a_slow_endpoint) {
  start();
  wire_.delay(20ms, 20ms);
  constexpr int kSigners = 4, kEach = 30;
  std::vector<Ask> asks;
  for (int i = 0; i < kEach; ++i) {
    for (int s = 0; s < kSigners; ++s) {
      asks.push_back(cluster_->create_ask(0, transfer(signer(s), fmt::format("{}-{}", s, i), 1)));
    }
  }
  for (const auto& answer : ask_all(std::move(asks))) EXPECT_EQ(answer.status, 202U) << answer.body;
  expect_paid_once(1 + kSigners * kEach);
  std::map<std::string, std::vector<int>> nonces;
  for (const auto& hash : broadcasts()) {
    nonces[cluster_->sql("SELECT signer FROM tx_view WHERE tx_hash = '" + hash + "'")].push_back(
        std::stoi(cluster_->sql("SELECT nonce FROM tx_view WHERE tx_hash = '" + hash + "'")));
  }
  EXPECT_EQ(nonces.size(), kSigners);
  for (const auto& [who, order] : nonces) {
    std::vector<int> wanted(kEach);
    std::iota(wanted.begin(), wanted.end(), who == signer(0) ? 1 : 0);
    EXPECT_EQ(order, wanted) << who;
  }
}

TEST_F(TxBroadcastOrder, behind_a_refused_transaction_nothing_is_sent_until_its_retry) {
  start();
  chain("evm_setIntervalMining",
        {0});  // anvil gets the refused transaction, too, and must not mine it before the retry
  claim_three_while_the_first_hangs();
  refuse_next(1);
  endpoint_.release(kSend);
  ASSERT_TRUE(eventually([&] { return broadcasts().size() >= 4; })) << cluster_->describe();
  EXPECT_THAT(broadcasts(), ElementsAre(hashes_[0], hashes_[0], hashes_[1], hashes_[2]));
  chain("evm_setIntervalMining", {1});
  expect_paid_once(4);
  EXPECT_EQ(cluster_->sql("SELECT sum(retry_count) FROM tx_view WHERE tx_hash <> '" + hashes_[0] + "'"), "0")
      << "a transaction that was held back has not failed";
}

// The connection breaks during the broadcast: whether the first transaction arrived is not known.
TEST_F(TxBroadcastOrder, an_endpoint_that_goes_down_with_a_batch_in_each_stage_delays_them_only) {
  start();
  claim_three_while_the_first_hangs();
  wire_.refuse();
  wire_.cut();
  ASSERT_TRUE(eventually([&] {
    return cluster_->sql("SELECT count(*) FROM tx_open WHERE sub_state IS NOT NULL AND tx_hash = '" + hashes_[0] +
                         "'") == "1";
  })) << cluster_->describe();
  endpoint_.release(kSend);
  wire_.pass();
  expect_paid_once(4);
  EXPECT_EQ(cluster_->sql("SELECT string_agg(tx_hash, ' ' ORDER BY nonce) FROM tx_view WHERE nonce > 0"),
            fmt::format("{}", fmt::join(hashes_, " ")))
      << "the answered hashes are the mined ones";
}

TEST_F(TxBroadcastOrder, a_node_that_stops_with_a_batch_in_each_stage_leaves_the_claims_to_the_next) {
  start();
  claim_three_while_the_first_hangs();
  EXPECT_EQ(cluster_->node(0).stop().code, 0) << cluster_->describe();
  EXPECT_EQ(cluster_->sql("SELECT count(*) FROM tx_view WHERE state = 'ALLOCATED' AND tx_hash IS NOT NULL"), "3");
  endpoint_.release(kSend);
  cluster_->node(0).start();
  expect_paid_once(4);
  EXPECT_EQ(cluster_->sql("SELECT string_agg(tx_hash, ' ' ORDER BY nonce) FROM tx_view WHERE nonce > 0"),
            fmt::format("{}", fmt::join(hashes_, " ")));
}

}  // namespace
}  // namespace fencepost::test

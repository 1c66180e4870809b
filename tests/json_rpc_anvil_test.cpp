// The JSON-RPC client against a real chain node, also when that node is cut off or killed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/json/array.hpp>

#include "evm/json_rpc.hpp"
#include "runtime/runtime.hpp"
#include "tests/support/anvil.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/tcp_proxy.hpp"

namespace fencepost::evm {
namespace {

constexpr std::uint64_t kAnvilChain = 31337;
constexpr auto kDevAccount = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";

class JsonRpcAnvilTest : public ::testing::Test {
 protected:
  void connect(std::vector<std::string> urls, JsonRpcOptions options = {}) {
    rpc_.emplace(http_, std::move(urls), options, clock_, random_, metrics_);
  }
  template <class T>
  T run(awaitable<T> task) {
    context_.restart();
    auto future = asio::co_spawn(context_, std::move(task), asio::use_future);
    context_.run();
    return future.get();
  }
  Result<RpcValue> call(std::string method, boost::json::array params = {}, RpcCallOptions options = {}) {
    return run(rpc_->call({std::move(method), std::move(params)}, options));
  }

  asio::io_context context_{1};
  http::Client http_{context_.get_executor(), {}};
  SystemClock clock_;
  SeededRandom random_{1};
  Metrics metrics_;
  std::optional<JsonRpcClient> rpc_;
};

TEST_F(JsonRpcAnvilTest, a_real_node_answers_calls_and_batches) {
  const test::Anvil chain;
  connect({chain.url()}, {.max_batch = 64});
  EXPECT_TRUE(run(rpc_->check_chain_id(kAnvilChain)));
  EXPECT_EQ(run(rpc_->check_chain_id(1)).error().code, "wrong_chain");
  ASSERT_TRUE(run(rpc_->check_chain_id(kAnvilChain)));

  ASSERT_TRUE(call("anvil_mine", {"0xc8"}));
  std::vector<RpcCall> calls;
  for (int i = 0; i <= 200; ++i) calls.push_back({"eth_getBlockByNumber", {fmt::format("0x{:x}", i), true}});
  const auto blocks = run(rpc_->batch(std::move(calls)));
  ASSERT_EQ(blocks.size(), 201U);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    ASSERT_TRUE(blocks[i]) << blocks[i].error().to_string();
    EXPECT_EQ(std::string_view(blocks[i]->as_json()->at("number").as_string()), fmt::format("0x{:x}", i));
  }
  EXPECT_TRUE(call("eth_getBlockByNumber", {"0xffffff", false})->is_null());
}

TEST_F(JsonRpcAnvilTest, an_error_answer_of_a_real_node_does_not_count_as_a_failure_of_the_endpoint) {
  const test::Anvil chain;
  connect({chain.url(), chain.url()});
  const auto garbage = call("eth_sendRawTransaction", {"0x00"});
  ASSERT_FALSE(garbage);
  EXPECT_EQ(garbage.error().code, "rpc_error");
  EXPECT_TRUE(rpc_code(garbage.error()));
  EXPECT_EQ(reach_of(garbage.error()), Reach::kAnswered);
  const auto unknown = call("eth_noSuchMethod");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(rpc_code(unknown.error()), -32601);
  EXPECT_EQ(rpc_->endpoint_status(0).consecutive_failures, 0U);
}

TEST_F(JsonRpcAnvilTest, a_receipt_can_be_queried_at_the_endpoint_that_accepted_the_transaction) {
  const test::Anvil first;
  const test::Anvil second;
  connect({first.url(), second.url()});
  const boost::json::object transfer{{"from", kDevAccount}, {"to", kDevAccount}, {"value", "0x1"}};
  const auto hash = call("eth_sendTransaction", {transfer});
  ASSERT_TRUE(hash) << hash.error().to_string();
  const auto text = hash->as_string();
  ASSERT_TRUE(text);
  const auto receipt_from = [&](std::size_t endpoint) {
    RpcCallOptions pinned;
    pinned.endpoint = endpoint;
    return call("eth_getTransactionReceipt", {*text}, pinned);
  };
  // Anvil mines each transaction at once, but answers before the block is mined.
  ASSERT_TRUE(test::eventually([&] { return !receipt_from(hash->endpoint())->is_null(); }));
  EXPECT_EQ(receipt_from(hash->endpoint())->as_json()->at("status"), "0x1");
  EXPECT_TRUE(receipt_from(1 - hash->endpoint())->is_null());
}

TEST_F(JsonRpcAnvilTest, a_killed_node_is_replaced_by_the_next) {
  test::Anvil first;
  const test::Anvil second;
  connect({first.url(), second.url()});
  EXPECT_EQ(call("eth_blockNumber")->endpoint(), 0U);
  first.kill();
  const auto after = call("eth_blockNumber");
  ASSERT_TRUE(after) << after.error().to_string();
  EXPECT_EQ(after->endpoint(), 1U);
}

TEST_F(JsonRpcAnvilTest, a_call_over_a_half_open_connection_times_out_with_an_unknown_outcome) {
  const test::Anvil chain;
  test::TcpProxy proxy("127.0.0.1", chain.port());
  connect({fmt::format("http://127.0.0.1:{}", proxy.port())}, {.timeout = std::chrono::milliseconds(200)});
  ASSERT_TRUE(call("eth_blockNumber"));
  proxy.half_open(test::Direction::kToClient);
  const auto lost = call("anvil_mine", {"0x1"});
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, "rpc_unavailable");
  EXPECT_EQ(reach_of(lost.error()), Reach::kUnknown);
  proxy.pass();
  const auto height = call("eth_blockNumber");
  ASSERT_TRUE(height) << height.error().to_string();
}

}  // namespace
}  // namespace fencepost::evm

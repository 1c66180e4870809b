#include "tests/support/stub_chain_rpc.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

#include "base/hex.hpp"
#include "evm/keys/private_key.hpp"
#include "evm/revert_reason.hpp"

namespace fencepost::test {
namespace {

namespace json = boost::json;

struct StubChainRpcTest : ::testing::Test {
  StubChain chain;
  StubChainRpc rpc{chain};
  const evm::PrivateKey alice =
      evm::PrivateKey::from_hex(Secret("0000000000000000000000000000000000000000000000000000000000000001")).value();
  const std::string address = to_hex0x(alice.address());

  json::value ask(std::string_view body) { return json::parse(rpc.answer(body)); }
  json::value call(std::string_view method, std::string_view params = "[]") {
    return ask(fmt::format(R"({{"jsonrpc":"2.0","id":7,"method":"{}","params":{}}})", method, params));
  }
  json::value result(std::string_view method, std::string_view params = "[]") {
    const auto answer = call(method, params);
    EXPECT_EQ(answer.at("id"), 7);
    EXPECT_TRUE(answer.as_object().contains("result")) << answer;
    return answer.as_object().contains("result") ? answer.at("result") : nullptr;
  }
  evm::SignedTransaction sign(std::uint64_t nonce, Bytes data = {}, bool legacy = false) {
    evm::Transaction tx;
    tx.chain_id = 31337;
    tx.nonce = nonce;
    tx.gas = 100'000;
    tx.to = evm::Address{};
    tx.value = 5;
    tx.data = std::move(data);
    tx.fees = evm::DynamicFees{4'000'000'000, 1'000'000'000};
    if (legacy) tx.fees = evm::LegacyFees{3'000'000'000};
    return evm::sign_transaction(alice, tx);
  }
  static std::string quoted(std::span<const std::uint8_t> bytes) { return fmt::format(R"(["{}"])", to_hex0x(bytes)); }
};

TEST_F(StubChainRpcTest, takes_a_transaction_and_shows_it_waiting_then_mined) {
  const auto tx = sign(0);
  const auto hash = to_hex0x(tx.hash);
  EXPECT_EQ(result("eth_sendRawTransaction", quoted(tx.raw)), json::value(hash));
  EXPECT_TRUE(result("eth_getTransactionReceipt", quoted(tx.hash)).is_null());
  const auto waiting = result("eth_getTransactionByHash", quoted(tx.hash));
  EXPECT_TRUE(waiting.at("blockHash").is_null());
  EXPECT_EQ(waiting.at("from"), json::value(address));
  EXPECT_EQ(waiting.at("maxFeePerGas"), "0xee6b2800");

  const auto block = chain.mine();
  const auto receipt = result("eth_getTransactionReceipt", quoted(tx.hash));
  EXPECT_EQ(receipt.at("status"), "0x1");
  EXPECT_EQ(receipt.at("blockHash"), json::value(to_hex0x(block->hash)));
  EXPECT_EQ(receipt.at("blockNumber"), "0x1");
  EXPECT_EQ(receipt.at("transactionIndex"), "0x0");
  EXPECT_EQ(receipt.at("effectiveGasPrice"), "0x77359400");
  EXPECT_TRUE(receipt.at("contractAddress").is_null());
  EXPECT_EQ(result("eth_getTransactionByHash", quoted(tx.hash)).at("blockNumber"), "0x1");
  EXPECT_EQ(result("eth_getBlockReceipts", quoted(block->hash)).as_array().size(), 1U);
  EXPECT_EQ(result("eth_getBlockReceipts", R"(["0x1"])").at(0), receipt);
}

TEST_F(StubChainRpcTest, shows_blocks_by_number_tag_and_hash) {
  const auto tx = sign(0, {}, true);
  ASSERT_TRUE(chain.send(tx.raw));
  const auto mined = chain.mine();
  chain.mine(4);
  const auto block = result("eth_getBlockByNumber", R"(["0x1",false])");
  EXPECT_EQ(block.at("hash"), json::value(to_hex0x(mined->hash)));
  EXPECT_EQ(block.at("parentHash"), json::value(to_hex0x(mined->parent)));
  EXPECT_EQ(block.at("transactions"), json::value({to_hex0x(tx.hash)}));
  EXPECT_EQ(result("eth_getBlockByHash", fmt::format(R"(["{}",false])", to_hex0x(mined->hash))), block);
  EXPECT_EQ(result("eth_getBlockByNumber", R"(["latest",false])").at("number"), "0x5");
  EXPECT_EQ(result("eth_getBlockByNumber", R"(["safe",false])").at("number"), "0x3");
  EXPECT_EQ(result("eth_getBlockByNumber", R"(["finalized",false])").at("number"), "0x1");
  EXPECT_EQ(result("eth_blockNumber"), "0x5");
  EXPECT_TRUE(result("eth_getBlockByNumber", R"(["0x6",false])").is_null());
  EXPECT_EQ(result("eth_getTransactionByHash", quoted(tx.hash)).at("type"), "0x0");
}

TEST_F(StubChainRpcTest, counts_transactions_at_a_block_now_and_with_the_pool) {
  ASSERT_TRUE(chain.send(sign(0).raw));
  chain.mine();
  ASSERT_TRUE(chain.send(sign(1).raw));
  const auto count = [&](std::string_view at) {
    return result("eth_getTransactionCount", fmt::format(R"(["{}","{}"])", address, at));
  };
  EXPECT_EQ(count("0x0"), "0x0");
  EXPECT_EQ(count("latest"), "0x1");
  EXPECT_EQ(count("pending"), "0x2");
  EXPECT_EQ(call("eth_getTransactionCount", fmt::format(R"(["{}","0x9"])", address)).at("error").at("message"),
            "header not found");
}

TEST_F(StubChainRpcTest, answers_a_batch_in_order_and_fails_each_alone) {
  const auto answers = ask(R"([{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]},)"
                           R"({"jsonrpc":"2.0","id":"two","method":"eth_nonsense","params":[]},)"
                           R"({"jsonrpc":"2.0","id":3,"method":"eth_getBlockByHash","params":["0x12"]},)"
                           R"(5,)"
                           R"({"jsonrpc":"2.0","id":4,"method":"eth_syncing"}])");
  ASSERT_EQ(answers.as_array().size(), 5U);
  EXPECT_EQ(answers.at(0).at("result"), "0x7a69");
  EXPECT_EQ(answers.at(1).at("id"), "two");
  EXPECT_EQ(answers.at(1).at("error").at("code"), -32601);
  EXPECT_EQ(answers.at(2).at("error").at("code"), -32602);
  EXPECT_EQ(answers.at(3).at("error").at("code"), -32600);
  EXPECT_EQ(answers.at(4).at("result"), false);
}

TEST_F(StubChainRpcTest, says_why_it_refuses_a_transaction) {
  const auto tx = sign(0);
  ASSERT_TRUE(chain.send(tx.raw));
  const auto again = call("eth_sendRawTransaction", quoted(tx.raw)).at("error");
  EXPECT_EQ(again.at("code"), -32000);
  EXPECT_EQ(again.at("message"), "already known");
}

TEST_F(StubChainRpcTest, a_call_that_would_revert_says_so_with_data) {
  const auto error =
      call("eth_estimateGas", R"([{"to":"0x0000000000000000000000000000000000000000","data":"0xfe"}])").at("error");
  EXPECT_EQ(error.at("code"), 3);
  EXPECT_EQ(evm::revert_reason(from_hex0x(error.at("data").as_string()).value()), "the stub says no");
  EXPECT_TRUE(call("eth_call", R"([{"data":"0xfe00"},"latest"])").as_object().contains("error"));
  EXPECT_EQ(result("eth_call", R"([{"data":"0x01"},"latest"])"), "0x");
  EXPECT_EQ(result("eth_estimateGas", R"([{"to":"0x0000000000000000000000000000000000000000"}])"), "0x5208");
}

TEST_F(StubChainRpcTest, answers_fee_queries) {
  chain.mine(2);
  chain.set_base_fee(7);
  const auto history = result("eth_feeHistory", R"(["0x2","latest",[25]])");
  EXPECT_EQ(history.at("oldestBlock"), "0x1");
  EXPECT_EQ(history.at("baseFeePerGas"), json::value({"0x3b9aca00", "0x3b9aca00", "0x7"}));
  EXPECT_EQ(history.at("reward").as_array().size(), 2U);
  EXPECT_EQ(result("eth_gasPrice"), "0x3b9aca07");
  EXPECT_EQ(result("eth_getBalance", fmt::format(R"(["{}","latest"])", address)), "0xd3c21bcecceda1000000");
}

TEST_F(StubChainRpcTest, counts_calls_by_method) {
  call("eth_chainId");
  ask(R"([{"id":1,"method":"eth_chainId"},{"id":2,"method":"eth_nonsense"}])");
  EXPECT_EQ(rpc.calls("eth_chainId"), 2U);
  EXPECT_EQ(rpc.calls("eth_call"), 0U);
  EXPECT_EQ(rpc.calls(), 3U);
  EXPECT_EQ(rpc.calls_by_method().size(), 2U);
  rpc.reset_calls();
  EXPECT_EQ(rpc.calls(), 0U);
}

TEST_F(StubChainRpcTest, what_is_no_json_or_no_call_gets_an_error) {
  EXPECT_EQ(ask("{").at("error").at("code"), -32700);
  EXPECT_EQ(ask("[]").at("error").at("code"), -32600);
  EXPECT_EQ(ask(R"({"id":1})").at("error").at("code"), -32600);
}

}  // namespace
}  // namespace fencepost::test

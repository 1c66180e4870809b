#include "tests/support/stub_chain_server.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/json.hpp"
#include "base/random.hpp"
#include "evm/evm_connector.hpp"
#include "evm/keys/private_key.hpp"
#include "http/client.hpp"
#include "tests/support/eventually.hpp"

namespace fencepost::test {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kChainId = R"({"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]})";

awaitable<Result<http::ClientResponse>> post(std::string url, std::chrono::milliseconds timeout) {
  http::Client client(co_await this_executor(), {});
  http::ClientRequest request{.method = "POST", .url = std::move(url), .body = std::string(kChainId)};
  request.timeout = timeout;
  co_return co_await client.send(std::move(request));
}

Result<http::ClientResponse> ask(const StubChainServer& server, std::chrono::milliseconds timeout = 20s) {
  return run_blocking(post(server.url(), timeout));
}

TEST(stub_chain_server, answers) {
  const StubChainServer server;
  const auto answer = ask(server);
  ASSERT_TRUE(answer) << answer.error().to_string();
  EXPECT_EQ(answer->body, R"({"jsonrpc":"2.0","id":1,"result":"0x7a69"})");
}

TEST(stub_chain_server, mines_at_its_interval_until_it_is_switched_off) {
  StubChainServer server({.interval = 5ms});
  EXPECT_TRUE(eventually([&] { return server.chain().head()->number >= 3; }));
  server.set_interval(std::nullopt);
  server.chain().mine();
  server.set_interval(1ms);
  const auto head = server.chain().head()->number;
  EXPECT_TRUE(eventually([&] { return server.chain().head()->number > head; }));
}

TEST(stub_chain_server, mines_only_on_request_without_an_interval) {
  StubChainServer server;
  ASSERT_TRUE(ask(server));
  EXPECT_EQ(server.chain().head()->number, 0);
  server.chain().mine();
  EXPECT_EQ(server.chain().head()->number, 1);
}

TEST(stub_chain_server, refuses_connections_and_later_accepts_on_the_same_port) {
  StubChainServer server;
  ASSERT_TRUE(ask(server));
  server.set_trouble(Trouble::kRefuses);
  const auto refused = ask(server);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, "connect_failed");
  server.set_trouble(Trouble::kRefuses);  // a second time changes nothing
  server.set_trouble(Trouble::kNone);
  EXPECT_TRUE(ask(server));
}

TEST(stub_chain_server, has_troubles_of_every_kind) {
  StubChainServer server;
  server.set_trouble(Trouble::kHttp500);
  EXPECT_EQ(ask(server).value().status, 500U);
  server.set_trouble(Trouble::kGarbage);
  EXPECT_FALSE(parse_json(ask(server).value().body, 1'000));
  server.set_trouble(Trouble::kErrorInside200);
  const auto answer = ask(server).value();
  EXPECT_EQ(answer.status, 200U);
  EXPECT_EQ(parse_json(answer.body, 1'000).value().at("error").at("code"), -32603);
  server.set_trouble(Trouble::kNone);
  EXPECT_EQ(server.rpc().calls(), 0U);  // no call was answered so far
  server.set_delay(60s);
  EXPECT_EQ(ask(server, 50ms).error().code, "timeout");
  server.set_delay(0ms);
  EXPECT_TRUE(ask(server));
}

// The calls that a node makes to a chain, through the node's own connector.
awaitable<> live_a_life(StubChainServer& server, Executor loop) {
  const auto key =
      evm::PrivateKey::from_hex(Secret("0000000000000000000000000000000000000000000000000000000000000001")).value();
  std::vector<std::string> raw, hashes;
  for (std::uint64_t nonce = 0; nonce < 20; ++nonce) {
    evm::Transaction tx;
    tx.chain_id = 31337;
    tx.nonce = nonce;
    tx.gas = 21'000;
    tx.to = evm::Address{};
    tx.fees = evm::DynamicFees{4'000'000'000, 1'000'000'000};
    const auto made = evm::sign_transaction(key, tx);
    raw.push_back(to_hex0x(made.raw));
    hashes.push_back(to_hex0x(made.hash));
  }
  http::Client http(loop, {});
  SystemClock clock;
  SystemRandom random;
  Metrics metrics;
  evm::JsonRpcClient client(http, {server.url()}, {}, clock, random, metrics);
  evm::EvmConnector connector(client, 31337);
  for (const auto& sent : co_await connector.send(raw)) EXPECT_EQ(sent.outcome, evm::SubmitClass::kAccepted);
  for (const auto& sent : co_await connector.send(raw)) EXPECT_EQ(sent.outcome, evm::SubmitClass::kKnownTransaction);
  server.chain().mine();
  for (const auto& sent : co_await connector.send(raw)) EXPECT_EQ(sent.outcome, evm::SubmitClass::kNonceTooLow);
  const auto head = co_await connector.block(evm::BlockTag::kLatest, std::nullopt);
  EXPECT_TRUE(head);
  if (!head) co_return;
  EXPECT_EQ(head->transactions, hashes);
  const auto receipts = co_await connector.receipts_in_block(head->header.hash, hashes, 0);
  EXPECT_TRUE(receipts && receipts->size() == hashes.size());
  const auto nonce = co_await connector.nonce_at(to_hex0x(key.address()), 0, std::nullopt);
  EXPECT_EQ(nonce.value_or(-1), 0);
  const auto fees = co_await connector.fee_history(4, 25, std::nullopt);
  EXPECT_TRUE(fees && fees->next_base_fee == 1'000'000'000);
  evm::CallRequest reverting{.from = to_hex0x(key.address()), .data = "0xfe"};
  const auto estimate = co_await connector.estimate_gas(reverting);
  EXPECT_EQ(estimate ? "" : estimate.error().code, "would_revert");
}

TEST(stub_chain_server, satisfies_the_connector_of_a_node) {
  StubChainServer server;
  asio::io_context loop(1);
  auto done = asio::co_spawn(loop, live_a_life(server, loop.get_executor()), asio::use_future);
  loop.run();
  done.get();
  EXPECT_EQ(server.rpc().calls("eth_sendRawTransaction"), 60U);
}

}  // namespace
}  // namespace fencepost::test

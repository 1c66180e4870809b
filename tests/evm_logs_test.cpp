// Logs, blooms and reads at a block against a real chain.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "evm/address.hpp"
#include "evm/keys/dev_accounts.hpp"
#include "evm/logs/bloom.hpp"
#include "tests/support/anvil.hpp"
#include "tests/support/chain_link.hpp"

namespace fencepost::evm {
namespace {

using test::ChainLink;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::string kTopic = "0x" + std::string(64, '1');

std::string sender() {
  return std::string(dev_accounts()[0].address);
}

// A contract that logs kTopic on each call and returns the block's number.
std::string init_code() {
  const std::string code = "7f" + kTopic.substr(2) + "60006000a1" + "4360005260206000f3";
  return "0x602f600c600039602f6000f3" + code;
}

// Sends without waiting for a block; nonces count from 0.
class Sender {
 public:
  explicit Sender(ChainLink& link) : link_(link) {}

  awaitable<> send(std::optional<std::string> to, std::string data = "0x") {
    boost::json::object transaction{
        {"from", sender()}, {"nonce", fmt::format("0x{:x}", nonce_++)}, {"gas", "0x100000"}, {"data", data}};
    if (to) transaction["to"] = *to;
    co_await link_.ask("eth_sendTransaction", {transaction});
  }
  awaitable<std::string> deploy() {
    auto address = address_text(contract_address(address_bytes(sender()), nonce_));
    co_await send(std::nullopt, init_code());
    co_return address;
  }
  awaitable<Block> mine() {
    co_await link_.ask("anvil_mine", {"0x1"});
    co_return co_await link_.head();
  }

 private:
  ChainLink& link_;
  std::uint64_t nonce_ = 0;
};

std::vector<std::pair<std::int64_t, std::int64_t>> places(const std::vector<Log>& logs) {
  std::vector<std::pair<std::int64_t, std::int64_t>> found;
  found.reserve(logs.size());
  for (const auto& log : logs) found.emplace_back(log.block_number, log.log_index);
  return found;
}

Bytes word(std::uint8_t number) {
  Bytes bytes(32);
  bytes.back() = number;
  return bytes;
}

TEST(evm_logs, logs_are_found_by_block_and_by_range) {
  const test::Anvil anvil({"--no-mining"});
  test::with_chain(anvil, [](ChainLink& link) -> awaitable<> {
    auto& chain = link.connector;
    Sender from(link);
    const auto first = co_await from.deploy();
    const auto second = co_await from.deploy();
    co_await from.mine();
    co_await from.send(first);
    co_await from.send(second);
    co_await from.send(first);
    const auto busy = co_await from.mine();
    const auto empty = co_await from.mine();
    co_await from.send(second);
    const auto later = co_await from.mine();
    const LogFilter both{{first, second}, {}};

    const auto of_first = co_await chain.logs_in_block(busy.header.hash, LogFilter{{first}, {kTopic}}, busy.endpoint);
    EXPECT_THAT(places(*of_first), ElementsAre(std::pair(2, 0), std::pair(2, 2)));
    const auto& log = of_first->back();
    EXPECT_EQ(log.address, first);
    EXPECT_THAT(log.topics, ElementsAre(kTopic));
    EXPECT_EQ(log.data, "0x");
    EXPECT_EQ(log.tx_hash, busy.transactions.at(2));
    EXPECT_EQ(log.block_hash, busy.header.hash);
    EXPECT_EQ(log.block_timestamp.value_or(busy.header.timestamp), busy.header.timestamp);

    const auto all = co_await chain.logs_in_range(0, 4, both, std::nullopt);
    EXPECT_EQ(all->endpoint, 0U);
    EXPECT_THAT(places(all->logs), ElementsAre(std::pair(2, 0), std::pair(2, 1), std::pair(2, 2), std::pair(4, 0)));
    EXPECT_EQ(all->logs.back().block_hash, later.header.hash);
    EXPECT_THAT(*co_await chain.logs_in_block(empty.header.hash, both, std::nullopt), IsEmpty());
    EXPECT_THAT((co_await chain.logs_in_range(3, 3, both, std::nullopt))->logs, IsEmpty());
    EXPECT_FALSE(co_await chain.logs_in_block("0x" + std::string(64, 'a'), both, std::nullopt));
    EXPECT_EQ((co_await chain.head_number(std::nullopt))->number, 4);
  });
}

TEST(evm_logs, a_real_bloom_says_who_may_have_logged) {
  const test::Anvil anvil({"--no-mining"});
  test::with_chain(anvil, [](ChainLink& link) -> awaitable<> {
    Sender from(link);
    const std::vector<std::string> first{co_await from.deploy()};
    const std::vector<std::string> second{co_await from.deploy()};
    co_await from.mine();
    co_await from.send(first[0]);
    const auto logged = co_await from.mine();
    EXPECT_NE(logged.header.logs_bloom, nullptr);
    EXPECT_TRUE(may_log(logged.header, first));
    EXPECT_FALSE(may_log(logged.header, second));
    const auto empty = co_await from.mine();
    EXPECT_NE(empty.header.logs_bloom, nullptr);
    EXPECT_FALSE(may_log(empty.header, first));
    co_await from.send(std::string(dev_accounts()[1].address));
    const auto transfer = co_await from.mine();
    EXPECT_EQ(transfer.header.logs_bloom, nullptr) << "zeros with a transaction may be a node without blooms";
    EXPECT_TRUE(may_log(transfer.header, first));
  });
}

TEST(evm_logs, the_world_is_read_as_of_a_block) {
  const test::Anvil anvil({"--no-mining"});
  test::with_chain(anvil, [](ChainLink& link) -> awaitable<> {
    auto& chain = link.connector;
    Sender from(link);
    const auto contract = co_await from.deploy();
    const auto created = co_await from.mine();
    co_await from.send(contract);
    const auto called = co_await from.mine();

    EXPECT_EQ((co_await chain.code(contract, std::nullopt, std::nullopt))->size(), 47U);
    EXPECT_EQ(co_await chain.code(contract, 0, std::nullopt), Bytes{});
    const CallRequest number{.to = contract};
    EXPECT_EQ(co_await chain.call(number, 1, std::nullopt), word(1));
    const CallRequest reverts{.data = "0xfe"};
    const auto results = co_await chain.calls({number, reverts, number}, 2, std::nullopt);
    EXPECT_EQ(results.at(0), word(2));
    EXPECT_EQ(results.at(1).error().code, "would_revert");
    EXPECT_EQ(results.at(2), word(2));

    const std::string unknown = "0x" + std::string(64, 'a');
    const auto headers = co_await chain.headers_by_hash({called.header.hash, unknown, created.header.hash}, 0);
    EXPECT_EQ(headers.at(0)->value(), called.header);
    EXPECT_FALSE(headers.at(1)->has_value());
    EXPECT_EQ(headers.at(2)->value(), created.header);
    const auto transactions = co_await chain.transactions({called.transactions.at(0), unknown}, 0);
    EXPECT_EQ(transactions.at(0)->value().to, contract);
    EXPECT_EQ(transactions.at(0)->value().from, sender());
    EXPECT_FALSE(transactions.at(1)->has_value());
  });
}

}  // namespace
}  // namespace fencepost::evm

#include "evm/endpoint_watch.hpp"

#include <atomic>

#include <gtest/gtest.h>

#include "evm/connector_test_support.hpp"
#include "runtime/manual_steady_clock_test_support.hpp"

namespace fencepost::evm {
namespace {

using namespace std::chrono_literals;
using testing::json;
using testing::Node;
using testing::Refusal;

// A node whose chain and head a test sets.
struct Endpoint {
  std::atomic<std::int64_t> chain = 31337;
  std::atomic<std::int64_t> head = 100;
  std::atomic<bool> sick = false;
  std::atomic<bool> spent = false;  // answers for its chain and its head only
  Node node{[this](const std::string& method, const boost::json::array&) -> json {
    const bool is_cheap = method == "eth_chainId" || method == "eth_blockNumber";
    if (sick || (spent && !is_cheap)) throw Refusal{-32005, "daily request limit"};
    return json(boost::json::string(fmt::format("0x{:x}", method == "eth_chainId" ? chain.load() : head.load())));
  }};
};

class EndpointWatchTest : public testing::ConnectorTest {
 protected:
  EndpointWatch& watch(std::vector<std::string> urls, JsonRpcClient* submit = nullptr) {
    connect(std::move(urls), {.chain = "local", .chain_id = 31337});
    watch_.emplace(context_.get_executor(), *rpc_, submit,
                   EndpointWatch::Options{.chain = "local", .chain_id = 31337, .steady = &steady_}, metrics_);
    watch_->on_change([this](bool usable, std::chrono::milliseconds lasted) { changes_.emplace_back(usable, lasted); });
    return *watch_;
  }
  void ask(std::string method = "eth_blockNumber") {
    RpcCall question{std::move(method), {}};
    run(rpc_->call(std::move(question)));
  }

  // Until the started watch has ended its round, and waits for the next one.
  awaitable<> rest() {
    while (!steady_.next() || *steady_.next() <= 0ns) co_await asio::post(context_, use_tuple);
  }

  test::ManualSteadyClock steady_;
  std::optional<EndpointWatch> watch_;
  std::vector<std::pair<bool, std::chrono::milliseconds>> changes_;
};

TEST_F(EndpointWatchTest, an_endpoint_that_stands_still_is_behind) {
  Endpoint first, second;
  auto& watch = this->watch({first.node.url(), second.node.url()});
  run(watch.check_all());
  second.head = 101;
  run(watch.check_all());
  EXPECT_FALSE(rpc_->endpoint_status(0).behind) << "another endpoint was just a little faster";
  run(watch.check_all());
  EXPECT_TRUE(rpc_->endpoint_status(0).behind);
  EXPECT_EQ(rpc_->endpoint_status(0).head, 100);
  EXPECT_EQ(rpc_->healthy(), std::vector<std::size_t>{1});
}

TEST_F(EndpointWatchTest, an_endpoint_on_another_chain_is_used_again_once_it_is_on_the_right_one) {
  Endpoint first, second;
  first.chain = 1;
  auto& watch = this->watch({first.node.url(), second.node.url()});
  run(watch.check_all());
  EXPECT_TRUE(rpc_->endpoint_status(0).wrong_chain);
  EXPECT_EQ(rpc_->candidates(), std::vector<std::size_t>{1});
  EXPECT_FALSE(rpc_->endpoint_status(0).head) << "the head of another chain says nothing";
  first.chain = 31337;
  run(watch.check_all());
  EXPECT_EQ(rpc_->candidates(), (std::vector<std::size_t>{0, 1}));
}

TEST_F(EndpointWatchTest, an_endpoint_that_changes_its_chain_without_a_failure_is_found_within_the_interval_of_ids) {
  Endpoint first, second;
  auto& watch = this->watch({first.node.url(), second.node.url()});
  const auto rounds = [&]() -> awaitable<> {
    watch.start();
    co_await rest();
    first.chain = 1;
    steady_.advance(150s);
    co_await rest();
    EXPECT_FALSE(rpc_->endpoint_status(0).wrong_chain) << "not every round asks for the ids";
    steady_.advance(150s);
    co_await rest();
    EXPECT_TRUE(rpc_->endpoint_status(0).wrong_chain);
    co_await watch.stop();
  };
  run(rounds());
}

TEST_F(EndpointWatchTest, the_chain_is_unusable_while_no_endpoint_answers) {
  Endpoint first, second;
  auto& watch = this->watch({first.node.url(), second.node.url()});
  run(watch.check_all());
  EXPECT_TRUE(watch.usable());
  EXPECT_FALSE(watch.changed_at());
  steady_.advance(10s);
  first.sick = true;
  ask();
  EXPECT_TRUE(watch.usable());
  second.sick = true;
  ask();
  EXPECT_FALSE(watch.usable());
  steady_.advance(4s);
  ask();
  second.sick = false;
  ask();
  EXPECT_TRUE(watch.usable());
  EXPECT_EQ(watch.changed_at(), steady_.now());
  EXPECT_EQ(changes_, (decltype(changes_){{false, 10s}, {true, 4s}}));
}

TEST_F(EndpointWatchTest, an_endpoint_that_works_again_is_found_by_its_head) {
  Endpoint only;
  auto& watch = this->watch({only.node.url()});
  run(watch.check_all());
  only.sick = true;
  ask();
  EXPECT_FALSE(watch.usable());
  only.sick = false;
  clock_.advance(1min);
  run(watch.check_all());
  EXPECT_TRUE(watch.usable());
}

TEST_F(EndpointWatchTest, endpoints_that_answer_only_cheap_questions_are_tried_less_and_less_often) {
  Endpoint first, second;
  auto& watch = this->watch({first.node.url(), second.node.url()});
  run(watch.check_all());
  first.spent = second.spent = true;
  std::chrono::system_clock::duration pause{};
  for (int round = 0; round < 8; ++round) {
    ask("eth_getBlockByNumber");
    EXPECT_FALSE(watch.usable());
    pause = *rpc_->endpoint_status(0).cooling_until - clock_.now();
    clock_.advance(2min);
    run(watch.check_all());
  }
  EXPECT_GE(pause, 30s);
}

TEST_F(EndpointWatchTest, a_chain_whose_relays_do_not_answer_is_unusable) {
  Endpoint first, relay;
  JsonRpcClient submit(http_, {relay.node.url()}, {.chain = "local", .chain_id = 31337}, clock_, random_, metrics_);
  auto& watch = this->watch({first.node.url()}, &submit);
  run(watch.check_all());
  EXPECT_TRUE(watch.usable());
  relay.sick = true;
  RpcCall transaction{"eth_sendRawTransaction", {"0x01"}};
  EXPECT_FALSE(run(submit.call(std::move(transaction))));
  EXPECT_FALSE(watch.usable());
}

}  // namespace
}  // namespace fencepost::evm

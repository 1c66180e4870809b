// An EvmConnector to a real chain, for tests that run as a coroutine.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "evm/evm_connector.hpp"
#include "runtime/runtime_test_support.hpp"
#include "tests/support/anvil.hpp"

namespace fencepost::test {

// A client of a chain, on the loop of the test's coroutine.
struct ChainLink {
  ChainLink(Executor executor, std::vector<std::string> urls)
      : http(executor, {}), rpc(http, std::move(urls), {}, clock, random, metrics), connector(rpc, 31337) {}

  // Calls a method that only development chains have.
  awaitable<evm::RpcValue> ask(std::string method, boost::json::array params = {}) {
    evm::RpcCall call{std::move(method), std::move(params)};
    auto answer = co_await rpc.call(std::move(call));
    if (!answer) throw Exception(answer.error());
    co_return std::move(*answer);
  }
  awaitable<evm::Block> head() {
    auto block = co_await connector.block(evm::BlockTag::kLatest, std::nullopt);
    if (!block) throw Exception(block.error());
    co_return std::move(*block);
  }

  SystemClock clock;
  SeededRandom random{1};
  Metrics metrics;
  http::Client http;
  evm::JsonRpcClient rpc;
  evm::EvmConnector connector;
};

inline void with_chain(const Anvil& anvil, const std::function<awaitable<>(ChainLink&)>& body) {
  on_loop([&]() -> awaitable<> {
    const auto executor = co_await this_executor();
    ChainLink link(executor, {anvil.url()});
    co_await body(link);
  });
}

}  // namespace fencepost::test

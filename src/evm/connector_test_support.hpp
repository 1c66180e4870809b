// A node whose answers a test gives, and an EvmConnector that asks it.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/asio/use_future.hpp>
#include <boost/json.hpp>

#include "evm/evm_connector.hpp"
#include "http/http_test_support.hpp"

namespace fencepost::evm::testing {

using http::testing::TestServer;
using json = boost::json::value;

struct Refusal {
  std::int64_t code;
  std::string message;
  json data = nullptr;
};

// A node that answers single calls and batches with the results of a function.
class Node {
 public:
  using Answer = std::function<json(const std::string& method, const boost::json::array& params)>;
  explicit Node(Answer answer)
      : answer_(std::move(answer)), server_([this](http::Router& router) {
          router.add({http::Verb::kPost, "/", http::Access::open(),
                      [this](http::Request& request) { return serve(request); }});
        }) {}

  std::string url() const { return server_.url("/"); }
  // The methods of each HTTP request since the last call, joined by spaces.
  std::vector<std::string> take_requests() {
    const std::lock_guard lock(mutex_);
    return std::exchange(requests_, {});
  }

 private:
  awaitable<http::Response> serve(http::Request& request) {
    const auto body = request.json().value();
    std::string methods;
    if (body.is_object()) {
      auto reply = one(body, methods);
      note(methods);
      co_return http::Response::json(200, reply);
    }
    boost::json::array replies;
    for (const auto& call : body.as_array()) replies.emplace_back(one(call, methods));
    note(methods);
    co_return http::Response::json(200, replies);
  }
  boost::json::object one(const json& call, std::string& methods) {
    const std::string method(call.at("method").as_string());
    methods += (methods.empty() ? "" : " ") + method;
    boost::json::object reply{{"jsonrpc", "2.0"}, {"id", call.at("id")}};
    try {
      reply["result"] = answer_(method, call.at("params").as_array());
    } catch (const Refusal& refusal) {
      boost::json::object error{{"code", refusal.code}, {"message", refusal.message}};
      if (!refusal.data.is_null()) error["data"] = refusal.data;
      reply["error"] = error;
    }
    return reply;
  }
  void note(const std::string& methods) {
    const std::lock_guard lock(mutex_);
    requests_.push_back(methods);
  }

  Answer answer_;
  std::mutex mutex_;
  std::vector<std::string> requests_;
  TestServer server_;
};

inline std::string hash(std::int64_t number, char kind = 'b') {
  return fmt::format("0x{}{:063x}", kind, number);
}

inline json block(std::int64_t number) {
  return {{"number", fmt::format("0x{:x}", number)},
          {"hash", hash(number)},
          {"parentHash", hash(number - 1)},
          {"timestamp", fmt::format("0x{:x}", 1000 + number)},
          {"baseFeePerGas", "0x7"},
          {"transactions", boost::json::array{hash(number, 'c')}}};
}

inline json receipt(const std::string& tx_hash, std::int64_t block_number) {
  return {{"transactionHash", tx_hash},
          {"blockHash", hash(block_number)},
          {"blockNumber", fmt::format("0x{:x}", block_number)},
          {"transactionIndex", "0x0"},
          {"status", "0x1"},
          {"gasUsed", "0x5208"},
          {"effectiveGasPrice", "0x7"},
          {"contractAddress", nullptr},
          {"logs", boost::json::array{}}};
}

inline std::string text(const json& value) {
  return std::string(value.as_string());
}
inline std::int64_t number(const json& value) {
  return std::stoll(text(value), nullptr, 16);
}

class ConnectorTest : public ::testing::Test {
 protected:
  void connect(std::vector<std::string> urls, JsonRpcOptions options = {}) {
    connector_.reset();
    rpc_.emplace(http_, std::move(urls), options, clock_, random_, metrics_);
    connector_.emplace(*rpc_, 31337);
  }
  template <class T>
  T run(awaitable<T> task) {
    context_.restart();
    auto future = asio::co_spawn(context_, std::move(task), asio::use_future);
    context_.run();
    return future.get();
  }
  ChainConnector& chain_() { return *connector_; }

  asio::io_context context_{1};
  http::Client http_{context_.get_executor(), {}};
  ManualClock clock_{TimePoint{std::chrono::hours(1)}};
  SeededRandom random_{7};
  Metrics metrics_;
  std::optional<JsonRpcClient> rpc_;
  std::optional<EvmConnector> connector_;
};

}  // namespace fencepost::evm::testing

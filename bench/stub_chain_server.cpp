// A chain that takes almost no processor time, so that a benchmark measures the node and not the chain. It accepts
// every transaction and mines all of them in the next block. It has no accounts and no execution, and checks no
// signatures. Tests use real chains.
//
//   stub_chain_server [block interval in ms]    Prints "port N" and serves until SIGINT or SIGTERM.
//
// GET /calls answers how many JSON-RPC calls it has answered, by method.
#include <charconv>
#include <deque>
#include <map>
#include <string_view>
#include <unordered_map>

#include <fmt/format.h>

#include <boost/asio/signal_set.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "base/hex.hpp"
#include "evm/keccak.hpp"
#include "http/server.hpp"
#include "runtime/log.hpp"

namespace {

using namespace fencepost;
namespace json = boost::json;

constexpr std::size_t kBlocksKept = 600;

struct StubBlock {
  std::string hash;
  std::string parent;
  std::int64_t number = 0;
  std::vector<std::string> transactions;
};

std::string hash_of(std::string_view bytes) {
  return to_hex0x(evm::keccak256({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}));
}

std::string quantity(std::int64_t number) {
  return fmt::format("0x{:x}", number);
}

// Runs on one loop, so it needs no locks.
class StubChain {
 public:
  StubChain() { mine(); }

  void mine() {
    StubBlock block{.number = blocks_.empty() ? 0 : blocks_.back().number + 1};
    block.parent = blocks_.empty() ? hash_of("") : blocks_.back().hash;
    block.hash = hash_of(fmt::format("block {}", block.number));
    block.transactions = std::move(pending_);
    pending_.clear();
    for (std::size_t i = 0; i < block.transactions.size(); ++i) mined_[block.transactions[i]] = {block.number, i};
    blocks_.push_back(std::move(block));
    if (blocks_.size() <= kBlocksKept) return;
    for (const auto& hash : blocks_.front().transactions) mined_.erase(hash);
    blocks_.pop_front();
  }

  json::value answer(const json::value& call) {
    const auto& object = call.as_object();
    const std::string_view method = object.at("method").as_string();
    ++calls_[std::string(method)];
    return {{"jsonrpc", "2.0"}, {"id", object.at("id")}, {"result", result(method, object.at("params").as_array())}};
  }

  json::value calls() const {
    json::object out;
    for (const auto& [method, count] : calls_) out[method] = count;
    return out;
  }

 private:
  json::value result(std::string_view method, const json::array& params) {
    if (method == "eth_sendRawTransaction") return send(params.at(0).as_string());
    if (method == "eth_chainId") return "0x7a69";
    if (method == "eth_syncing") return false;
    if (method == "eth_blockNumber") return json::string(quantity(blocks_.back().number));
    if (method == "eth_getBalance") return "0xde0b6b3a7640000";
    if (method == "eth_getTransactionCount") return "0x0";
    if (method == "eth_estimateGas") return "0x5208";
    if (method == "eth_gasPrice") return "0x3b9aca00";
    if (method == "eth_getBlockByNumber") return block_by_number(params.at(0).as_string());
    if (method == "eth_getBlockReceipts") return receipts(params.at(0).as_string());
    if (method == "eth_getTransactionReceipt") return receipt(std::string(params.at(0).as_string()));
    if (method == "eth_feeHistory") return fee_history(params.at(0).as_string());
    return nullptr;
  }

  static json::value fee_history(std::string_view count) {
    int blocks = 1;
    std::from_chars(count.data() + 2, count.data() + count.size(), blocks, 16);
    json::array fees{"0x3b9aca00"}, used, tips;
    for (int i = 0; i < blocks; ++i) {
      fees.push_back("0x3b9aca00");
      used.push_back(0.5);
      tips.push_back(json::array{"0x1"});
    }
    return {{"oldestBlock", "0x0"}, {"baseFeePerGas", fees}, {"gasUsedRatio", used}, {"reward", tips}};
  }

  json::value send(std::string_view raw) {
    const auto bytes = from_hex0x(raw).value();
    auto hash = to_hex0x(evm::keccak256(bytes));
    pending_.push_back(hash);
    return json::string(hash);
  }

  const StubBlock* find(std::int64_t number) const {
    const auto index = number - blocks_.front().number;
    return index < 0 || index >= static_cast<std::int64_t>(blocks_.size()) ? nullptr
                                                                           : &blocks_[static_cast<std::size_t>(index)];
  }

  json::value block_by_number(std::string_view which) const {
    std::int64_t number = blocks_.back().number;
    if (which.starts_with("0x")) std::from_chars(which.data() + 2, which.data() + which.size(), number, 16);
    const auto* block = find(number);
    if (block == nullptr) return nullptr;
    return {{"number", quantity(block->number)},
            {"hash", block->hash},
            {"parentHash", block->parent},
            {"timestamp", quantity(1'700'000'000 + block->number)},
            {"baseFeePerGas", "0x3b9aca00"},
            {"transactions", json::array(block->transactions.begin(), block->transactions.end())}};
  }

  json::value receipt(const std::string& hash) const {
    const auto it = mined_.find(hash);
    if (it == mined_.end()) return nullptr;
    return make_receipt(*find(it->second.first), it->second.second);
  }

  json::value receipts(std::string_view hash) const {
    for (auto block = blocks_.rbegin(); block != blocks_.rend(); ++block) {
      if (block->hash != hash) continue;
      json::array all;
      for (std::size_t i = 0; i < block->transactions.size(); ++i) all.push_back(make_receipt(*block, i));
      return all;
    }
    return nullptr;
  }

  static json::value make_receipt(const StubBlock& block, std::size_t index) {
    return {{"transactionHash", block.transactions[index]},
            {"transactionIndex", quantity(static_cast<std::int64_t>(index))},
            {"blockHash", block.hash},
            {"blockNumber", quantity(block.number)},
            {"status", "0x1"},
            {"gasUsed", "0x5208"},
            {"effectiveGasPrice", "0x3b9aca00"},
            {"contractAddress", nullptr}};
  }

  std::deque<StubBlock> blocks_;
  std::vector<std::string> pending_;
  std::unordered_map<std::string, std::pair<std::int64_t, std::size_t>> mined_;
  std::map<std::string, std::int64_t> calls_;
};

awaitable<http::Response> rpc(http::Request& request, StubChain& chain) {
  const auto body = json::parse(request.body());
  json::value out;
  if (const auto* batch = body.if_array()) {
    json::array answers;
    for (const auto& call : *batch) answers.push_back(chain.answer(call));
    out = std::move(answers);
  } else {
    out = chain.answer(body);
  }
  co_return http::Response::json(200, out);
}

awaitable<http::Response> calls(http::Request&, StubChain& chain) {
  co_return http::Response::json(200, chain.calls());
}

awaitable<> mine_forever(StubChain& chain, std::chrono::milliseconds interval) {
  asio::steady_timer timer(co_await asio::this_coro::executor);
  for (auto next = std::chrono::steady_clock::now();; next += interval) {
    timer.expires_at(next);
    co_await timer.async_wait(asio::use_awaitable);
    chain.mine();
  }
}

awaitable<> wait_for_signal() {
  asio::signal_set signals(co_await asio::this_coro::executor, SIGINT, SIGTERM);
  co_await signals.async_wait(use_tuple);
}

}  // namespace

int main(int argc, char** argv) {
  std::chrono::milliseconds interval(100);
  if (argc > 1) interval = std::chrono::milliseconds(std::atoi(argv[1]));
  Runtime runtime({.threads = 1});
  Metrics metrics;
  StubChain chain;
  http::Router router;
  router.add({http::Verb::kPost, "/", http::Access::open(), [&](http::Request& r) { return rpc(r, chain); }});
  router.add({http::Verb::kGet, "/calls", http::Access::open(), [&](http::Request& r) { return calls(r, chain); }});
  http::Server server(runtime, {.max_body_bytes = 64 * 1024 * 1024}, router, nullptr, metrics);
  if (const auto started = server.start(); !started) {
    fmt::print(stderr, "{}\n", started.error().to_string());
    return 1;
  }
  asio::co_spawn(runtime.loop(0), mine_forever(chain, interval), [](const std::exception_ptr&) {});
  fmt::print("port {}\n", server.port());
  std::fflush(stdout);
  runtime.start();
  run_blocking(wait_for_signal());
  runtime.run_on(0, server.stop(std::chrono::seconds(1)));
  runtime.stop();
  return 0;
}

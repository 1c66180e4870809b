// A node with the history of one TimelockController, so that a benchmark measures the scanner and not the chain.
// Blocks, hashes and logs are computed from the block's number; nothing is stored.
//
//   timelock_node BLOCKS EVENTS_PER_BLOCK    Prints "port N" and serves until SIGINT or SIGTERM.
//
// Half of the events of a block schedule an operation each, the other half execute those of the block before.
#include <charconv>
#include <cstdlib>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <boost/asio/signal_set.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "evm/abi/abi.hpp"
#include "http/server.hpp"
#include "runtime/log.hpp"
#include "timelock/model/event_decoder.hpp"

namespace {

using namespace fencepost;
namespace json = boost::json;

constexpr std::string_view kContract = "0x00000000000000000000000000000000000c0de0";
constexpr std::string_view kSender = "0x00000000000000000000000000000000005e4de4";
constexpr std::int64_t kFirstTime = 1'700'000'000;
constexpr std::int64_t kDelay = 10;

// 32 bytes that name a kind of thing, a block and a place.
std::string id(char kind, std::int64_t block, std::int64_t place) {
  return fmt::format("0x{:02x}{:030x}{:032x}", kind, block, place);
}

std::string word(std::int64_t value) {
  return fmt::format("{:064x}", value);
}

std::int64_t number_of(std::string_view quantity) {
  std::int64_t out = 0;
  std::from_chars(quantity.data() + 2, quantity.data() + quantity.size(), out, 16);
  return out;
}

class History {
 public:
  History(std::int64_t blocks, std::int64_t events)
      : blocks_(blocks), events_(events), topics_(timelock::topics_of(timelock::Standard::kOpenZeppelin)) {}

  // The result as JSON text.
  std::string answer(std::string_view method, const json::array& params) const {
    if (method == "eth_chainId") return R"("0x7a69")";
    if (method == "eth_blockNumber") return fmt::format("\"0x{:x}\"", blocks_);
    if (method == "eth_syncing") return "false";
    if (method == "eth_getCode") return R"("0x60")";
    if (method == "eth_call") return call(params.at(0).at("data").as_string());
    if (method == "eth_getBlockByNumber") return block_by_name(params.at(0).as_string());
    if (method == "eth_getBlockByHash") return block(number_of_hash(params.at(0).as_string()));
    if (method == "eth_getTransactionByHash") return transaction(params.at(0).as_string());
    if (method == "eth_getBlockReceipts") return "[]";
    if (method == "eth_getLogs") return logs(params.at(0).as_object());
    return "null";
  }

 private:
  static std::int64_t number_of_hash(std::string_view hash) {
    return number_of(fmt::format("0x{}", hash.substr(4, 30)));
  }
  static std::string call(std::string_view data) {
    const auto is = [&](const char* signature) { return data.starts_with(to_hex0x(evm::selector(signature))); };
    if (is("getMinDelay()")) return fmt::format("\"0x{}\"", word(kDelay));
    if (is("getTimestamp(bytes32)")) return fmt::format("\"0x{}\"", word(0));
    if (is("hasRole(bytes32,address)")) return fmt::format("\"0x{}\"", word(1));
    return R"("0x")";
  }
  std::string block_by_name(std::string_view name) const {
    return block(name.starts_with("0x") ? number_of(name) : blocks_);
  }
  std::string block(std::int64_t number) const {
    if (number < 0 || number > blocks_) return "null";
    return fmt::format(
        R"({{"number":"0x{:x}","hash":"{}","parentHash":"{}","timestamp":"0x{:x}","baseFeePerGas":"0x1","transactions":[]}})",
        number, id('b', number, 0), id('b', number - 1, 0), kFirstTime + 12 * number);
  }
  static std::string transaction(std::string_view hash) {
    return fmt::format(
        R"({{"hash":"{}","from":"{}","to":"{}","nonce":"0x0","value":"0x0","input":"0x","blockHash":"{}"}})", hash,
        kSender, kContract, id('b', number_of_hash(hash), 0));
  }
  // Without a flow's first half there would be nothing to execute in block 1.
  void add_log(std::string& out, std::int64_t number, std::int64_t place) const {
    const bool schedules = place % 2 == 0;
    const auto flow = id('f', schedules ? number : number - 1, place / 2);
    const auto call = fmt::format("{:064x}{}", 0x1234, word(0));  // target, value
    const auto data = schedules
                          ? call + word(5 * 32) + word(0) + word(kDelay) + word(4) + fmt::format("{:0<64}", "a9059cbb")
                          : call + word(3 * 32) + word(4) + fmt::format("{:0<64}", "a9059cbb");
    if (out.size() > 1) out += ',';
    out += fmt::format(
        R"({{"address":"{}","topics":["{}","{}","0x{}"],"data":"0x{}","blockNumber":"0x{:x}","transactionHash":"{}",)"
        R"("transactionIndex":"0x0","blockHash":"{}","logIndex":"0x{:x}","blockTimestamp":"0x{:x}","removed":false}})",
        kContract, topics_[schedules ? 0 : 1], flow, word(0), data, number, id('t', number, place / 10),
        id('b', number, 0), place, kFirstTime + 12 * number);
  }
  std::string logs(const json::object& filter) const {
    std::int64_t first = 0;
    std::int64_t last = 0;
    if (const auto* hash = filter.if_contains("blockHash")) {
      first = last = number_of_hash(hash->as_string());
    } else {
      first = number_of(filter.at("fromBlock").as_string());
      last = number_of(filter.at("toBlock").as_string());
    }
    std::string out = "[";
    for (auto number = std::max<std::int64_t>(first, 1); number <= std::min(last, blocks_ - 300); ++number) {
      for (std::int64_t place = 0; place < events_; ++place) {
        if (place % 2 == 1 && number == 1) continue;
        add_log(out, number, place);
      }
    }
    return out + "]";
  }

  std::int64_t blocks_;
  std::int64_t events_;
  std::vector<std::string> topics_;
};

std::string reply(const json::value& call, const History& history) {
  const auto& object = call.as_object();
  return fmt::format(R"({{"jsonrpc":"2.0","id":{},"result":{}}})", json::serialize(object.at("id")),
                     history.answer(object.at("method").as_string(), object.at("params").as_array()));
}

awaitable<http::Response> rpc(http::Request& request, const History& history) {
  const auto body = json::parse(request.body());
  std::string out;
  if (const auto* batch = body.if_array()) {
    for (const auto& call : *batch) out += (out.empty() ? "[" : ",") + reply(call, history);
    out += ']';
  } else {
    out = reply(body, history);
  }
  auto response = http::Response::text(200, std::move(out));
  response.with("Content-Type", "application/json");
  co_return response;
}

awaitable<> wait_for_signal() {
  asio::signal_set signals(co_await asio::this_coro::executor, SIGINT, SIGTERM);
  co_await signals.async_wait(use_tuple);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const History history(std::atoll(argv[1]), std::atoll(argv[2]));
  Runtime runtime({.threads = 1});
  Metrics metrics;
  http::Router router;
  router.add({http::Verb::kPost, "/", http::Access::open(), [&](http::Request& r) { return rpc(r, history); }});
  http::Server server(runtime, {.max_body_bytes = 64 * 1024 * 1024}, router, nullptr, metrics);
  if (const auto started = server.start(); !started) {
    fmt::print(stderr, "{}\n", started.error().to_string());
    return 1;
  }
  fmt::print("port {}\n", server.port());
  std::fflush(stdout);
  runtime.start();
  run_blocking(wait_for_signal());
  runtime.run_on(0, server.stop(std::chrono::seconds(1)));
  runtime.stop();
  return 0;
}

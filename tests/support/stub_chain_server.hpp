// A StubChain that listens: JSON-RPC over HTTP on a loopback port, and a block at every interval.
//
//   StubChainServer server({.interval = std::chrono::milliseconds(100)});
//   … server.url() …
//   server.set_trouble({Trouble::kGarbage});
//
// The port stays the same, and reserved, through all troubles. Any thread may call any method, except the threads of
// the server itself.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "http/server.hpp"
#include "runtime/metrics.hpp"
#include "runtime/runtime.hpp"
#include "runtime/unique_fd.hpp"
#include "tests/support/stub_chain.hpp"
#include "tests/support/stub_chain_rpc.hpp"

namespace fencepost::test {

enum class Trouble {
  kNone,
  kRefuses,         // refuses connections, and closes the open ones
  kHttp500,         // answers with an error page
  kGarbage,         // answers HTTP 200 and a body that is not JSON
  kErrorInside200,  // answers every call with an error, in valid JSON-RPC
};

struct StubChainServerOptions {
  StubChainOptions chain;
  std::optional<std::chrono::milliseconds> interval;  // between blocks; none: only `chain().mine()` makes them
  std::uint16_t port = 0;                             // 0: any free port
  std::size_t threads = 1;
};

class StubChainServer {
 public:
  // Returns when the server answers. Throws if the port is not available.
  explicit StubChainServer(StubChainServerOptions options = {});
  ~StubChainServer();
  StubChainServer(const StubChainServer&) = delete;
  StubChainServer& operator=(const StubChainServer&) = delete;

  StubChain& chain() { return chain_; }
  StubChainRpc& rpc() { return rpc_; }
  std::uint16_t port() const { return port_; }
  std::string url() const;

  void set_interval(std::optional<std::chrono::milliseconds> interval);
  void set_trouble(Trouble trouble);
  // Delays every answer by this much, whatever the trouble.
  void set_delay(std::chrono::milliseconds delay);

 private:
  void reserve_port(std::uint16_t wanted);
  void listen();
  void hang_up();
  awaitable<http::Response> answer(http::Request& request);
  void mine_regularly();

  StubChain chain_;
  StubChainRpc rpc_;
  Runtime runtime_;
  Metrics metrics_;
  http::Router router_;
  UniqueFd reserved_;  // bound and never listening, so that no other program gets the port
  std::uint16_t port_ = 0;
  std::unique_ptr<http::Server> server_;  // guarded by control_; empty while the server refuses
  std::mutex control_;
  std::atomic<Trouble> trouble_{Trouble::kNone};
  std::atomic<std::chrono::milliseconds> delay_{std::chrono::milliseconds(0)};

  std::mutex mutex_;  // guards the two below
  std::condition_variable changed_;
  std::optional<std::chrono::milliseconds> interval_;
  bool stopping_ = false;
  std::thread miner_;
};

}  // namespace fencepost::test

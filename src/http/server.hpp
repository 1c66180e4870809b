// The HTTP/1.1 server: one acceptor, and connections spread over the runtime's loops, each served by one
// coroutine on its loop. Plain, or under TLS if it gets a certificate.
//
// ServerOptions bounds the head, the body, the number of connections and the time of each phase. A client over a limit
// gets a problem document and is disconnected.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "base/error.hpp"
#include "http/auth.hpp"
#include "http/router.hpp"
#include "runtime/async.hpp"
#include "runtime/metrics.hpp"
#include "runtime/runtime.hpp"
#include "runtime/task_group.hpp"

namespace fencepost::http {

class ServerCertificate;

struct ServerOptions {
  std::string host = "127.0.0.1";  // an address, or "localhost"
  std::uint16_t port = 0;          // 0: any free port, see Server::port
  int backlog = 1024;
  const ServerCertificate* certificate = nullptr;  // null: no TLS; otherwise loaded, and outlives the server

  std::size_t max_connections = 4096;  // over it: 503 with Retry-After
  std::size_t max_header_bytes = 16 * 1024;
  std::size_t max_header_count = 100;
  std::size_t max_body_bytes = 1024 * 1024;

  std::chrono::milliseconds idle_timeout{75'000};    // between requests; then closed without an answer
  std::chrono::milliseconds header_timeout{10'000};  // from the first byte to the end of the head, then 408
  std::chrono::milliseconds body_timeout{30'000};    // from the end of the head to the end of the body, then 408
  std::chrono::milliseconds write_timeout{30'000};   // for each 64 KiB that the client should read
  std::chrono::milliseconds linger_timeout{1'000};   // how long a refused client's bytes are read and dropped
  std::chrono::milliseconds heartbeat{15'000};       // of idle event streams
};

class LoopServer;

class Server {
 public:
  // Keeps references: all of them outlive the server. Throws Exception `no_authenticator` when a route is not
  // open and `authenticator` is null.
  Server(Runtime& runtime, ServerOptions options, const Router& router, Authenticator* authenticator, Metrics& metrics);
  // Requires: `stop` has returned, or `start` was never called.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Binds, listens and begins to accept. Any thread may call, once. Errors: `port_taken`, `bad_listen_address`,
  // `listen_failed`.
  Result<void> start();

  // The port it listens on; 0 before start.
  std::uint16_t port() const { return port_; }
  std::size_t connections() const { return open_.load(std::memory_order_relaxed); }

  // Drains: accepts no more, closes idle connections, ends event streams, lets requests in flight finish
  // (answered with `Connection: close`) and cancels what is left after `grace`. Call once, from a coroutine on
  // any loop of this runtime or outside it, while the runtime runs; it cannot be cancelled.
  awaitable<> stop(std::chrono::milliseconds grace);

 private:
  using Acceptor = asio::basic_socket_acceptor<asio::ip::tcp, Executor>;

  Result<void> listen();
  awaitable<> accept();
  awaitable<> stop_accepting();

  Runtime& runtime_;
  ServerOptions options_;
  std::atomic<std::size_t> open_{0};
  std::vector<std::unique_ptr<LoopServer>> loops_;
  Acceptor acceptor_;
  TaskGroup accepting_;
  std::atomic<std::uint16_t> port_{0};
  bool started_ = false;
};

}  // namespace fencepost::http

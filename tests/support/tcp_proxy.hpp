// A TCP proxy that misbehaves on request, between a node and PostgreSQL or between a node and a chain.
//
//   TcpProxy proxy(test::server_socket());
//   auto dsn = test::through_port(db.dsn(), proxy.port());
//   proxy.half_open();   // … and check what the code under test does
//   proxy.pass();
//
// The proxy runs on a thread of its own. Any thread may call any method; each takes effect before it returns.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace fencepost::test {

enum class Direction { kToServer, kToClient };

class TcpProxy {
 public:
  // Listens on a free port of 127.0.0.1 and connects each client to the server.
  explicit TcpProxy(const std::filesystem::path& unix_socket);
  TcpProxy(const std::string& ipv4, std::uint16_t port);
  ~TcpProxy();
  TcpProxy(const TcpProxy&) = delete;
  TcpProxy& operator=(const TcpProxy&) = delete;

  std::uint16_t port() const;

  // Passes all bytes without delay, and accepts new clients. Sends what a half-open connection held back. Clients that
  // connected during a blackhole stay unanswered.
  void pass();
  // Delays each byte by this much, in order, including bytes in transit.
  void delay(std::chrono::milliseconds to_server, std::chrono::milliseconds to_client);
  // Closes every connection now, with a reset. The mode does not change.
  void cut();
  // Cuts once, after `bytes` more have passed in that direction, on all connections together. The receiver gets exactly
  // that many.
  void cut_after(Direction direction, std::size_t bytes);
  // New clients get "connection refused". Existing connections stay.
  void refuse();
  // Nothing passes in that direction, not even an end of stream, and no connection is closed.
  void half_open(Direction direction);
  void half_open();
  // Like half_open for existing connections. Accepts new clients and never answers them.
  void blackhole();

  // Counted since the start.
  std::size_t accepted() const;
  std::size_t bytes(Direction direction) const;
  // Connections that are open now.
  std::size_t open() const;

 private:
  struct World;
  std::unique_ptr<World> world_;
};

}  // namespace fencepost::test

// A TCP proxy that misbehaves on request: between a node and PostgreSQL, or a node and a chain.
//
//   TcpProxy proxy(test::server_socket());
//   auto dsn = test::through_port(db.dsn(), proxy.port());
//   proxy.half_open();   // … and see what the code under test does
//   proxy.pass();
//
// It runs on a thread of its own. Any thread may call any method; each takes effect before it returns.
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

  // Everything passes, at once, and new clients are welcome; what a half-open connection held back goes out now.
  // Clients that came during a blackhole stay unanswered.
  void pass();
  // Each byte arrives that much later, in order. Also for bytes under way.
  void delay(std::chrono::milliseconds to_server, std::chrono::milliseconds to_client);
  // Closes every connection now, with a reset. What comes next is up to the mode, which stays as it is.
  void cut();
  // Once `bytes` more have passed in that direction, on all connections together, cuts; once. The receiver gets
  // exactly that many.
  void cut_after(Direction direction, std::size_t bytes);
  // New clients get "connection refused". Those that are connected stay so.
  void refuse();
  // Nothing passes in that direction, also no end of stream, and nothing is closed.
  void half_open(Direction direction);
  void half_open();
  // As half_open for those that are connected; new clients are accepted and never answered.
  void blackhole();

  // Since the start.
  std::size_t accepted() const;
  std::size_t bytes(Direction direction) const;
  // Now.
  std::size_t open() const;

 private:
  struct World;
  std::unique_ptr<World> world_;
};

}  // namespace fencepost::test

// For tests over HTTP: a server with its runtime, and a blocking client that sends exactly the bytes it is given.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/router.hpp"
#include "http/server.hpp"
#include "runtime/metrics.hpp"
#include "runtime/runtime.hpp"

namespace fencepost::http::testing {

inline constexpr std::chrono::seconds kPatience{10};

// Polls until `condition` holds; false when it does not hold within kPatience.
bool eventually(const std::function<bool()>& condition);

// Handlers wait at the gate until the test opens it. Any thread may open it.
class Gate {
 public:
  void open() { open_ = true; }
  awaitable<> pass();
  int waiting() const { return waiting_; }

 private:
  std::atomic<bool> open_{false};
  std::atomic<int> waiting_{0};
};

// Routes are added in `routes`; starts in the constructor, stops in the destructor. Two loops.
class TestServer {
 public:
  explicit TestServer(const std::function<void(Router&)>& routes, ServerOptions options = {},
                      Authenticator* authenticator = nullptr);
  ~TestServer();

  std::uint16_t port() const { return server_->port(); }
  std::string url(std::string_view path) const;
  Server& server() { return *server_; }
  Runtime& runtime() { return runtime_; }
  Metrics& metrics() { return metrics_; }
  // Drains and waits for it. Later calls do nothing.
  void stop(std::chrono::milliseconds grace = std::chrono::seconds(5));

 private:
  Runtime runtime_;
  Metrics metrics_;
  Router router_;
  std::unique_ptr<Server> server_;
  bool stopped_ = false;
};

struct Reply {
  unsigned status = 0;
  std::map<std::string, std::string> headers;  // names in lowercase
  std::string body;
};

// One TCP connection to 127.0.0.1. Every wait is bounded by kPatience and throws after that.
class RawClient {
 public:
  explicit RawClient(std::uint16_t port);
  ~RawClient();
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  void send(std::string_view bytes);
  // Sends as much as the kernel accepts now; false when the server has closed the connection.
  bool try_send(std::string_view bytes);
  void shutdown_send();
  Reply read_reply(bool head_only = false);
  std::string read_until(std::string_view mark);
  std::string read_to_end();
  // True once the server has closed; skips the bytes before that.
  bool closed_by_peer();
  // Small socket buffers, so that a server's writes block soon.
  void keep_little();

 private:
  bool read_more();

  int fd_;
  std::string in_;
};

// One request on its own connection.
Reply fetch(std::uint16_t port, std::string_view request);
Reply get(std::uint16_t port, std::string_view target);

namespace detail {

inline std::runtime_error failed(std::string_view what) {
  return std::runtime_error(fmt::format("{}: {}", what, std::strerror(errno)));
}

inline bool readable(int fd) {
  pollfd wait{fd, POLLIN, 0};
  const auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(kPatience).count();
  return ::poll(&wait, 1, static_cast<int>(millis)) == 1;
}

}  // namespace detail

inline bool eventually(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

inline awaitable<> Gate::pass() {
  ++waiting_;
  asio::steady_timer timer(co_await asio::this_coro::executor);
  while (!open_) {
    timer.expires_after(std::chrono::milliseconds(1));
    co_await timer.async_wait(asio::use_awaitable);
  }
}

inline TestServer::TestServer(const std::function<void(Router&)>& routes, ServerOptions options,
                              Authenticator* authenticator)
    : runtime_({.threads = 2, .cpu_threads = 1}) {
  routes(router_);
  server_ = std::make_unique<Server>(runtime_, std::move(options), router_, authenticator, metrics_);
  if (auto started = server_->start(); !started) throw Exception(started.error());
  runtime_.start();
}

inline TestServer::~TestServer() {
  stop(std::chrono::milliseconds(0));
}

inline std::string TestServer::url(std::string_view path) const {
  return fmt::format("http://127.0.0.1:{}{}", port(), path);
}

inline void TestServer::stop(std::chrono::milliseconds grace) {
  if (std::exchange(stopped_, true)) return;
  runtime_.run_on(1, server_->stop(grace));
  runtime_.stop();
}

inline RawClient::RawClient(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  if (fd_ < 0) throw detail::failed("socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) throw detail::failed("connect");
}

inline RawClient::~RawClient() {
  ::close(fd_);
}

inline void RawClient::keep_little() {
  const int bytes = 4096;
  ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
}

inline void RawClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0) throw detail::failed("send");
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
}

inline bool RawClient::try_send(std::string_view bytes) {
  const auto n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  return n >= 0 || errno == EAGAIN;
}

inline void RawClient::shutdown_send() {
  ::shutdown(fd_, SHUT_WR);
}

// False at the end of the stream; a reset counts as an end.
inline bool RawClient::read_more() {
  if (!detail::readable(fd_)) throw std::runtime_error(fmt::format("nothing came; so far: '{}'", in_));
  std::array<char, 65536> buffer;
  const auto n = ::recv(fd_, buffer.data(), buffer.size(), 0);
  if (n < 0 && errno != ECONNRESET) throw detail::failed("recv");
  if (n <= 0) return false;
  in_.append(buffer.data(), static_cast<std::size_t>(n));
  return true;
}

inline std::string RawClient::read_until(std::string_view mark) {
  std::size_t at;
  while ((at = in_.find(mark)) == std::string::npos) {
    if (!read_more()) throw std::runtime_error(fmt::format("the server closed; so far: '{}'", in_));
  }
  auto text = in_.substr(0, at + mark.size());
  in_.erase(0, at + mark.size());
  return text;
}

inline std::string RawClient::read_to_end() {
  while (read_more()) {
  }
  return std::exchange(in_, {});
}

inline bool RawClient::closed_by_peer() {
  while (read_more()) {
  }
  return true;
}

inline Reply RawClient::read_reply(bool head_only) {
  const auto head = read_until("\r\n\r\n");
  Reply reply;
  std::from_chars(head.data() + 9, head.data() + 12, reply.status);
  for (std::size_t at = head.find("\r\n") + 2; at + 2 < head.size();) {
    const auto end = head.find("\r\n", at);
    const auto colon = head.find(": ", at);
    auto name = head.substr(at, colon - at);
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    reply.headers[name] = head.substr(colon + 2, end - colon - 2);
    at = end + 2;
  }
  const auto length = reply.headers.find("content-length");
  if (head_only || length == reply.headers.end()) return reply;
  const auto size = std::stoul(length->second);
  while (in_.size() < size) {
    if (!read_more()) throw std::runtime_error("the server closed in the middle of a body");
  }
  reply.body = in_.substr(0, size);
  in_.erase(0, size);
  return reply;
}

inline Reply fetch(std::uint16_t port, std::string_view request) {
  RawClient client(port);
  client.send(request);
  return client.read_reply();
}

inline Reply get(std::uint16_t port, std::string_view target) {
  return fetch(port, fmt::format("GET {} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", target));
}

}  // namespace fencepost::http::testing

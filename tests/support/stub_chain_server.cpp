#include "tests/support/stub_chain_server.hpp"

#include <system_error>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace fencepost::test {
namespace {

constexpr std::size_t kMaxBody = 64 * 1024 * 1024;  // a batch of thousands

[[noreturn]] void fail_with_errno(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

awaitable<> wait(std::chrono::milliseconds delay) {
  asio::steady_timer timer(co_await asio::this_coro::executor, delay);
  co_await timer.async_wait(use_tuple);
}

}  // namespace

StubChainServer::StubChainServer(StubChainServerOptions options)
    : chain_(options.chain),
      rpc_(chain_),
      runtime_({.threads = options.threads, .cpu_threads = 1}),
      interval_(options.interval) {
  reserve_port(options.port);
  router_.add(
      {http::Verb::kPost, "/", http::Access::open(), [this](http::Request& request) { return answer(request); }});
  listen();
  runtime_.start();
  miner_ = std::thread([this] { mine_regularly(); });
}

StubChainServer::~StubChainServer() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  miner_.join();
  {
    const std::lock_guard lock(control_);
    hang_up();
  }
  runtime_.stop();
}

std::string StubChainServer::url() const {
  return fmt::format("http://127.0.0.1:{}", port_);
}

// Several sockets can be bound to one port if all allow it and none listens; then one of them can listen.
void StubChainServer::reserve_port(std::uint16_t wanted) {
  reserved_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!reserved_) fail_with_errno("socket");
  const int yes = 1;
  if (::setsockopt(reserved_.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0) fail_with_errno("SO_REUSEADDR");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(wanted);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::bind(reserved_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    fail_with_errno("bind");
  socklen_t size = sizeof address;
  if (::getsockname(reserved_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) fail_with_errno("getsockname");
  port_ = ntohs(address.sin_port);
}

void StubChainServer::listen() {
  http::ServerOptions options;
  options.port = port_;
  options.max_body_bytes = kMaxBody;
  server_ = std::make_unique<http::Server>(runtime_, options, router_, nullptr, metrics_);
  if (auto started = server_->start(); !started) throw Exception(std::move(started.error()));
}

void StubChainServer::hang_up() {
  if (!server_) return;
  runtime_.run_on(0, server_->stop(std::chrono::milliseconds(0)));
  server_.reset();
}

void StubChainServer::set_interval(std::optional<std::chrono::milliseconds> interval) {
  {
    const std::lock_guard lock(mutex_);
    interval_ = interval;
  }
  changed_.notify_all();
}

void StubChainServer::set_trouble(Trouble trouble) {
  const std::lock_guard lock(control_);
  trouble_ = trouble;
  if (trouble == Trouble::kRefuses) {
    hang_up();
  } else if (!server_) {
    listen();
  }
}

void StubChainServer::set_delay(std::chrono::milliseconds delay) {
  delay_ = delay;
}

awaitable<http::Response> StubChainServer::answer(http::Request& request) {
  if (const auto delay = delay_.load(); delay.count() > 0) co_await wait(delay);
  switch (trouble_.load()) {
    case Trouble::kHttp500:
      co_return http::Response::text(500, "<html><body>Internal Server Error</body></html>", "text/html");
    case Trouble::kGarbage:
      co_return http::Response::text(200, "\x1f\x8b{\"jsonrpc\": nope", "application/json");
    case Trouble::kErrorInside200:
      co_return http::Response::text(200, rpc_.refuse(request.body()), "application/json");
    case Trouble::kRefuses:
    case Trouble::kNone:
      break;
  }
  co_return http::Response::text(200, rpc_.answer(request.body()), "application/json");
}

void StubChainServer::mine_regularly() {
  std::unique_lock lock(mutex_);
  auto due = std::chrono::steady_clock::now();
  while (!stopping_) {
    const auto interval = interval_;
    const auto is_changed = [&] { return stopping_ || interval_ != interval; };
    if (!interval) {
      changed_.wait(lock, is_changed);
      due = std::chrono::steady_clock::now();
      continue;
    }
    due = std::max(due + *interval, std::chrono::steady_clock::now());  // skips blocks that are late
    if (changed_.wait_until(lock, due, is_changed)) {
      due = std::chrono::steady_clock::now();
      continue;
    }
    lock.unlock();
    chain_.mine();
    lock.lock();
  }
}

}  // namespace fencepost::test

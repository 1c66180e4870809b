#include "http/server.hpp"

#include <fmt/format.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>

#include "http/loop_server.hpp"
#include "runtime/log.hpp"

namespace fencepost::http {

using asio::ip::tcp;

Server::Server(Runtime& runtime, ServerOptions options, const Router& router, Authenticator* authenticator,
               Metrics& metrics)
    : runtime_(runtime),
      options_(std::move(options)),
      acceptor_(runtime.executor(0)),
      accepting_(runtime.executor(0), "http acceptor", 1) {
  for (const auto& entry : router.routes()) {
    if (authenticator == nullptr && entry.access != "open") {
      throw Exception(internal("no_authenticator", fmt::format("route {} needs an authenticator", entry.pattern)));
    }
  }
  for (std::size_t i = 0; i < runtime.size(); ++i) {
    loops_.push_back(std::make_unique<LoopServer>(runtime.executor(i), options_, router, authenticator, metrics));
  }
}

Server::~Server() = default;

Result<void> Server::start() {
  if (auto listening = listen(); !listening) return listening;
  started_ = true;
  for (auto& loop : loops_) asio::post(loop->executor(), [&loop = *loop] { loop.start(); });
  asio::post(runtime_.executor(0), [this] { [[maybe_unused]] const bool spawned = accepting_.spawn(accept()); });
  return {};
}

Result<void> Server::listen() {
  const auto where = fmt::format("{}:{}", options_.host, options_.port);
  boost::system::error_code ec;
  const auto address = asio::ip::make_address(options_.host == "localhost" ? "127.0.0.1" : options_.host, ec);
  if (ec) {
    return fail(invalid(
        "bad_listen_address",
        fmt::format("'{}' is not an address to listen on; expected an IP address or localhost", options_.host)));
  }
  const tcp::endpoint endpoint(address, options_.port);
  acceptor_.open(endpoint.protocol(), ec);
  // SO_REUSEADDR only lets a restart bind while old connections are in TIME_WAIT. SO_REUSEPORT would let a second
  // process share the port, and each would get some of the requests.
  if (!ec) acceptor_.set_option(tcp::acceptor::reuse_address(true), ec);
  if (!ec) acceptor_.bind(endpoint, ec);
  if (!ec) acceptor_.listen(options_.backlog, ec);
  if (ec == asio::error::address_in_use) {
    return fail(conflict("port_taken", fmt::format("another process listens on {}: stop it, or choose another port "
                                                   "(`ss -ltnp` shows the process)",
                                                   where))
                    .with("listen", where));
  }
  if (ec) return fail(unavailable("listen_failed", fmt::format("cannot listen on {}: {}", where, ec.message())));
  port_ = acceptor_.local_endpoint().port();
  return {};
}

awaitable<> Server::accept() {
  asio::steady_timer pause(runtime_.executor(0));
  for (std::size_t turn = 0;; turn = (turn + 1) % loops_.size()) {
    auto& loop = *loops_[turn];
    auto [ec, socket] = co_await acceptor_.async_accept(loop.executor(), use_tuple);
    if (ec == asio::error::operation_aborted) co_return;
    if (ec) {
      // Most likely the process is out of descriptors: wait until some connections have ended.
      log::warn("cannot accept a connection", {{"error", ec.message()}});
      pause.expires_after(std::chrono::milliseconds(100));
      co_await pause.async_wait(use_tuple);
    } else if (connections() >= options_.max_connections) {
      asio::post(loop.executor(), [&loop, s = std::move(socket)]() mutable { loop.reject(std::move(s)); });
    } else {
      asio::post(loop.executor(),
                 [&loop, s = std::move(socket), slot = ConnectionSlot(open_, loop.connections_gauge())]() mutable {
                   loop.adopt(std::move(s), std::move(slot));
                 });
    }
  }
}

awaitable<> Server::stop_accepting() {
  co_await accepting_.stop(std::chrono::milliseconds(0));
  boost::system::error_code ignored;  // close() releases the socket even when it fails
  acceptor_.close(ignored);
}

awaitable<> Server::stop(std::chrono::milliseconds grace) {
  // A cancellation would be emitted on another loop's thread, which cancellation signals do not allow.
  co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
  if (!started_) co_return;
  const auto deadline = std::chrono::steady_clock::now() + grace;
  co_await asio::co_spawn(runtime_.executor(0), stop_accepting(), asio::use_awaitable);
  // Accepted sockets were posted to their loops before this, so no loop gets another one after begin_drain.
  for (auto& loop : loops_) co_await asio::co_spawn(loop->executor(), loop->begin_drain(), asio::use_awaitable);
  for (auto& loop : loops_) co_await asio::co_spawn(loop->executor(), loop->finish(deadline), asio::use_awaitable);
}

}  // namespace fencepost::http

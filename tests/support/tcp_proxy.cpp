#include "tests/support/tcp_proxy.hpp"

#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <future>
#include <list>
#include <optional>
#include <thread>
#include <vector>

#include <sys/socket.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>

#include "runtime/async.hpp"

namespace fencepost::test {
namespace {

using asio::ip::tcp;
using Socket = asio::generic::stream_protocol::socket;
using Endpoint = asio::generic::stream_protocol::endpoint;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ReusePort = asio::detail::socket_option::boolean<SOL_SOCKET, SO_REUSEPORT>;

constexpr std::size_t kChunk = 16384;
constexpr std::size_t kHeldChunks = 64;  // per direction and connection; beyond that the sender waits

std::size_t index_of(Direction direction) {
  return direction == Direction::kToServer ? 0 : 1;
}

// Data that was read at `at` and not passed on yet. Empty data means the end of the stream.
struct Held {
  steady_clock::time_point at;
  std::string data;
};

// One direction of one connection. A reader fills `held` and waits for `room`. A writer empties `held` and waits for
// `changed`.
struct Lane {
  Lane(const asio::any_io_executor& executor, Direction d) : direction(d), changed(executor), room(executor) {}

  Direction direction;
  std::deque<Held> held;
  asio::steady_timer changed;
  asio::steady_timer room;
  bool done = false;
};

struct Connection {
  Connection(const asio::any_io_executor& executor, Socket c)
      : client(std::move(c)),
        server(executor),
        lanes{Lane(executor, Direction::kToServer), Lane(executor, Direction::kToClient)} {}

  Socket client;
  Socket server;
  std::array<Lane, 2> lanes;
  bool closed = false;
};
using ConnectionPtr = std::shared_ptr<Connection>;

void close_with_reset(Socket& socket) {
  boost::system::error_code ignored;  // closed already, or not a TCP socket: nothing to reset
  socket.set_option(asio::socket_base::linger(true, 0), ignored);
  socket.close(ignored);
}

}  // namespace

struct TcpProxy::World {
  explicit World(Endpoint server) : target(std::move(server)), reservation(context), acceptor(context) {
    // Bound for the lifetime of the proxy and never listening: keeps the port while the proxy refuses clients.
    reservation.open(tcp::v4());
    reservation.set_option(ReusePort(true));
    reservation.bind({asio::ip::address_v4::loopback(), 0});
    port = reservation.local_endpoint().port();
    listen();
    thread = std::thread([this] { context.run(); });
  }

  ~World() {
    run([this] {
      stop_listening();
      cut_all();
      guard.reset();
    });
    thread.join();
  }

  // Runs `work` on the proxy's thread and waits for it.
  void run(const std::function<void()>& work) {
    std::promise<void> done;
    asio::post(context, [&] {
      work();
      done.set_value();
    });
    done.get_future().wait();
  }

  void listen() {
    if (acceptor.is_open()) return;
    acceptor.open(tcp::v4());
    acceptor.set_option(ReusePort(true));
    acceptor.bind({asio::ip::address_v4::loopback(), port});
    acceptor.listen();
    asio::co_spawn(context, accept_clients(), asio::detached);
  }

  void stop_listening() {
    boost::system::error_code ignored;
    acceptor.close(ignored);
  }

  void wake_all() {
    for (const auto& connection : connections) {
      for (auto& lane : connection->lanes) lane.changed.cancel();
    }
  }

  void close(const ConnectionPtr& connection) {
    if (connection->closed) return;
    connection->closed = true;
    close_with_reset(connection->client);
    close_with_reset(connection->server);
    for (auto& lane : connection->lanes) {
      lane.changed.cancel();
      lane.room.cancel();
    }
    connections.remove(connection);
    --open;
  }

  void cut_all() {
    while (!connections.empty()) close(connections.front());
  }

  awaitable<> accept_clients() {
    for (;;) {
      auto [ec, client] = co_await acceptor.async_accept(use_tuple);
      if (ec) co_return;
      client.set_option(tcp::no_delay(true));
      ++accepted;
      ++open;
      auto connection = std::make_shared<Connection>(context.get_executor(), Socket(std::move(client)));
      connections.push_back(connection);
      asio::co_spawn(context, black_hole ? swallow(connection) : serve(connection), asio::detached);
    }
  }

  awaitable<> serve(ConnectionPtr connection) {
    auto [ec] = co_await connection->server.async_connect(target, use_tuple);
    if (ec || connection->closed) {
      close(connection);
      co_return;
    }
    boost::system::error_code not_tcp;
    connection->server.set_option(tcp::no_delay(true), not_tcp);
    for (auto& lane : connection->lanes) {
      asio::co_spawn(context, read_lane(connection, lane), asio::detached);
      asio::co_spawn(context, write_lane(connection, lane), asio::detached);
    }
  }

  awaitable<> swallow(ConnectionPtr connection) {
    std::array<char, kChunk> chunk;
    for (;;) {
      auto [ec, size] = co_await connection->client.async_read_some(asio::buffer(chunk), use_tuple);
      if (ec) break;
    }
    close(connection);
  }

  // Waits until that time, or until the timer is cancelled.
  static awaitable<> wait(asio::steady_timer& timer, steady_clock::time_point until = steady_clock::time_point::max()) {
    timer.expires_at(until);
    co_await timer.async_wait(use_tuple);
  }

  awaitable<> read_lane(ConnectionPtr connection, Lane& lane) {
    auto& from = lane.direction == Direction::kToServer ? connection->client : connection->server;
    std::vector<char> chunk(kChunk);
    while (!connection->closed) {
      if (lane.held.size() >= kHeldChunks) {
        co_await wait(lane.room);
        continue;
      }
      auto [ec, size] = co_await from.async_read_some(asio::buffer(chunk), use_tuple);
      lane.held.push_back({steady_clock::now(), std::string(chunk.data(), size)});
      lane.changed.cancel();
      if (ec) co_return;
    }
  }

  awaitable<> write_lane(ConnectionPtr connection, Lane& lane) {
    while (!connection->closed) {
      const auto mode = index_of(lane.direction);
      if (lane.held.empty() || paused[mode]) {
        co_await wait(lane.changed);
        continue;
      }
      const auto due = lane.held.front().at + delays[mode];
      if (steady_clock::now() < due) {
        co_await wait(lane.changed, due);
        continue;
      }
      auto next = std::move(lane.held.front());
      lane.held.pop_front();
      lane.room.cancel();
      if (next.data.empty()) {
        end_lane(connection, lane);
        co_return;
      }
      co_await pass_on(connection, lane, std::move(next.data));
    }
  }

  void end_lane(const ConnectionPtr& connection, Lane& lane) {
    auto& to = lane.direction == Direction::kToServer ? connection->server : connection->client;
    boost::system::error_code gone;
    to.shutdown(Socket::shutdown_send, gone);
    lane.done = true;
    if (connection->lanes[0].done && connection->lanes[1].done) close(connection);
  }

  awaitable<> pass_on(ConnectionPtr connection, Lane& lane, std::string data) {
    const auto mode = index_of(lane.direction);
    auto& to = lane.direction == Direction::kToServer ? connection->server : connection->client;
    auto& budget = cut_budget[mode];
    const bool last = budget && *budget <= data.size();
    if (last) data.resize(*budget);
    if (budget) *budget -= data.size();
    auto [ec, size] = co_await asio::async_write(to, asio::buffer(data), use_tuple);
    passed[mode] += size;
    if (last) {
      budget.reset();
      cut_all();
    } else if (ec) {
      close(connection);
    }
  }

  asio::io_context context{1};
  asio::executor_work_guard<asio::io_context::executor_type> guard{context.get_executor()};
  Endpoint target;
  tcp::socket reservation;
  tcp::acceptor acceptor;
  std::uint16_t port = 0;
  std::list<ConnectionPtr> connections;

  // Indexed by direction, see index_of.
  std::array<milliseconds, 2> delays{};
  std::array<bool, 2> paused{};
  std::array<std::optional<std::size_t>, 2> cut_budget;
  bool black_hole = false;

  std::atomic<std::size_t> accepted{0};
  std::atomic<std::size_t> open{0};
  std::array<std::atomic<std::size_t>, 2> passed{};
  std::thread thread;
};

TcpProxy::TcpProxy(const std::filesystem::path& unix_socket)
    : world_(std::make_unique<World>(Endpoint(asio::local::stream_protocol::endpoint(unix_socket.string())))) {}

TcpProxy::TcpProxy(const std::string& ipv4, std::uint16_t port)
    : world_(std::make_unique<World>(Endpoint(tcp::endpoint(asio::ip::make_address_v4(ipv4), port)))) {}

TcpProxy::~TcpProxy() = default;

std::uint16_t TcpProxy::port() const {
  return world_->port;
}

void TcpProxy::pass() {
  world_->run([this] {
    world_->delays = {};
    world_->paused = {};
    world_->cut_budget = {};
    world_->black_hole = false;
    world_->listen();
    world_->wake_all();
  });
}

void TcpProxy::delay(milliseconds to_server, milliseconds to_client) {
  world_->run([this, to_server, to_client] {
    world_->delays = {to_server, to_client};
    world_->wake_all();
  });
}

void TcpProxy::cut() {
  world_->run([this] { world_->cut_all(); });
}

void TcpProxy::cut_after(Direction direction, std::size_t bytes) {
  world_->run([this, direction, bytes] { world_->cut_budget[index_of(direction)] = bytes; });
}

void TcpProxy::refuse() {
  world_->run([this] { world_->stop_listening(); });
}

void TcpProxy::half_open(Direction direction) {
  world_->run([this, direction] { world_->paused[index_of(direction)] = true; });
}

void TcpProxy::half_open() {
  world_->run([this] { world_->paused = {true, true}; });
}

void TcpProxy::blackhole() {
  world_->run([this] {
    world_->paused = {true, true};
    world_->black_hole = true;
  });
}

std::size_t TcpProxy::accepted() const {
  return world_->accepted;
}
std::size_t TcpProxy::bytes(Direction direction) const {
  return world_->passed[index_of(direction)];
}
std::size_t TcpProxy::open() const {
  return world_->open;
}

}  // namespace fencepost::test

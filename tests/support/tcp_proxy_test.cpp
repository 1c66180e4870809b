#include "tests/support/tcp_proxy.hpp"

#include <thread>

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include "runtime/async.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/temp_dir.hpp"

namespace fencepost::test {
namespace {

using namespace std::chrono_literals;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::steady_clock;

// An echo server: each client has a coroutine of its own.
template <class Protocol>
class EchoServer {
 public:
  explicit EchoServer(const typename Protocol::endpoint& at) : acceptor_(context_, at) {
    asio::co_spawn(context_, accept(), asio::detached);
    thread_ = std::thread([this] { context_.run(); });
  }
  ~EchoServer() {
    context_.stop();
    thread_.join();
  }
  auto endpoint() const { return acceptor_.local_endpoint(); }

 private:
  using Socket = typename Protocol::socket;

  awaitable<> accept() {
    for (;;) {
      auto [ec, socket] = co_await acceptor_.async_accept(use_tuple);
      if (ec) co_return;
      asio::co_spawn(context_, echo(std::move(socket)), asio::detached);
    }
  }
  static awaitable<> echo(Socket socket) {
    std::array<char, 4096> chunk;
    for (;;) {
      auto [ec, size] = co_await socket.async_read_some(asio::buffer(chunk), use_tuple);
      if (ec) co_return;
      auto [write_ec, written] = co_await asio::async_write(socket, asio::buffer(chunk.data(), size), use_tuple);
      if (write_ec) co_return;
    }
  }

  asio::io_context context_{1};
  typename Protocol::acceptor acceptor_;
  std::thread thread_;
};

class Client {
 public:
  explicit Client(std::uint16_t port) : socket_(context_) {
    socket_.connect({asio::ip::address_v4::loopback(), port}, refused);
  }

  void send(const std::string& text) { asio::write(socket_, asio::buffer(text)); }
  std::string receive(std::size_t size) {
    std::string text(size, '\0');
    text.resize(asio::read(socket_, asio::buffer(text), ended));
    return text;
  }
  std::string echo(const std::string& text) {
    send(text);
    return receive(text.size());
  }
  // True if there is nothing to read, and no end of stream, for this long.
  bool silent_for(std::chrono::milliseconds time) {
    pollfd watch{socket_.native_handle(), POLLIN, 0};
    return ::poll(&watch, 1, static_cast<int>(time.count())) == 0;
  }
  void close() { socket_.close(); }

  error_code refused;
  error_code ended;

 private:
  asio::io_context context_;
  tcp::socket socket_;
};

class tcp_proxy : public ::testing::Test {
 protected:
  EchoServer<tcp> server_{tcp::endpoint(asio::ip::address_v4::loopback(), 0)};
  TcpProxy proxy_{"127.0.0.1", server_.endpoint().port()};
};

TEST_F(tcp_proxy, passes_bytes_both_ways_and_counts_them) {
  Client client(proxy_.port());
  EXPECT_EQ(client.echo("hello"), "hello");
  const std::string large(1U << 20U, 'x');
  std::thread sender([&] { client.send(large); });
  EXPECT_EQ(client.receive(large.size()), large);
  sender.join();
  EXPECT_EQ(proxy_.accepted(), 1U);
  EXPECT_EQ(proxy_.open(), 1U);
  EXPECT_EQ(proxy_.bytes(Direction::kToServer), large.size() + 5);
  EXPECT_TRUE(eventually([&] { return proxy_.bytes(Direction::kToClient) == large.size() + 5; }));
  client.close();
  EXPECT_TRUE(eventually([&] { return proxy_.open() == 0; }));
}

TEST_F(tcp_proxy, reaches_a_unix_socket) {
  const TempDir dir("proxy");
  const auto path = dir / "socket";
  const EchoServer<asio::local::stream_protocol> server{asio::local::stream_protocol::endpoint(path.string())};
  const TcpProxy proxy(path);
  Client client(proxy.port());
  EXPECT_EQ(client.echo("hello"), "hello");
}

TEST_F(tcp_proxy, delays_each_direction) {
  Client client(proxy_.port());
  ASSERT_EQ(client.echo("a"), "a");
  proxy_.delay(60ms, 40ms);
  const auto begin = steady_clock::now();
  EXPECT_EQ(client.echo("b"), "b");
  EXPECT_GE(steady_clock::now() - begin, 100ms);
}

TEST_F(tcp_proxy, a_delay_is_not_paid_again_for_each_message_behind_another) {
  Client client(proxy_.port());
  proxy_.delay(50ms, 0ms);
  const auto begin = steady_clock::now();
  std::string sent;
  for (char c = 'a'; c <= 'z'; ++c) {
    client.send(std::string(1, c));
    sent += c;
  }
  EXPECT_EQ(client.receive(sent.size()), sent);
  EXPECT_LT(steady_clock::now() - begin, 26 * 50ms);
}

TEST_F(tcp_proxy, a_delay_ends_when_all_passes_again) {
  Client client(proxy_.port());
  proxy_.delay(1h, 0ms);
  client.send("late");
  EXPECT_TRUE(client.silent_for(30ms));
  proxy_.pass();
  EXPECT_EQ(client.receive(4), "late");
}

TEST_F(tcp_proxy, cuts_with_a_reset) {
  Client one(proxy_.port());
  Client two(proxy_.port());
  ASSERT_EQ(one.echo("a"), "a");
  ASSERT_EQ(two.echo("b"), "b");
  proxy_.cut();
  EXPECT_EQ(proxy_.open(), 0U);
  one.receive(1);
  two.receive(1);
  EXPECT_EQ(one.ended, asio::error::connection_reset);
  EXPECT_EQ(two.ended, asio::error::connection_reset);
  Client three(proxy_.port());
  EXPECT_EQ(three.echo("c"), "c");
}

TEST_F(tcp_proxy, cuts_after_so_many_bytes) {
  Client client(proxy_.port());
  ASSERT_EQ(client.echo("warm"), "warm");
  proxy_.cut_after(Direction::kToClient, 3);
  EXPECT_EQ(client.echo("0123456789"), "012");
  EXPECT_EQ(client.ended, asio::error::connection_reset);
  EXPECT_EQ(proxy_.bytes(Direction::kToClient), 4U + 3U);
  Client next(proxy_.port());
  EXPECT_EQ(next.echo("0123456789"), "0123456789") << "it cuts once";
}

TEST_F(tcp_proxy, cuts_before_the_server_has_it_all) {
  Client client(proxy_.port());
  ASSERT_EQ(client.echo("warm"), "warm");
  proxy_.cut_after(Direction::kToServer, 3);
  client.send("0123456789");
  EXPECT_TRUE(eventually([&] { return proxy_.open() == 0; }));
  EXPECT_EQ(proxy_.bytes(Direction::kToServer), 4U + 3U);
}

TEST_F(tcp_proxy, refuses_new_clients_only) {
  Client old(proxy_.port());
  ASSERT_EQ(old.echo("a"), "a");
  proxy_.refuse();
  const Client refused(proxy_.port());
  EXPECT_EQ(refused.refused, asio::error::connection_refused);
  EXPECT_EQ(old.echo("b"), "b");
  proxy_.pass();
  Client welcome(proxy_.port());
  EXPECT_EQ(welcome.echo("c"), "c") << "on the same port as before";
}

TEST_F(tcp_proxy, half_open_holds_one_direction_and_closes_nothing) {
  Client client(proxy_.port());
  ASSERT_EQ(client.echo("a"), "a");
  proxy_.half_open(Direction::kToClient);
  client.send("b");
  EXPECT_TRUE(eventually([&] { return proxy_.bytes(Direction::kToServer) == 2; }));
  EXPECT_TRUE(client.silent_for(30ms));
  proxy_.pass();
  EXPECT_EQ(client.receive(1), "b");
}

TEST_F(tcp_proxy, half_open_hides_the_end_of_the_server) {
  auto server = std::make_unique<EchoServer<tcp>>(tcp::endpoint(asio::ip::address_v4::loopback(), 0));
  TcpProxy proxy("127.0.0.1", server->endpoint().port());
  Client client(proxy.port());
  ASSERT_EQ(client.echo("a"), "a");
  proxy.half_open();
  server.reset();
  EXPECT_TRUE(client.silent_for(30ms));
  proxy.pass();
  client.receive(1);
  EXPECT_TRUE(client.ended);
}

TEST_F(tcp_proxy, a_blackhole_accepts_and_never_answers) {
  Client old(proxy_.port());
  ASSERT_EQ(old.echo("a"), "a");
  proxy_.blackhole();
  Client client(proxy_.port());
  EXPECT_FALSE(client.refused);
  client.send("hello?");
  old.send("b");
  EXPECT_TRUE(client.silent_for(30ms));
  EXPECT_TRUE(old.silent_for(0ms));
  proxy_.pass();
  EXPECT_EQ(old.receive(1), "b");
  EXPECT_TRUE(client.silent_for(30ms));
  client.close();
  EXPECT_TRUE(eventually([&] { return proxy_.open() == 1; }));
}

TEST_F(tcp_proxy, a_server_that_is_not_there_ends_the_client) {
  TcpProxy nowhere("127.0.0.1", 1);
  Client client(nowhere.port());
  client.receive(1);
  EXPECT_TRUE(client.ended);
}

}  // namespace
}  // namespace fencepost::test

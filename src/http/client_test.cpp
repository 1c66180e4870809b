#include "http/client.hpp"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>

#include "http/client_connection.hpp"
#include "http/http_test_support.hpp"
#include "http/sse.hpp"
#include "http/tls_test_support.hpp"
#include "runtime/task_group.hpp"

namespace fencepost::http {
namespace {

using namespace testing;
using asio::ip::tcp;
using std::chrono::milliseconds;
using ::testing::HasSubstr;

// Runs a piece of client code on a loop of its own.
class ClientRun {
 public:
  explicit ClientRun(ClientOptions options = {}) : client_(context_.get_executor(), std::move(options)) {}

  Result<ClientResponse> send(ClientRequest request) { return run(client_.send(std::move(request))); }
  Result<ClientResponse> get(std::string url) { return send({.url = std::move(url)}); }

  template <class T>
  T run(awaitable<T> task) {
    context_.restart();
    auto future = asio::co_spawn(context_, std::move(task), asio::use_future);
    context_.run();
    return future.get();
  }
  Client& client() { return client_; }

 private:
  asio::io_context context_{1};
  Client client_;
};

// Runs a script on each accepted connection, one after the other. Drops the bytes that it reads; the test decides what
// it writes.
class ScriptedPeer {
 public:
  using Script = std::function<awaitable<>(tcp::socket&, int)>;
  explicit ScriptedPeer(Script script) : script_(std::move(script)) {
    asio::co_spawn(context_, serve(), asio::detached);
    thread_ = std::thread([this] { context_.run(); });
  }
  ~ScriptedPeer() {
    context_.stop();
    thread_.join();
  }
  std::string url(std::string_view path = "/") const { return fmt::format("http://127.0.0.1:{}{}", port_, path); }
  int accepted() const { return accepted_; }

 private:
  awaitable<> serve() {
    for (;;) {
      auto socket = co_await acceptor_.async_accept(asio::use_awaitable);
      asio::co_spawn(context_, play(std::move(socket), accepted_++), asio::detached);
    }
  }
  awaitable<> play(tcp::socket socket, int number) { co_await script_(socket, number); }

  Script script_;
  asio::io_context context_{1};
  tcp::acceptor acceptor_{context_, {asio::ip::address_v4::loopback(), 0}};
  std::uint16_t port_ = acceptor_.local_endpoint().port();
  std::atomic<int> accepted_{0};
  std::thread thread_;
};

awaitable<std::string> read_request(tcp::socket& socket) {
  std::string text;
  std::array<char, 4096> buffer{};
  while (text.find("\r\n\r\n") == std::string::npos) {
    const auto [ec, n] = co_await socket.async_read_some(asio::buffer(buffer), use_tuple);
    if (ec) co_return text;
    text.append(buffer.data(), n);
  }
  co_return text;
}

awaitable<> write_text(tcp::socket& socket, std::string text) {
  co_await asio::async_write(socket, asio::buffer(text), use_tuple);
}

// Answers every connection's first request with the same bytes and closes.
ScriptedPeer::Script answers(std::string text) {
  return [text](tcp::socket& socket, int) -> awaitable<> {
    co_await read_request(socket);
    co_await write_text(socket, text);
  };
}

awaitable<Response> echo(Request& request) {
  auto response =
      Response::text(201, fmt::format("{} {} {}", to_string(request.verb()), request.target(), request.body()));
  co_return std::move(response).with("X-Auth", std::string(request.header("Authorization").value_or("none")));
}

void add_routes(Router& router) {
  router.add({Verb::kGet, "/echo", Access::open(), echo});
  router.add({Verb::kPost, "/echo", Access::open(), echo});
}

TEST(client, sends_and_receives) {
  TestServer server(add_routes);
  ClientRun client;
  const auto response = client.send(
      {.method = "POST", .url = server.url("/echo?a=1"), .headers = {{"Content-Type", "text/plain"}}, .body = "hi"});
  ASSERT_TRUE(response) << response.error().to_string();
  EXPECT_EQ(response->status, 201U);
  EXPECT_EQ(response->body, "POST /echo?a=1 hi");
  EXPECT_EQ(response->header("content-TYPE"), "text/plain; charset=utf-8");
  EXPECT_EQ(response->header("x-auth"), "none");
}

TEST(client, credentials_in_the_url_become_basic_authentication) {
  TestServer server(add_routes);
  ClientRun client;
  const auto response = client.get(fmt::format("http://us%65r:p%40ss@127.0.0.1:{}/echo", server.port()));
  ASSERT_TRUE(response);
  EXPECT_EQ(response->header("x-auth"), "Basic dXNlcjpwQHNz");
}

TEST(client, head_has_no_body_to_wait_for) {
  TestServer server(add_routes);
  ClientRun client;
  const auto response = client.send({.method = "HEAD", .url = server.url("/echo")});
  ASSERT_TRUE(response) << response.error().to_string();
  EXPECT_EQ(response->body, "");
}

TEST(client, reuses_its_connection) {
  TestServer server(add_routes);
  ClientRun client;
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(client.get(server.url("/echo")));
  EXPECT_EQ(client.client().connections_opened(), 1U);
  EXPECT_EQ(server.server().connections(), 1U);
}

awaitable<std::vector<Result<ClientResponse>>> many(Client& client, std::string url, int count) {
  const auto executor = co_await asio::this_coro::executor;
  std::vector<Result<ClientResponse>> results;
  asio::steady_timer done(executor, asio::steady_timer::time_point::max());
  for (int i = 0; i < count; ++i) {
    asio::co_spawn(executor, client.send({.url = url}), [&](const std::exception_ptr&, Result<ClientResponse> result) {
      results.push_back(std::move(result));
      done.cancel();
    });
  }
  while (results.size() < static_cast<std::size_t>(count)) {
    done.expires_at(asio::steady_timer::time_point::max());
    co_await done.async_wait(use_tuple);
  }
  co_return results;
}

TEST(client, holds_no_more_connections_than_allowed) {
  TestServer server(add_routes);
  ClientOptions options;
  options.max_connections_per_origin = 3;
  ClientRun client(options);
  const auto results = client.run(many(client.client(), server.url("/echo"), 50));
  for (const auto& result : results) EXPECT_TRUE(result);
  EXPECT_LE(client.client().connections_opened(), 3U);
}

TEST(client, a_full_queue_refuses_the_next_send) {
  ScriptedPeer peer([](tcp::socket& socket, int) -> awaitable<> {
    co_await read_request(socket);
    co_await read_request(socket);  // silence, until the client leaves
  });
  ClientOptions options;
  options.max_connections_per_origin = 1;
  options.max_waiting_per_origin = 1;
  options.total_timeout = milliseconds(200);
  ClientRun client(options);
  const auto results = client.run(many(client.client(), peer.url(), 3));
  std::map<std::string, int> codes;
  for (const auto& result : results) {
    ASSERT_FALSE(result);
    ++codes[result.error().code];
  }
  EXPECT_EQ(codes, (std::map<std::string, int>{{"client_busy", 1}, {"timeout", 2}}));
}

TEST(client, reads_chunks_and_bodies_without_length) {
  ScriptedPeer chunked(
      answers("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"));
  ScriptedPeer to_end(answers("HTTP/1.0 200 OK\r\n\r\nuntil the end"));
  ScriptedPeer interim(answers("HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"));
  ClientRun client;
  EXPECT_EQ(client.get(chunked.url())->body, "abcde");
  EXPECT_EQ(client.get(to_end.url())->body, "until the end");
  EXPECT_EQ(client.get(interim.url())->body, "ok");
}

struct Failure {
  std::string code;
  bool sent;
};

void expect_failure(const Result<ClientResponse>& result, const Failure& expected) {
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, expected.code) << result.error().to_string();
  EXPECT_EQ(may_have_been_sent(result.error()), expected.sent) << result.error().to_string();
}

TEST(client, bad_answers_are_errors) {
  ClientOptions options;
  options.max_body_bytes = 1000;
  options.max_header_bytes = 1000;
  struct Case {
    std::string name, answer, code;
  };
  std::string three_chunks;
  for (int i = 0; i < 3; ++i) three_chunks.append("1f4\r\n").append(500, 'x').append("\r\n");
  for (const auto& [name, answer, code] : std::vector<Case>{
           {"nothing", "", "connection_lost"},
           {"garbage", "garbage\r\n\r\n", "bad_response"},
           {"cut head", "HTTP/1.1 200 OK\r\nContent-", "connection_lost"},
           {"cut body", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", "connection_lost"},
           {"large body", "HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n", "response_too_large"},
           {"large chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + three_chunks,
            "response_too_large"},
           {"large without length", "HTTP/1.1 200 OK\r\n\r\n" + std::string(5000, 'x'), "response_too_large"},
           {"large head", "HTTP/1.1 200 OK\r\nX: " + std::string(5000, 'x') + "\r\n\r\n", "response_too_large"},
           {"bad length", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "bad_response"},
           {"bad chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "bad_response"}}) {
    SCOPED_TRACE(name);
    ScriptedPeer peer(answers(answer));
    ClientRun client(options);
    expect_failure(client.get(peer.url()), {code, true});
    EXPECT_EQ(peer.accepted(), 1);
  }
}

TEST(client, malformed_requests_are_refused_before_sending) {
  ScriptedPeer peer(answers(""));
  ClientRun client;
  expect_failure(client.get("nonsense"), {"bad_url", false});
  expect_failure(client.get("ftp://127.0.0.1/"), {"bad_url", false});
  expect_failure(client.get("http:///x"), {"bad_url", false});
  expect_failure(client.get("http://127.0.0.1:0/"), {"bad_url", false});
  expect_failure(client.get("http://127.0.0.1:99999/"), {"bad_url", false});
  expect_failure(client.get(peer.url("/a b")), {"bad_url", false});
  expect_failure(client.send({.url = peer.url(), .headers = {{"X", "a\r\nY: b"}}}), {"bad_header", false});
  expect_failure(client.send({.url = peer.url(), .headers = {{"X:", "a"}}}), {"bad_header", false});
  expect_failure(client.send({.method = "GET /", .url = peer.url()}), {"bad_header", false});
  EXPECT_EQ(peer.accepted(), 0);
}

TEST(client, a_refused_connection_is_an_error) {
  std::uint16_t port = 0;
  {
    asio::io_context context;
    port = tcp::acceptor(context, {asio::ip::address_v4::loopback(), 0}).local_endpoint().port();
  }
  ClientRun client;
  expect_failure(client.get(fmt::format("http://127.0.0.1:{}/", port)), {"connect_failed", false});
}

TEST(client, a_silent_server_times_out) {
  ScriptedPeer peer([](tcp::socket& socket, int) -> awaitable<> {
    co_await read_request(socket);
    co_await write_text(socket, "HTTP/1.1 200 OK\r\n");
    co_await read_request(socket);
  });
  ClientRun client;
  expect_failure(client.send({.url = peer.url(), .timeout = milliseconds(50)}), {"timeout", true});
}

TEST(client, a_handshake_that_never_ends_times_out) {
  ScriptedPeer peer([](tcp::socket& socket, int) -> awaitable<> {
    while (!(co_await read_request(socket)).empty()) {
    }
  });
  ClientOptions options;
  options.connect_timeout = milliseconds(50);
  ClientRun client(options);
  auto url = peer.url();
  expect_failure(client.get(url.replace(0, 4, "https")), {"timeout", false});
}

awaitable<> ignore(Client& client, std::string url) {
  co_await client.send({.url = std::move(url)});
}

awaitable<> cancel_a_send(Client& client, std::string url, const std::function<bool()>& under_way) {
  asio::io_context& loop = static_cast<asio::io_context&>((co_await asio::this_coro::executor).context());
  TaskGroup group(loop.get_executor(), "test", 1);
  EXPECT_TRUE(group.spawn(ignore(client, std::move(url))));
  asio::steady_timer timer(loop);
  while (!under_way()) {
    timer.expires_after(milliseconds(1));
    co_await timer.async_wait(use_tuple);
  }
  co_await group.stop(milliseconds(0));
}

TEST(client, a_cancelled_send_ends_at_once_and_releases_its_connection_slot) {
  std::atomic<int> requests{0};
  ScriptedPeer peer([&](tcp::socket& socket, int number) -> awaitable<> {
    co_await read_request(socket);
    ++requests;
    if (number > 0) co_await write_text(socket, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    co_await read_request(socket);
  });
  ClientOptions options;
  options.max_connections_per_origin = 1;
  ClientRun client(options);
  const auto before = std::chrono::steady_clock::now();
  client.run(cancel_a_send(client.client(), peer.url(), [&] { return requests == 1; }));
  EXPECT_LT(std::chrono::steady_clock::now() - before, kPatience);
  EXPECT_TRUE(client.get(peer.url()));
}

// Answers the first request of the first connection, then closes it as soon as the second request comes.
ScriptedPeer::Script closes_on_second() {
  return [](tcp::socket& socket, int number) -> awaitable<> {
    for (int i = 0;; ++i) {
      if ((co_await read_request(socket)).empty()) co_return;
      if (number == 0 && i == 1) co_return;
      co_await write_text(socket, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx");
    }
  };
}

TEST(client, an_idempotent_request_survives_a_stale_connection) {
  ScriptedPeer peer(closes_on_second());
  ClientRun client;
  ASSERT_TRUE(client.get(peer.url()));
  const auto again = client.send({.url = peer.url(), .idempotent = true});
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_EQ(peer.accepted(), 2);
}

TEST(client, a_request_with_effects_is_never_sent_twice) {
  ScriptedPeer peer(closes_on_second());
  ClientRun client;
  ASSERT_TRUE(client.get(peer.url()));
  expect_failure(client.send({.method = "POST", .url = peer.url()}), {"connection_lost", true});
  EXPECT_EQ(peer.accepted(), 1);
}

TEST(client, a_connection_closed_while_idle_is_not_used) {
  Gate answered;
  std::atomic<bool> closed{false};
  ScriptedPeer peer([&](tcp::socket& socket, int) -> awaitable<> {
    co_await read_request(socket);
    co_await write_text(socket, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx");
    co_await answered.pass();
    socket.close();
    closed = true;
  });
  ClientRun client;
  ASSERT_TRUE(client.get(peer.url()));
  answered.open();
  ASSERT_TRUE(eventually([&] { return closed.load(); }));
  ASSERT_TRUE(client.send({.method = "POST", .url = peer.url()}));
  EXPECT_EQ(client.client().connections_opened(), 2U);
}

// HTTPS on a port of its own, one answer for each connection.
class TlsPeer {
 public:
  explicit TlsPeer(const TestCertificate& certificate) {
    tls_.use_certificate_chain_file(certificate.certificate_file());
    tls_.use_private_key_file(certificate.key_file(), asio::ssl::context::pem);
    asio::co_spawn(context_, serve(), asio::detached);
    thread_ = std::thread([this] { context_.run(); });
  }
  ~TlsPeer() {
    context_.stop();
    thread_.join();
  }
  std::string url(std::string_view host) const { return fmt::format("https://{}:{}/", host, port_); }

 private:
  awaitable<> serve() {
    for (;;) {
      auto socket = co_await acceptor_.async_accept(asio::use_awaitable);
      asio::co_spawn(context_, answer(std::move(socket)), asio::detached);
    }
  }
  awaitable<> answer(tcp::socket socket) {
    asio::ssl::stream<tcp::socket> stream(std::move(socket), tls_);
    const auto [ec] = co_await stream.async_handshake(asio::ssl::stream_base::server, use_tuple);
    if (ec) co_return;
    std::array<char, 4096> buffer{};
    for (;;) {
      const auto [read_ec, n] = co_await stream.async_read_some(asio::buffer(buffer), use_tuple);
      if (read_ec) co_return;
      const std::string text = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecret";
      co_await asio::async_write(stream, asio::buffer(text), use_tuple);
    }
  }

  asio::io_context context_{1};
  asio::ssl::context tls_{asio::ssl::context::tls_server};
  tcp::acceptor acceptor_{context_, {asio::ip::address_v4::loopback(), 0}};
  std::uint16_t port_ = acceptor_.local_endpoint().port();
  std::thread thread_;
};

TEST(client, tls_refuses_a_self_signed_certificate_by_default) {
  const TestCertificate certificate("localhost");
  TlsPeer peer(certificate);
  ClientRun client;
  const auto response = client.get(peer.url("localhost"));
  expect_failure(response, {"tls_failed", false});
  EXPECT_THAT(response.error().message, HasSubstr("self-signed"));
}

TEST(client, tls_trusts_the_given_authority_for_the_right_name) {
  const TestCertificate certificate("localhost");
  TlsPeer peer(certificate);
  ClientOptions options;
  options.ca_file = certificate.certificate_file();
  ClientRun client(options);
  for (int i = 0; i < 2; ++i) {
    const auto response = client.get(peer.url("localhost"));
    ASSERT_TRUE(response) << response.error().to_string();
    EXPECT_EQ(response->body, "secret");
  }
  EXPECT_EQ(client.client().connections_opened(), 1U);
  expect_failure(client.get(peer.url("127.0.0.1")), {"tls_failed", false});
}

TEST(client, tls_refuses_another_name) {
  const TestCertificate certificate("example.org");
  TlsPeer peer(certificate);
  ClientOptions options;
  options.ca_file = certificate.certificate_file();
  ClientRun client(options);
  expect_failure(client.get(peer.url("localhost")), {"tls_failed", false});
}

TEST(client, a_bad_authority_file_is_refused_at_once) {
  ClientOptions options;
  options.ca_file = "/nonexistent/ca.pem";
  EXPECT_THROW(ClientRun{options}, Exception);
}

Response endless(Request&) {
  return Response::events([](EventStream& stream) -> awaitable<> {
    for (int i = 1; co_await stream.send(std::to_string(i), "", "x");) ++i;
  });
}

TEST(client, gives_an_endless_body_piece_by_piece_until_the_caller_has_enough) {
  TestServer server([](Router& router) {
    router.add(
        {Verb::kGet, "/endless", Access::open(), [](Request& r) -> awaitable<Response> { co_return endless(r); }});
  });
  ClientRun run;
  std::string got;
  const auto response = run.send({.url = server.url("/endless"), .on_body = [&](std::string_view piece) {
                                    got += piece;
                                    return got.size() < 100'000;
                                  }});
  ASSERT_TRUE(response) << response.error().to_string();
  EXPECT_EQ(response->status, 200U);
  EXPECT_EQ(response->body, "");
  EXPECT_TRUE(got.starts_with("id: 1\ndata: x\n\nid: 2\n")) << got.substr(0, 40);
}

TEST(client, collects_the_body_of_an_error_although_pieces_were_asked_for) {
  TestServer server([](Router&) {});
  ClientRun run;
  const auto response = run.send({.url = server.url("/none"), .on_body = [](std::string_view) {
                                    ADD_FAILURE() << "the body of an error is not streamed";
                                    return true;
                                  }});
  ASSERT_TRUE(response) << response.error().to_string();
  EXPECT_EQ(response->status, 404U);
  EXPECT_THAT(response->body, HasSubstr("no_such_path"));
}

TEST(client, a_body_that_stops_is_a_timeout) {
  ScriptedPeer peer([](tcp::socket& socket, int) -> awaitable<> {
    co_await read_request(socket);
    const std::string head = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc";
    co_await asio::async_write(socket, asio::buffer(head), asio::use_awaitable);
    co_await read_request(socket);  // until the client has closed
  });
  ClientRun run;
  std::string got;
  const auto response =
      run.send({.url = peer.url(), .timeout = milliseconds(50), .on_body = [&](std::string_view piece) {
                  got += piece;
                  return true;
                }});
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, "timeout");
  EXPECT_EQ(got, "abc");
}

TEST(client, connects_only_to_addresses_that_are_allowed) {
  TestServer server(add_routes);
  std::vector<std::string> asked;
  ClientRun client({.allows_address = [&](const asio::ip::address& address) {
    asked.push_back(address.to_string());
    return false;
  }});
  const auto response = client.get(server.url("/echo"));
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, "address_not_allowed");
  EXPECT_FALSE(may_have_been_sent(response.error()));
  EXPECT_EQ(asked, std::vector<std::string>{"127.0.0.1"});
  EXPECT_EQ(client.client().connections_opened(), 0U);
}

// A name whose address changes between check and connect: the check sees exactly the addresses that are connected to.
TEST(client, checks_the_addresses_that_a_name_has_at_the_connect) {
  TestServer server(add_routes);
  const auto url = fmt::format("http://localhost:{}/echo", server.port());
  std::vector<asio::ip::address> asked;
  ClientRun client({.allows_address = [&](const asio::ip::address& address) {
    asked.push_back(address);
    return address == asio::ip::address_v4::loopback();
  }});
  const auto response = client.get(url);
  ASSERT_TRUE(response) << response.error().to_string();
  EXPECT_FALSE(asked.empty());
  for (const auto& address : asked) EXPECT_TRUE(address.is_loopback()) << address.to_string();
}

TEST(client, forgets_origins_that_are_not_in_use) {
  std::vector<std::unique_ptr<TestServer>> servers;
  ClientRun client({.max_origins = 2});
  for (int i = 0; i < 4; ++i) {
    servers.push_back(std::make_unique<TestServer>(add_routes));
    ASSERT_TRUE(client.get(servers.back()->url("/echo")));
    EXPECT_LE(client.client().origins(), 2U);
  }
  ASSERT_TRUE(client.get(servers.back()->url("/echo")));
  EXPECT_EQ(client.client().connections_opened(), 4U) << "the newest origin keeps its connection";
  ASSERT_TRUE(client.get(servers.front()->url("/echo")));
  EXPECT_EQ(client.client().connections_opened(), 5U) << "the oldest origin was forgotten";
}

}  // namespace
}  // namespace fencepost::http

// Clients that are broken, slow, greedy or malicious.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "http/http_test_support.hpp"

namespace fencepost::http {
namespace {

using namespace testing;
using std::chrono::milliseconds;

awaitable<Response> echo(Request& request) {
  co_return Response::text(200, std::string(request.body()));
}

awaitable<Response> huge(Request&) {
  co_return Response::text(200, std::string(8 << 20, 'x'));
}

void add_routes(Router& router) {
  router.add({Verb::kPost, "/echo", Access::open(), echo});
  router.add({Verb::kGet, "/echo", Access::open(), echo});
  router.add({Verb::kGet, "/huge", Access::open(), huge});
}

std::string with_nul(std::string text) {
  std::ranges::replace(text, '~', '\0');
  return text;
}

TEST(server_hostile, malformed_requests_are_refused_and_the_connection_closed) {
  struct Case {
    std::string name, request;
    unsigned status;
  };
  std::string many_headers = "GET /echo HTTP/1.1\r\nHost: x\r\n";
  for (int i = 0; i < 200; ++i) many_headers += fmt::format("X-{}: 1\r\n", i);
  many_headers += "\r\n";
  const std::string post = "POST /echo HTTP/1.1\r\nHost: x\r\n";
  const std::vector<Case> cases{
      {"garbage", "\x01\x02\x03 garbage\r\n\r\n", 400},
      {"TLS hello", std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 15), 400},
      {"no version", "GET /echo\r\n\r\n", 400},
      {"HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
      {"bad version", "GET /echo HTTP/9.9\r\nHost: x\r\n\r\n", 505},
      {"relative target", "GET echo HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"bad escape in the query", "GET /echo?a=%zz HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"no Host", "GET /echo HTTP/1.1\r\n\r\n", 400},
      {"two Hosts", "GET /echo HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400},
      {"header without colon", "GET /echo HTTP/1.1\r\nHost: x\r\nnonsense\r\n\r\n", 400},
      {"space before colon", "GET /echo HTTP/1.1\r\nHost : x\r\n\r\n", 400},
      {"bare LF", "GET /echo HTTP/1.1\nHost: x\n\n", 505},
      {"NUL in a header", with_nul("GET /echo HTTP/1.1\r\nHost: x\r\nX-A: a~b\r\n\r\n"), 400},
      {"NUL in the target", with_nul("GET /ec~ho HTTP/1.1\r\nHost: x\r\n\r\n"), 400},
      {"header line over the limit", "GET /echo HTTP/1.1\r\nHost: x\r\nX-A: " + std::string(20000, 'a') + "\r\n\r\n",
       431},
      {"target over the limit", "GET /" + std::string(20000, 'a') + " HTTP/1.1\r\nHost: x\r\n\r\n", 431},
      {"many headers", many_headers, 431},
      {"negative length", post + "Content-Length: -1\r\n\r\n", 400},
      {"huge length", post + "Content-Length: 99999999999999999999999\r\n\r\n", 400},
      {"length with junk", post + "Content-Length: 3x\r\n\r\nabc", 400},
      {"length over the limit", post + "Content-Length: 1048577\r\n\r\n", 413},
      {"two lengths", post + "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc", 400},
      {"two lengths in one", post + "Content-Length: 3, 4\r\n\r\nabc", 400},
      {"length and chunked", post + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {"chunked and length", post + "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n", 400},
      {"chunked twice", post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {"unknown encoding", post + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 501},
      {"chunked not last", post + "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", 501},
      {"chunked in HTTP/1.0", "POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {"bad chunk size", post + "Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n", 400},
      {"negative chunk size", post + "Transfer-Encoding: chunked\r\n\r\n-3\r\nabc\r\n0\r\n\r\n", 400},
      {"overflowing chunk size", post + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nabc\r\n0\r\n\r\n", 400},
      {"chunk without its line break", post + "Transfer-Encoding: chunked\r\n\r\n3\r\nabcXX0\r\n\r\n", 400},
      {"chunk over the limit", post + "Transfer-Encoding: chunked\r\n\r\n100001\r\n", 413},
      {"endless chunk head", post + "Transfer-Encoding: chunked\r\n\r\n1;" + std::string(20000, 'a'), 431},
  };
  TestServer server(add_routes);
  for (const auto& [name, request, status] : cases) {
    SCOPED_TRACE(name);
    RawClient client(server.port());
    client.send(request);
    const auto reply = client.read_reply();
    EXPECT_EQ(reply.status, status) << reply.body;
    EXPECT_EQ(reply.headers.at("content-type"), "application/problem+json");
    EXPECT_FALSE(reply.headers.at("x-request-id").empty());
    EXPECT_EQ(reply.headers.at("connection"), "close");
    EXPECT_EQ(client.read_to_end(), "");
  }
  EXPECT_EQ(get(server.port(), "/echo").status, 200U);
}

TEST(server_hostile, a_body_up_to_the_limit_passes_and_one_byte_more_does_not) {
  ServerOptions options;
  options.max_body_bytes = 10'000;
  TestServer server(add_routes, options);
  const auto sized = [&](std::size_t size) {
    const std::string body(size, 'b');
    return fetch(server.port(),
                 fmt::format("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{}", size, body));
  };
  EXPECT_EQ(sized(10'000).body.size(), 10'000U);
  EXPECT_EQ(sized(10'001).status, 413U);
  EXPECT_EQ(sized(500'000).status, 413U);  // the client can still read why
  const auto chunked = [&](int chunks) {
    std::string request = "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (int i = 0; i < chunks; ++i) request += "3e8\r\n" + std::string(1000, 'c') + "\r\n";
    return fetch(server.port(), request + "0\r\n\r\n");
  };
  EXPECT_EQ(chunked(10).body.size(), 10'000U);
  EXPECT_EQ(chunked(11).status, 413U);
}

TEST(server_hostile, refused_bodies_do_not_become_requests) {
  TestServer server(add_routes);
  RawClient client(server.port());
  client.send(
      "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"
      "0\r\n\r\nGET /echo HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(client.read_reply().status, 400U);
  EXPECT_EQ(client.read_to_end(), "");
}

ServerOptions impatient() {
  ServerOptions options;
  options.header_timeout = milliseconds(100);
  options.body_timeout = milliseconds(100);
  options.write_timeout = milliseconds(100);
  options.idle_timeout = milliseconds(100);
  options.linger_timeout = milliseconds(100);
  return options;
}

// Sends one byte at a time until the server closes the connection.
void drip(RawClient& client, std::string_view endless) {
  asio::io_context context;
  asio::steady_timer timer(context);
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (client.try_send(endless)) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "the server never closes the connection";
    timer.expires_after(milliseconds(5));
    timer.wait();
  }
}

TEST(server_hostile, a_head_sent_byte_by_byte_is_cut_off) {
  TestServer server(add_routes, impatient());
  RawClient client(server.port());
  client.send("GET /echo HTTP/1.1\r\nHost: x\r\nX-A: ");
  drip(client, "a");
  EXPECT_EQ(server.server().connections(), 0U);
}

TEST(server_hostile, a_slow_head_is_answered_with_408) {
  TestServer server(add_routes, impatient());
  RawClient client(server.port());
  client.send("GET /echo HTTP/1.1\r\n");
  const auto reply = client.read_reply();
  EXPECT_EQ(reply.status, 408U);
  EXPECT_THAT(reply.body, ::testing::HasSubstr("request_timeout"));
  EXPECT_TRUE(client.closed_by_peer());
}

TEST(server_hostile, a_body_sent_byte_by_byte_is_cut_off) {
  TestServer server(add_routes, impatient());
  RawClient client(server.port());
  client.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n");
  drip(client, "a");
}

TEST(server_hostile, a_slow_body_is_answered_with_408) {
  TestServer server(add_routes, impatient());
  RawClient client(server.port());
  client.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc");
  EXPECT_EQ(client.read_reply().status, 408U);
  EXPECT_TRUE(client.closed_by_peer());
}

TEST(server_hostile, an_idle_connection_is_closed_without_an_answer) {
  TestServer server(add_routes, impatient());
  RawClient silent(server.port());
  EXPECT_EQ(silent.read_to_end(), "");
  RawClient idle(server.port());
  idle.send("GET /echo HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(idle.read_reply().status, 200U);
  EXPECT_EQ(idle.read_to_end(), "");
}

TEST(server_hostile, a_client_that_does_not_read_is_cut_off) {
  TestServer server(add_routes, impatient());
  RawClient client(server.port());
  client.keep_little();
  client.send("GET /huge HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(eventually([&] { return server.server().connections() == 1; }));
  EXPECT_TRUE(eventually([&] { return server.server().connections() == 0; }));
}

TEST(server_hostile, a_client_that_reads_gets_all_of_a_large_answer) {
  TestServer server(add_routes);
  EXPECT_EQ(get(server.port(), "/huge").body, std::string(8 << 20, 'x'));
}

TEST(server_hostile, a_connection_over_the_limit_is_answered_with_503) {
  ServerOptions options;
  options.max_connections = 2;
  TestServer server(add_routes, options);
  RawClient first(server.port());
  RawClient second(server.port());
  ASSERT_TRUE(eventually([&] { return server.server().connections() == 2; }));
  const auto refused = get(server.port(), "/echo");
  EXPECT_EQ(refused.status, 503U);
  EXPECT_EQ(refused.headers.at("retry-after"), "1");
  EXPECT_THAT(refused.body, ::testing::HasSubstr("too_many_connections"));
  first.send("GET /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(first.read_reply().status, 200U);
  EXPECT_TRUE(first.closed_by_peer());
  ASSERT_TRUE(eventually([&] { return server.server().connections() < 2; }));
  EXPECT_EQ(get(server.port(), "/echo").status, 200U);
  EXPECT_THAT(server.metrics().scrape(), ::testing::HasSubstr("http_connections_rejected_total 1"));
}

TEST(server_hostile, clients_that_disconnect_leave_no_connection_open) {
  TestServer server(add_routes);
  for (const std::string_view part :
       {"", "G", "GET /echo HTTP/1.1\r\n", "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc",
        "GET /huge HTTP/1.1\r\nHost: x\r\n\r\n"}) {
    RawClient client(server.port());
    client.send(part);
  }
  EXPECT_TRUE(eventually([&] { return server.server().connections() == 0; }));
}

}  // namespace
}  // namespace fencepost::http

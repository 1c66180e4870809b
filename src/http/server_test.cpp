#include "http/server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

#include "http/http_test_support.hpp"

namespace fencepost::http {
namespace {

using namespace testing;
using ::testing::HasSubstr;

awaitable<Response> hello(Request&) {
  co_return Response::json(200, {{"hello", "world"}});
}

awaitable<Response> echo(Request& request) {
  co_return Response::text(200, std::string(request.body()));
}

awaitable<Response> number(Request& request) {
  co_return Response::text(200, std::to_string(request.param_id("n")));
}

awaitable<Response> whoami(Request& request) {
  co_return Response::text(200, request.principal() != nullptr ? request.principal()->id : "nobody");
}

awaitable<Response> throws_ours(Request&) {
  throw Exception(conflict("not_leader", "Ask the other node.").after(std::chrono::seconds(2)));
  co_return Response{};
}

awaitable<Response> throws_foreign(Request&) {
  throw std::runtime_error("secret detail");
  co_return Response{};
}

awaitable<Response> injects(Request&) {
  co_return Response::no_content().with("X-A", "b\r\nX-Evil: 1");
}

void add_routes(Router& router) {
  router.add({Verb::kGet, "/hello", Access::open(), hello});
  router.add({Verb::kPost, "/echo", Access::open(), echo});
  router.add({Verb::kGet, "/n/{n:id}", Access::open(), number});
  router.add({Verb::kGet, "/api/thing", Access::open(), hello});
  router.add({Verb::kGet, "/throws/ours", Access::open(), throws_ours});
  router.add({Verb::kGet, "/throws/foreign", Access::open(), throws_foreign});
  router.add({Verb::kGet, "/injects", Access::open(), injects});
}

std::string code_of(const Reply& reply) {
  return boost::json::parse(reply.body).at("code").as_string().c_str();
}

TEST(server, answers_with_the_headers_every_response_has) {
  TestServer server(add_routes);
  const auto reply = get(server.port(), "/hello");
  EXPECT_EQ(reply.status, 200U);
  EXPECT_EQ(reply.body, R"({"hello":"world"})");
  EXPECT_EQ(reply.headers.at("content-type"), "application/json");
  EXPECT_EQ(reply.headers.at("x-content-type-options"), "nosniff");
  EXPECT_EQ(reply.headers.at("connection"), "close");
  EXPECT_EQ(reply.headers.at("date").size(), std::string("Sun, 06 Nov 1994 08:49:37 GMT").size());
  EXPECT_FALSE(reply.headers.at("x-request-id").empty());
  EXPECT_FALSE(reply.headers.contains("cache-control"));
  EXPECT_EQ(get(server.port(), "/api/thing").headers.at("cache-control"), "no-store");
}

TEST(server, keeps_the_connection_alive) {
  TestServer server(add_routes);
  RawClient client(server.port());
  for (int i = 0; i < 3; ++i) {
    client.send("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
    const auto reply = client.read_reply();
    EXPECT_EQ(reply.status, 200U);
    EXPECT_EQ(reply.headers.at("connection"), "keep-alive");
  }
  client.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc");
  EXPECT_EQ(client.read_reply().body, "abc");
  EXPECT_EQ(server.server().connections(), 1U);
}

TEST(server, http_1_0_closes_unless_asked_not_to) {
  TestServer server(add_routes);
  RawClient closing(server.port());
  closing.send("GET /hello HTTP/1.0\r\n\r\n");
  EXPECT_EQ(closing.read_reply().headers.at("connection"), "close");
  EXPECT_TRUE(closing.closed_by_peer());
  RawClient staying(server.port());
  staying.send("GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(staying.read_reply().headers.at("connection"), "keep-alive");
  staying.send("GET /hello HTTP/1.0\r\n\r\n");
  EXPECT_EQ(staying.read_reply().status, 200U);
}

TEST(server, a_hundred_pipelined_requests_are_answered_in_order) {
  TestServer server(add_routes);
  RawClient client(server.port());
  std::string requests;
  for (int i = 0; i < 100; ++i) requests += fmt::format("GET /n/{} HTTP/1.1\r\nHost: x\r\n\r\n", i);
  client.send(requests);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(client.read_reply().body, std::to_string(i));
}

TEST(server, pipelined_bodies_do_not_run_into_each_other) {
  TestServer server(add_routes);
  RawClient client(server.port());
  client.send(
      "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nfirst"
      "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nsec\r\n3;ext=1\r\nond\r\n0\r\nX-T: "
      "1\r\n\r\n"
      "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"
      "GET /n/4 HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(client.read_reply().body, "first");
  EXPECT_EQ(client.read_reply().body, "second");
  EXPECT_EQ(client.read_reply().body, "");
  EXPECT_EQ(client.read_reply().body, "4");
}

TEST(server, a_client_that_stops_sending_still_gets_its_answer) {
  TestServer server(add_routes);
  RawClient client(server.port());
  client.send("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
  client.shutdown_send();
  EXPECT_EQ(client.read_reply().status, 200U);
  EXPECT_TRUE(client.closed_by_peer());
}

TEST(server, a_compressed_body_is_refused_and_the_connection_goes_on) {
  TestServer server(add_routes);
  RawClient client(server.port());
  client.send(
      "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n\x1f\x8b"
      "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Encoding: Identity\r\nContent-Length: 2\r\n\r\nok"
      "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\nContent-Length: 0\r\n\r\n"
      "GET /hello HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n\x1f\x8b"
      "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Encoding: identity\r\nContent-Encoding: gzip\r\n"
      "Content-Length: 2\r\n\r\n\x1f\x8b");
  const auto refused = client.read_reply();
  EXPECT_EQ(refused.status, 415U);
  EXPECT_EQ(code_of(refused), "unsupported_encoding");
  EXPECT_EQ(refused.headers.at("accept-encoding"), "identity");
  EXPECT_EQ(client.read_reply().body, "ok");
  EXPECT_EQ(client.read_reply().status, 200U);
  EXPECT_EQ(client.read_reply().status, 200U) << "no route reads the body of a GET";
  EXPECT_EQ(code_of(client.read_reply()), "unsupported_encoding") << "the second header counts, too";
}

TEST(server, requests_may_come_byte_by_byte) {
  TestServer server(add_routes);
  RawClient client(server.port());
  for (const char c : std::string_view("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                                       "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")) {
    client.send({&c, 1});
  }
  EXPECT_EQ(client.read_reply().body, "abcde");
}

TEST(server, expect_100_continue) {
  TestServer server(add_routes);
  RawClient client(server.port());
  client.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("abc");
  EXPECT_EQ(client.read_reply().body, "abc");
}

TEST(server, head_is_get_without_the_body) {
  TestServer server(add_routes);
  RawClient client(server.port());
  client.send("HEAD /hello HTTP/1.1\r\nHost: x\r\n\r\nGET /n/1 HTTP/1.1\r\nHost: x\r\n\r\n");
  const auto head = client.read_reply(true);
  EXPECT_EQ(head.status, 200U);
  EXPECT_EQ(head.headers.at("content-length"), "17");
  EXPECT_EQ(client.read_reply().body, "1");
}

TEST(server, options_and_405_list_the_allowed_methods) {
  TestServer server(add_routes);
  const auto options = fetch(server.port(), "OPTIONS /hello HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(options.status, 204U);
  EXPECT_EQ(options.headers.at("allow"), "GET, HEAD, OPTIONS");
  EXPECT_FALSE(options.headers.contains("content-length"));
  const auto wrong = fetch(server.port(), "DELETE /hello HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(wrong.status, 405U);
  EXPECT_EQ(wrong.headers.at("allow"), "GET, HEAD, OPTIONS");
  EXPECT_EQ(code_of(wrong), "method_not_allowed");
  EXPECT_EQ(fetch(server.port(), "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n").status, 204U);
  EXPECT_EQ(fetch(server.port(), "BREW /hello HTTP/1.1\r\nHost: x\r\n\r\n").status, 405U);
}

TEST(server, an_unknown_path_is_answered_with_a_problem_document) {
  TestServer server(add_routes);
  const auto reply = get(server.port(), "/nowhere");
  EXPECT_EQ(reply.status, 404U);
  EXPECT_EQ(reply.headers.at("content-type"), "application/problem+json");
  const auto document = boost::json::parse(reply.body);
  EXPECT_EQ(document.at("code"), "no_such_path");
  EXPECT_EQ(document.at("httpRequestId").as_string(), reply.headers.at("x-request-id"));
  const auto bad = get(server.port(), "/n/x");
  EXPECT_EQ(bad.status, 400U);
  EXPECT_EQ(boost::json::parse(bad.body).at("parameter"), "n");
}

TEST(server, a_valid_request_id_is_used_and_otherwise_one_is_generated) {
  TestServer server(add_routes);
  const auto id_for = [&](const std::string& given) {
    return fetch(server.port(), "GET /hello HTTP/1.1\r\nHost: x\r\nX-Request-Id: " + given + "\r\n\r\n")
        .headers.at("x-request-id");
  };
  EXPECT_EQ(id_for("abc-DEF_1.2"), "abc-DEF_1.2");
  EXPECT_EQ(id_for(std::string(64, 'a')), std::string(64, 'a'));
  EXPECT_NE(id_for(std::string(65, 'a')), std::string(65, 'a'));
  EXPECT_NE(id_for("a b"), "a b");
  EXPECT_NE(id_for("a\"b"), "a\"b");
  EXPECT_NE(id_for(""), id_for(""));
}

TEST(server, exceptions_become_problems_and_leak_nothing) {
  TestServer server(add_routes);
  const auto ours = get(server.port(), "/throws/ours");
  EXPECT_EQ(ours.status, 409U);
  EXPECT_EQ(ours.headers.at("retry-after"), "2");
  EXPECT_EQ(code_of(ours), "not_leader");
  RawClient client(server.port());
  client.send("GET /throws/foreign HTTP/1.1\r\nHost: x\r\n\r\n");
  const auto foreign = client.read_reply();
  EXPECT_EQ(foreign.status, 500U);
  EXPECT_EQ(code_of(foreign), "internal");
  EXPECT_EQ(foreign.body.find("secret"), std::string::npos);
  client.send("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(client.read_reply().status, 200U);
}

TEST(server, a_header_value_cannot_inject_another_header) {
  TestServer server(add_routes);
  const auto reply = get(server.port(), "/injects");
  EXPECT_EQ(reply.status, 500U);
  EXPECT_FALSE(reply.headers.contains("x-evil"));
}

class FakeAuthenticator final : public Authenticator {
 public:
  awaitable<Result<Principal>> authenticate(const Request& request) override {
    const auto header = request.header("Authorization").value_or("");
    if (header == "Bearer slow") {
      co_return fail(Error{ErrorKind::kRateLimited, "rate_limited", "Slow down.", {}, std::chrono::seconds(3)});
    }
    if (header == "Bearer broken") throw Exception(unavailable("db_down", "The database is away."));
    if (header == "Bearer reader") co_return Principal{"reader", "", {"tx:read"}, {}};
    if (header == "Bearer admin") co_return Principal{"admin", "", {"admin"}, {}};
    co_return fail(Error{ErrorKind::kUnauthenticated, "unauthenticated", "No such key.", {}, {}});
  }
};

TEST(server, routes_require_their_access) {
  FakeAuthenticator authenticator;
  const auto routes = [](Router& router) {
    router.add({Verb::kGet, "/open", Access::open(), whoami});
    router.add({Verb::kGet, "/any", Access::authenticated(), whoami});
    router.add({Verb::kGet, "/read", Access::scope("tx:read"), whoami});
    router.add({Verb::kGet, "/write", Access::scope("tx:write"), whoami});
  };
  TestServer server(routes, {}, &authenticator);
  struct Case {
    std::string_view path, key;
    unsigned status;
    std::string_view says;
  };
  for (const auto& [path, key, status, says] : {Case{"/open", "", 200, "nobody"},
                                                {"/any", "", 401, "unauthenticated"},
                                                {"/any", "reader", 200, "reader"},
                                                {"/read", "", 401, "unauthenticated"},
                                                {"/read", "wrong", 401, "unauthenticated"},
                                                {"/read", "reader", 200, "reader"},
                                                {"/write", "reader", 403, R"("scope":"tx:write")"},
                                                {"/write", "admin", 200, "admin"},
                                                {"/read", "slow", 429, "rate_limited"},
                                                {"/read", "broken", 503, "db_down"}}) {
    SCOPED_TRACE(fmt::format("{} with '{}'", path, key));
    const auto reply =
        fetch(server.port(), fmt::format("GET {} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\r\n", path, key));
    EXPECT_EQ(reply.status, status);
    EXPECT_THAT(reply.body, HasSubstr(std::string(says)));
    EXPECT_EQ(reply.headers.contains("www-authenticate"), status == 401);
    if (status == 429) EXPECT_EQ(reply.headers.at("retry-after"), "3");
    if (status == 403) EXPECT_EQ(code_of(reply), "insufficient_scope");
  }
}

TEST(server, a_guarded_route_without_authenticator_is_refused) {
  Runtime runtime({.threads = 1, .cpu_threads = 1});
  Metrics metrics;
  Router router;
  router.add({Verb::kGet, "/x", Access::scope("tx:read"), hello});
  EXPECT_THROW(Server(runtime, {}, router, nullptr, metrics), Exception);
}

TEST(server, counts_by_route) {
  TestServer server(add_routes);
  for (int i = 0; i < 3; ++i) get(server.port(), fmt::format("/n/{}", i));
  get(server.port(), "/nowhere");
  EXPECT_TRUE(eventually([&] { return server.server().connections() == 0; }));
  const auto text = server.metrics().scrape();
  EXPECT_THAT(text, HasSubstr(R"(http_requests_total{method="GET",route="/n/{n:id}",status="200"} 3)"));
  EXPECT_THAT(text, HasSubstr(R"(http_requests_total{method="GET",route="unmatched",status="404"} 1)"));
  EXPECT_THAT(text, HasSubstr(R"(http_request_duration_seconds_count{route="/n/{n:id}"} 3)"));
  EXPECT_THAT(text, HasSubstr("http_connections 0"));
}

TEST(server, a_taken_port_is_a_clear_error) {
  TestServer first(add_routes);
  Runtime runtime({.threads = 1, .cpu_threads = 1});
  Metrics metrics;
  Router router;
  ServerOptions options;
  options.port = first.port();
  Server second(runtime, options, router, nullptr, metrics);
  const auto started = second.start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, "port_taken");
  EXPECT_THAT(started.error().message, HasSubstr(fmt::format("127.0.0.1:{}", first.port())));
  options.host = "not an address";
  Server third(runtime, options, router, nullptr, metrics);
  EXPECT_EQ(third.start().error().code, "bad_listen_address");
}

TEST(server, stop_lets_requests_in_flight_finish_and_closes_idle_connections) {
  Gate gate;
  const auto routes = [&](Router& router) {
    add_routes(router);
    router.add({Verb::kGet, "/slow", Access::open(), [&](Request&) -> awaitable<Response> {
                  co_await gate.pass();
                  co_return Response::text(200, "done");
                }});
  };
  TestServer server(routes);
  // The server alternates between its two loops, so each loop has one idle connection.
  std::array<RawClient, 2> idle{RawClient(server.port()), RawClient(server.port())};
  for (auto& client : idle) {
    client.send("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_EQ(client.read_reply().status, 200U);
  }
  RawClient busy(server.port());
  busy.send("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(eventually([&] { return gate.waiting() == 1; }));

  std::thread stopper([&] { server.stop(std::chrono::seconds(30)); });
  for (auto& client : idle) EXPECT_TRUE(client.closed_by_peer());
  EXPECT_THROW(RawClient(server.port()).read_reply(), std::runtime_error);  // the server no longer accepts
  gate.open();
  const auto reply = busy.read_reply();
  EXPECT_EQ(reply.body, "done");
  EXPECT_EQ(reply.headers.at("connection"), "close");
  EXPECT_TRUE(busy.closed_by_peer());
  stopper.join();
  EXPECT_EQ(server.server().connections(), 0U);
}

TEST(server, stop_cancels_requests_that_outlast_the_grace) {
  Gate never;
  const auto routes = [&](Router& router) {
    router.add({Verb::kGet, "/slow", Access::open(), [&](Request&) -> awaitable<Response> {
                  co_await never.pass();
                  co_return Response::no_content();
                }});
  };
  TestServer server(routes);
  RawClient busy(server.port());
  busy.send("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(eventually([&] { return never.waiting() == 1; }));
  server.stop(std::chrono::milliseconds(10));
  EXPECT_TRUE(busy.closed_by_peer());
}

}  // namespace
}  // namespace fencepost::http

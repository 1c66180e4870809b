#include "http/router.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace fencepost::http {
namespace {

constexpr auto kUuid = "0197a3c4-6d1e-7b62-9f3e-2f1d5a7c9b10";

awaitable<Response> nothing(Request&) {
  co_return Response::no_content();
}

Router table(std::initializer_list<std::pair<Verb, std::string>> routes) {
  Router router;
  for (const auto& [verb, pattern] : routes) router.add({verb, pattern, Access::open(), nothing});
  return router;
}

// The result of a lookup as text: "GET /pattern name=value", "404", "405 GET, HEAD" or "400 name".
std::string look_up(const Router& router, std::string_view method, const std::string& target,
                    std::initializer_list<std::string_view> params = {}) {
  Request request;
  request.set_method(method);
  if (!request.set_target(target)) return "bad target";
  const auto match = router.match(request);
  if (std::holds_alternative<Router::NoPath>(match)) return "404";
  if (const auto* verbs = std::get_if<Router::NoVerb>(&match)) return "405 " + verbs->allow;
  if (const auto* error = std::get_if<Error>(&match)) return "400 " + error->context.at(0).second;
  const auto& route = router.route(std::get<Router::Found>(match).index);
  auto text = fmt::format("{} {}", to_string(route.verb), route.pattern);
  for (const auto name : params) text += fmt::format(" {}={}", name, request.param(name));
  return text;
}

TEST(router, finds_routes) {
  const auto router = table({{Verb::kGet, "/"},
                             {Verb::kGet, "/api/v1/tx"},
                             {Verb::kPost, "/api/v1/tx"},
                             {Verb::kGet, "/api/v1/tx/{txId:uuid}"},
                             {Verb::kGet, "/api/v1/tx/stuck"},
                             {Verb::kDelete, "/api/v1/tx/{txId:uuid}/lease"},
                             {Verb::kGet, "/api/v1/block/{n:id}"},
                             {Verb::kGet, "/guild/{name}"},
                             {Verb::kGet, "/guild/{name}/a"},
                             {Verb::kGet, "/guild/x/b"},
                             {Verb::kGet, "/files/{path:rest}"}});
  const std::string uuid = kUuid;
  EXPECT_EQ(look_up(router, "GET", "/"), "GET /");
  EXPECT_EQ(look_up(router, "GET", "/?a=1"), "GET /");
  EXPECT_EQ(look_up(router, "GET", "/api/v1/tx"), "GET /api/v1/tx");
  EXPECT_EQ(look_up(router, "POST", "/api/v1/tx"), "POST /api/v1/tx");
  EXPECT_EQ(look_up(router, "HEAD", "/api/v1/tx"), "GET /api/v1/tx");
  EXPECT_EQ(look_up(router, "GET", "/api/v1/tx/stuck"), "GET /api/v1/tx/stuck");
  EXPECT_EQ(look_up(router, "GET", "/%61pi/v1/tx"), "GET /api/v1/tx");
  EXPECT_EQ(look_up(router, "GET", "/api/v1/tx/" + uuid, {"txId"}), "GET /api/v1/tx/{txId:uuid} txId=" + uuid);
  EXPECT_EQ(look_up(router, "DELETE", "/api/v1/tx/0197A3C4-6D1E-7B62-9F3E-2F1D5A7C9B10/lease", {"txId"}),
            "DELETE /api/v1/tx/{txId:uuid}/lease txId=" + uuid);
  EXPECT_EQ(look_up(router, "GET", "/api/v1/block/12", {"n"}), "GET /api/v1/block/{n:id} n=12");
  EXPECT_EQ(look_up(router, "GET", "/api/v1/block/0", {"n"}), "GET /api/v1/block/{n:id} n=0");
  EXPECT_EQ(look_up(router, "GET", "/guild/a%20b%2Fc", {"name"}), "GET /guild/{name} name=a b/c");
  EXPECT_EQ(look_up(router, "GET", "/guild/x", {"name"}), "GET /guild/{name} name=x");
  EXPECT_EQ(look_up(router, "GET", "/guild/x/a", {"name"}), "GET /guild/{name}/a name=x");
  EXPECT_EQ(look_up(router, "GET", "/guild/x/b"), "GET /guild/x/b");
  EXPECT_EQ(look_up(router, "GET", "/files/a/b%20c.js", {"path"}), "GET /files/{path:rest} path=a/b c.js");
}

TEST(router, says_why_there_is_no_route) {
  const auto router = table({{Verb::kGet, "/tx"},
                             {Verb::kPost, "/tx"},
                             {Verb::kPut, "/tx/{id:uuid}"},
                             {Verb::kGet, "/block/{n:id}"},
                             {Verb::kGet, "/name/{name}"},
                             {Verb::kGet, "/files/{path:rest}"}});
  struct Case {
    std::string_view method;
    std::string target, expected;
  };
  const std::vector<Case> cases{
      {"GET", "/", "404"},
      {"GET", "/tx/", "404"},
      {"GET", "//tx", "404"},
      {"GET", "/Tx", "404"},
      {"GET", "/tx/a/b", "404"},
      {"GET", "/name/", "404"},
      {"GET", "/files/", "404"},
      {"OPTIONS", "*", "404"},
      {"DELETE", "/tx", "405 GET, HEAD, POST, OPTIONS"},
      {"OPTIONS", "/tx", "405 GET, HEAD, POST, OPTIONS"},
      {"BREW", "/tx", "405 GET, HEAD, POST, OPTIONS"},
      {"GET", std::string("/tx/") + kUuid, "405 PUT, OPTIONS"},
      {"PUT", "/tx/7", "400 id"},
      {"PUT", std::string("/tx/") + kUuid + "0", "400 id"},
      {"GET", "/block/x", "400 n"},
      {"GET", "/block/0x10", "400 n"},
      {"GET", "/block/99999999999999999999", "400 n"},
      {"GET", "/block/007", "400 n"},
      {"GET", "/block/%307", "400 n"},
      {"GET", "/block/-1", "400 n"},
      {"GET", "/name/%", "400 name"},
      {"GET", "/name/%00", "400 name"},
      {"GET", "/name/%FF", "400 name"},
      {"GET", "/files/../etc/passwd", "400 path"},
      {"GET", "/files/a/%2e%2e/b", "400 path"},
      {"GET", "/files/a%2f..%2fb", "400 path"},
  };
  for (const auto& [method, target, expected] : cases) {
    SCOPED_TRACE(fmt::format("{} {}", method, target));
    EXPECT_EQ(look_up(router, method, target), expected);
  }
}

TEST(router, a_path_of_any_depth_is_answered) {
  const auto router = table({{Verb::kGet, "/a/{x}"}});
  std::string deep;
  for (int i = 0; i < 5000; ++i) deep += "/a";
  EXPECT_EQ(look_up(router, "GET", deep), "404");
}

TEST(router, refuses_malformed_and_conflicting_routes) {
  struct Case {
    std::string_view first, second;
  };
  for (const auto& [first, second] : {Case{"/a", "/a"},
                                      {"/a/{x}", "/a/{x}"},
                                      {"/a/{x}", "/a/{y}"},
                                      {"/a/{x:id}", "/a/{x:uuid}/b"},
                                      {"/", "a"},
                                      {"/", ""},
                                      {"/", "/a//b"},
                                      {"/", "/a/"},
                                      {"/", "/{x"},
                                      {"/", "/x}"},
                                      {"/", "/{}"},
                                      {"/", "/{:id}"},
                                      {"/", "/{x:}"},
                                      {"/", "/{x:float}"},
                                      {"/", "/{x-y}"},
                                      {"/", "/a{x}"},
                                      {"/", "/{p:rest}/a"},
                                      {"/", "/a?b"},
                                      {"/", "/{x}/b/{x}"}}) {
    SCOPED_TRACE(second);
    auto router = table({{Verb::kGet, std::string(first)}});
    try {
      router.add({Verb::kGet, std::string(second), Access::open(), nothing});
      ADD_FAILURE() << "was accepted";
    } catch (const Exception& refused) {
      EXPECT_EQ(refused.error().code, "bad_route");
    }
  }
}

TEST(router, lists_its_routes_in_order) {
  Router router;
  router.add({Verb::kPost, "/b", Access::scope("tx:write"), nothing});
  router.add({Verb::kGet, "/a/{x:id}", Access::open(), nothing});
  router.add({Verb::kGet, "/c", Access::authenticated(), nothing});
  const auto routes = router.routes();
  ASSERT_EQ(routes.size(), 3U);
  EXPECT_EQ(routes[0].pattern, "/b");
  EXPECT_EQ(routes[0].verb, Verb::kPost);
  EXPECT_EQ(routes[0].access, "tx:write");
  EXPECT_EQ(routes[1].access, "open");
  EXPECT_EQ(routes[2].access, "authenticated");
}

TEST(router, a_secret_parameter_is_given_and_not_logged) {
  Router router;
  router.add({Verb::kPost, "/rpc/{chainId:id}/{key:secret}", Access::open(), nothing});
  Request request;
  request.set_method("POST");
  ASSERT_TRUE(request.set_target("/rpc/1/my%20key?x=1"));
  ASSERT_TRUE(std::holds_alternative<Router::Found>(router.match(request)));
  EXPECT_EQ(request.path_secret(), "my key");
  EXPECT_EQ(request.log_path(), "/rpc/1/***");
  request.reset();
  EXPECT_EQ(request.path_secret(), std::nullopt);
}

}  // namespace
}  // namespace fencepost::http

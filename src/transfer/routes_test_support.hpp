// The economy's routes on a real database, called as the server calls them once the key and its scope are checked. The
// node connects as a member of fencepost_economy_node, as one that does not own the schema. No coordinator runs: a pool
// transfer keeps the status that its checks gave it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

#include "http/problem.hpp"
#include "tests/support/postgres.hpp"
#include "tests/support/role.hpp"
#include "tests/support/with_pool.hpp"
#include "transfer/routes.hpp"

namespace fencepost::transfer {

struct Said {
  unsigned status = 0;
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;

  boost::json::object json() const { return boost::json::parse(body).as_object(); }
  // A member's text; "null" for null, "-" when there is none.
  std::string text(std::string_view member) const {
    const auto document = json();
    const auto* value = document.if_contains(member);
    if (value == nullptr) return "-";
    return value->is_string() ? std::string(value->get_string()) : boost::json::serialize(*value);
  }
  // "422 cooldown", or just "201".
  std::string outcome() const { return std::to_string(status) + (status >= 400 ? " " + text("code") : std::string()); }
  std::string header(std::string_view name) const {
    for (const auto& [key, value] : headers) {
      if (key == name) return value;
    }
    return {};
  }
};

class RoutesTest : public testing::Test {
 protected:
  using Guilds = std::optional<std::vector<std::string>>;

  RoutesTest() { add_routes(router, {service, database, ids}); }
  ~RoutesTest() override {
    runtime.run_on(0, service.stop(std::chrono::seconds(2)));
    runtime.run_on(0, database.stop(std::chrono::seconds(2)));
    runtime.stop();
  }
  void SetUp() override {
    db.exec("GRANT fencepost_economy_node TO " + role.name());
    runtime.start();
    runtime.run_on(0, database.start());
    service.start();
  }

  // Calls with a key that is restricted to these guilds; empty: not restricted.
  using Headers = std::vector<std::pair<std::string, std::string>>;
  Said call(std::string_view verb, std::string_view target, std::string body = {}, Guilds guilds = {},
            const Headers& headers = {}) {
    http::Request request;
    request.set_method(verb);
    EXPECT_TRUE(request.set_target(target)) << target;
    request.mutable_body() = std::move(body);
    for (const auto& [name, value] : headers) request.add_header(name, value);
    http::Principal principal{.id = "key-1", .label = "bot", .scopes = {"admin"}, .restrictions = {}};
    if (guilds) principal.restrictions.emplace(kGuildKind, std::move(*guilds));
    request.set_principal(std::move(principal));
    auto response = runtime.run_on(0, answer(request));
    return {.status = response.status, .body = std::move(response.body), .headers = std::move(response.headers)};
  }
  Said post(std::string_view target, std::string body = {}, Guilds guilds = {}) {
    return call("POST", target, std::move(body), std::move(guilds));
  }
  Said post_with_key(std::string_view target, std::string body, const std::string& key) {
    return call("POST", target, std::move(body), {}, {{"Idempotency-Key", key}});
  }
  Said get(std::string_view target, Guilds guilds = {}) { return call("GET", target, {}, std::move(guilds)); }

  // Member 1 of guild 7 gets this much.
  void mint(std::int64_t amount) {
    const auto said =
        post("/api/v1/guilds/7/accounts/1/mint", fmt::format(R"({{"amount": {}, "reason": "r"}})", amount));
    ASSERT_EQ(said.outcome(), "201") << said.body;
  }
  // From member 1 to member 2 of guild 7.
  static std::string transfer(std::int64_t amount, const std::string& more = {}) {
    return fmt::format(R"({{"guildId": "7", "initiatorId": "1", "targetId": "2", "amount": "{}"{}}})", amount, more);
  }
  // Turns the cooldown off.
  void no_cooldown() {
    const auto said = call("PATCH", "/api/v1/guilds/7/settings", R"({"cooldownSeconds": 0, "reason": "test"})");
    ASSERT_EQ(said.outcome(), "200") << said.body;
  }

  test::TestDatabase db{test::Template::kMigrated};
  test::Role role{db, "_node"};
  Metrics metrics;
  SystemClock clock;
  SystemRandom random;
  UuidGenerator ids{clock, random};
  Runtime runtime{{.threads = 1}};
  pg::Database database{runtime, test::connect_options(role.dsn()), {}, metrics};
  TransferService service{runtime, database, {}, metrics};
  http::Router router;

 private:
  awaitable<http::Response> answer(http::Request& request) {
    const auto match = router.match(request);
    if (const auto* error = std::get_if<Error>(&match)) co_return http::make_problem(*error, "r");
    const auto& route = router.route(std::get<http::Router::Found>(match).index);
    std::exception_ptr failure;
    try {
      co_return co_await route.handler(request);
    } catch (const std::exception&) {
      failure = std::current_exception();
    }
    co_return http::make_problem(error_of(failure), "r");
  }
};

}  // namespace fencepost::transfer

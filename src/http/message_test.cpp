#include "http/message.hpp"

#include <gtest/gtest.h>

namespace fencepost::http {
namespace {

Request with_target(std::string_view target) {
  Request request;
  EXPECT_TRUE(request.set_target(target)) << target;
  return request;
}

TEST(message, target_splits_into_path_and_query) {
  struct Case {
    std::string_view target, path;
    std::size_t parameters;
  };
  for (const auto& [target, path, parameters] : {Case{"/", "/", 0},
                                                 {"/a/b?x=1&y=2", "/a/b", 2},
                                                 {"/a?", "/a", 0},
                                                 {"http://h:1/a?b=1", "/a", 1},
                                                 {"/redirect?to=http://x/y", "/redirect", 1},
                                                 {"*", "*", 0}}) {
    SCOPED_TRACE(target);
    Request request;
    ASSERT_TRUE(request.set_target(target));
    EXPECT_EQ(request.path(), path);
    EXPECT_EQ(request.query_parameters().size(), parameters);
  }
}

TEST(message, bad_targets_are_refused) {
  for (const std::string_view target : {"", "a", "http://h", "http://h?x", "/a#b", "/a?b=%"}) {
    SCOPED_TRACE(target);
    Request request;
    EXPECT_FALSE(request.set_target(target));
  }
}

TEST(message, headers_are_found_in_any_case_first_one_wins) {
  Request request;
  request.add_header("X-One", "1");
  request.add_header("x-two", "2");
  request.add_header("X-ONE", "3");
  EXPECT_EQ(request.header("x-one"), "1");
  EXPECT_EQ(request.header("X-Two"), "2");
  EXPECT_EQ(request.header("X-Three"), std::nullopt);
  EXPECT_EQ(request.headers("x-one"), (std::vector<std::string_view>{"1", "3"}));
  EXPECT_TRUE(request.headers("X-Three").empty());
}

TEST(message, query_parameters_have_types) {
  const auto request = with_target("/?n=-5&u=7&b=true&s=a+b&e=");
  EXPECT_EQ(request.query_as<std::int64_t>("n"), -5);
  EXPECT_EQ(request.query_as<std::uint32_t>("u"), 7U);
  EXPECT_EQ(request.query_as<bool>("b"), true);
  EXPECT_EQ(request.query_as<std::string>("s"), "a b");
  EXPECT_EQ(request.query_as<std::string>("e"), "");
  EXPECT_FALSE(request.query_as<int>("absent").value());
  EXPECT_EQ(request.query_or<int>("absent", 9), 9);
}

TEST(message, a_query_parameter_that_does_not_parse_is_named) {
  for (const std::string_view target : {"/?n=", "/?n=x", "/?n=1x", "/?n=+1", "/?n=%201", "/?n=1.5", "/?n=01", "/?n=-0",
                                        "/?n=1&n=1", "/?n=99999999999999999999"}) {
    SCOPED_TRACE(target);
    const auto value = with_target(target).query_as<std::int64_t>("n");
    ASSERT_FALSE(value);
    EXPECT_EQ(value.error().code, "invalid_parameter");
    EXPECT_EQ(value.error().context, (Error::Context{{"parameter", "n"}}));
  }
  EXPECT_FALSE(with_target("/?b=1").query_as<bool>("b"));
  EXPECT_FALSE(with_target("/?u=-1").query_as<unsigned>("u"));
}

TEST(message, path_parameters_that_the_route_lacks_are_a_bug) {
  Request request;
  request.set_param("id", "7");
  EXPECT_EQ(request.param("id"), "7");
  EXPECT_EQ(request.param_id("id"), 7);
  EXPECT_THROW(request.param("other"), Exception);
  request.set_param("text", "x");
  EXPECT_THROW(request.param_id("text"), Exception);
  EXPECT_THROW(request.param_uuid("text"), Exception);
}

TEST(message, json_body_is_parsed_or_its_error_names_the_position) {
  Request request;
  request.mutable_body() = R"({"a": [1, "x"]})";
  ASSERT_TRUE(request.json());
  EXPECT_EQ(request.json()->at("a").at(1), "x");
  for (const std::string_view bad : {"", "{", "{} {}", "[1,]", "\xFF", "{\"a\":\"\xC3\"}", "nul"}) {
    SCOPED_TRACE(bad);
    request.mutable_body() = bad;
    ASSERT_FALSE(request.json());
    EXPECT_EQ(request.json().error().code, "bad_json");
  }
  request.mutable_body() = std::string(100, '[') + std::string(100, ']');
  EXPECT_FALSE(request.json());
}

TEST(message, reset_forgets_everything_but_the_peer) {
  Request request;
  request.set_method("POST");
  ASSERT_TRUE(request.set_target("/a?b=1"));
  request.add_header("A", "b");
  request.set_param("p", "1");
  request.mutable_body() = "x";
  request.set_id("id");
  request.set_remote("peer");
  request.set_principal({});
  request.reset();
  EXPECT_EQ(request.verb(), Verb::kGet);
  EXPECT_TRUE(request.target().empty() && request.body().empty() && request.id().empty());
  EXPECT_EQ(request.header("A"), std::nullopt);
  EXPECT_EQ(request.query("b"), std::nullopt);
  EXPECT_EQ(request.principal(), nullptr);
  EXPECT_THROW(request.param("p"), Exception);
  EXPECT_EQ(request.remote(), "peer");
}

TEST(auth, scopes_are_exact_except_admin) {
  Principal reader{.id = "k", .label = "", .scopes = {"tx:read", "transfer:write"}, .restrictions = {}};
  EXPECT_TRUE(reader.has_scope("tx:read"));
  EXPECT_TRUE(reader.has_scope("transfer:write"));
  EXPECT_FALSE(reader.has_scope("tx:write"));
  EXPECT_FALSE(reader.has_scope("transfer:read"));
  EXPECT_FALSE(reader.has_scope("admin"));
  const Principal admin{.id = "k", .label = "", .scopes = {"admin"}, .restrictions = {}};
  EXPECT_TRUE(admin.has_scope("tx:operate"));
  EXPECT_FALSE(Principal{}.has_scope("tx:read"));
}

// No route has matched these.
TEST(request, the_path_for_logs_hides_what_looks_like_a_key) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"/", "/"},
      {"/api/v1/tx", "/api/v1/tx"},
      {"/rpc/1/fp_abc", "/rpc/1/***"},
      {"/rpc/x/fp_abc/more?key=fp_abc", "/rpc/x/***/more"},
      {"/rpc/%66p_abc", "/rpc/***"},
      {"/rpc//key=fp_abc/", "/rpc//***/"},
      {"/bad%zz", "/***"},
      {"*", "*"},
  };
  for (const auto& [target, shown] : cases) {
    Request request;
    ASSERT_TRUE(request.set_target(target)) << target;
    EXPECT_EQ(request.log_path(), shown) << target;
  }
}

TEST(auth, only_the_kinds_that_are_listed_are_restricted) {
  Principal principal;
  EXPECT_TRUE(principal.allows("colour", "red"));
  EXPECT_EQ(principal.restriction("colour"), nullptr);
  principal.restrictions = {{"colour", {"red", "blue"}}, {"shape", {}}};
  EXPECT_TRUE(principal.allows("colour", "red"));
  EXPECT_FALSE(principal.allows("colour", "green"));
  EXPECT_FALSE(principal.allows("shape", "red"));
  EXPECT_TRUE(principal.allows("size", "red"));
  EXPECT_EQ(*principal.restriction("colour"), (std::vector<std::string>{"red", "blue"}));
}

TEST(auth, scope_grammar) {
  for (const std::string_view good : {"admin", "tx:read", "timelock:write", "transfer:operate"}) {
    EXPECT_TRUE(is_scope(good)) << good;
  }
  for (const std::string_view bad :
       {"", "tx", ":read", "tx:", "tx:delete", "TX:read", "tx:read:write", "admin:read "}) {
    EXPECT_FALSE(is_scope(bad)) << bad;
  }
  EXPECT_THROW(Access::scope("tx"), Exception);
}

TEST(auth, access_is_read_as_it_is_written) {
  for (const std::string_view text : {"open", "authenticated", "admin", "tx:read"}) {
    EXPECT_EQ(Access::parse(text).to_string(), text);
  }
  EXPECT_TRUE(Access::parse("open").is_open());
  EXPECT_THROW(Access::parse("closed"), Exception);
}

}  // namespace
}  // namespace fencepost::http

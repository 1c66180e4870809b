// Compares the OpenAPI document with a running node: generates random valid and invalid requests from the document, and
// checks every answer against it.
#include <cstdlib>
#include <functional>
#include <set>

#include <fmt/format.h>

#include <boost/json/parse.hpp>

#include "node/system_routes.hpp"
#include "tests/support/openapi_fixture.hpp"

namespace fencepost::test {
namespace {

namespace json = boost::json;

// OPENAPI_SEED=7 generates other requests.
std::uint64_t seed() {
  const auto* given = std::getenv("OPENAPI_SEED");
  return given == nullptr ? 20260101 : std::strtoull(given, nullptr, 10);
}
constexpr int kRounds = 150;  // for each operation
constexpr int kRoundsOfPeople =
    5;  // a wallet may make 20 requests a second: its operations take part in each fifth round

class OpenApiLive : public OpenApiFixture {
 protected:
  OpenApiLive() : OpenApiFixture(seed(), 1) {}

  // Returns a valid request with one part made invalid; nullopt if no part can be.
  std::optional<Wish> broken_wish(const Operation& operation) {
    auto wish = good_wish(operation);
    wish.broken = true;
    const auto* schema = body_schema(operation);
    if (schema != nullptr && wish.body && generator_.chance(70)) {
      wish.body = generator_.broken(*schema, *wish.body);
      if (wish.body) return wish;
    }
    const auto all = parameters(operation);
    if (all.empty()) return std::nullopt;
    const auto& parameter = *all[generator_.below(all.size())];
    const std::string name(parameter.at("name").as_string());
    if (parameter.at("in").as_string() == "header") {
      wish.headers = {{name, std::string(129, 'x')}};
      return wish;
    }
    const auto& rule = parameter.at("schema");
    for (const std::string odd : {"x", "-1", "007", "0x12", "1.5", "é"}) {
      if (is_parameter(rule, odd) || generator_.chance(60)) continue;
      (parameter.at("in").as_string() == "path" ? wish.path : wish.query)[name] = odd;
      if (name == "timeout") wish.query["wait"] = "mined";
      return wish;
    }
    return std::nullopt;
  }
};

// Calls `use` with each schema of the document and its path, such as "/components/schemas/Tx".
void for_each_schema(const json::value& value, const std::string& path,
                     const std::function<void(const json::value&, const std::string&)>& use) {
  if (const auto* array = value.if_array()) {
    for (std::size_t i = 0; i < array->size(); ++i) for_each_schema((*array)[i], path + "/" + std::to_string(i), use);
  }
  const auto* object = value.if_object();
  if (object == nullptr) return;
  for (const auto& [key, member] : *object) {
    const auto at = path + "/" + std::string(key);
    if (at == "/components/schemas") {
      for (const auto& [name, schema] : member.as_object()) use(schema, at + "/" + std::string(name));
    } else if (key == "schema") {
      use(member, at);
    } else {
      for_each_schema(member, at, use);
    }
  }
}

TEST(OpenApiDocument, every_schema_is_closed_and_uses_only_keywords_that_the_tests_check) {
  const auto document = json::parse(openapi_document());
  const JsonSchema schemas(document);
  int found = 0;
  for_each_schema(document, "", [&](const json::value& schema, const std::string& path) {
    ++found;
    EXPECT_EQ(schemas.review(schema), std::vector<std::string>{}) << path;
  });
  EXPECT_GT(found, 100);
}

TEST(OpenApiDocument, every_request_has_an_example_that_its_schema_accepts) {
  const auto document = json::parse(openapi_document());
  const JsonSchema schemas(document);
  int found = 0;
  for (const auto& [path, item] : document.at("paths").as_object()) {
    for (const auto& [verb, operation] : item.as_object()) {
      const auto* body = operation.as_object().if_contains("requestBody");
      if (body == nullptr) continue;
      SCOPED_TRACE(std::string(verb) + " " + std::string(path));
      const auto& content = body->at("content").at("application/json").as_object();
      const auto* example = content.if_contains("example");
      ASSERT_NE(example, nullptr);
      EXPECT_EQ(schemas.check(content.at("schema"), *example), std::vector<std::string>{});
      ++found;
    }
  }
  EXPECT_GT(found, 30);
}

unsigned status_without_a_key(const Operation& operation) {
  if (operation.id() == "logOut") return 403;
  if (operation.id() == "showUnsubscribe" || operation.id() == "unsubscribe") return 404;
  const auto* security = operation.described->if_contains("security");
  const bool open = security != nullptr && security->as_array().empty();
  return open && !operation.is_login() ? 200 : 401;
}

TEST_F(OpenApiLive, answers_match_the_document) {
  std::size_t good = 0;
  std::size_t broken = 0;
  std::set<unsigned> seen;
  std::set<std::string> never_done;
  for (const auto& operation : operations_) {
    // Operator commands depend on the transaction's state at that moment; tx_operator_test covers them. A transfer can
    // be failed only while it is approved; transfer_routes_pgtest covers that.
    if (!operation.description().contains("`tx:operate`") && operation.id() != "failTransfer" &&
        !operation.is_login() && !operation.needs_a_mail()) {
      never_done.insert(operation.id());
    }
  }
  for (int round = 0; round < kRounds && !HasFailure(); ++round) {
    for (const auto& operation : operations_) {
      // Removals are rarer: without an address, there is nothing to subscribe and to change.
      const auto each = operation.is_personal() ? kRoundsOfPeople * (operation.verb == "DELETE" ? 5 : 1) : 1;
      if (round % each != 0) continue;
      auto wish = generator_.chance(60) ? std::optional(good_wish(operation)) : broken_wish(operation);
      if (!wish) continue;
      const auto answer = send(operation, *wish, key_);
      SCOPED_TRACE(fmt::format("{} {}", wish->broken ? "broken" : "good", shown_));
      ASSERT_LT(answer.status, 500U) << answer.body;
      ASSERT_NO_FATAL_FAILURE(compare(operation, answer));
      if (wish->broken) {
        EXPECT_TRUE(refused(answer) || (operation.is_login() && answer.status == 429))
            << "accepted: " << answer.status << " " << answer.body;
      } else {
        EXPECT_EQ(malformed_codes(answer), std::set<std::string>{}) << answer.body;
      }
      ++(wish->broken ? broken : good);
      seen.insert(answer.status);
      if (answer.status < 300) never_done.erase(operation.id());
    }
  }
  if (HasFailure()) return;
  const auto personal = static_cast<std::size_t>(std::ranges::count_if(operations_, &Operation::is_personal));
  EXPECT_GT(good, (operations_.size() - personal) * kRounds / 2);
  EXPECT_GT(broken, operations_.size() * kRounds / 10);
  for (const auto status : {200U, 201U, 202U, 400U, 404U, 409U, 422U}) {
    EXPECT_TRUE(seen.contains(status)) << "no request was answered with " << status;
  }
  EXPECT_EQ(never_done, std::set<std::string>{});
}

TEST_F(OpenApiLive, without_a_key_only_open_operations_are_answered) {
  for (const auto& operation : operations_) {
    for (const auto* key : {"", "fp_nonsense"}) {
      const auto answer = send(operation, good_wish(operation), key);
      SCOPED_TRACE(shown_);
      EXPECT_EQ(answer.status, status_without_a_key(operation));
      ASSERT_NO_FATAL_FAILURE(compare(operation, answer));
    }
  }
}

}  // namespace
}  // namespace fencepost::test

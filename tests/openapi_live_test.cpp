// Compares the OpenAPI document with a running node: generates random valid and invalid requests from the document, and
// checks every answer against it.
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "http/error_codes.hpp"
#include "node/system_routes.hpp"
#include "tests/support/mailbox.hpp"
#include "tests/support/person.hpp"
#include "tests/support/timelocks.hpp"
#include "tests/support/tx_cluster.hpp"
#include "tests/support/value_generator.hpp"

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

// Codes with status 400 that mean "the request violates the document's schema". Other codes report what a schema cannot
// express: a checksum, a chain that is not configured, a tip above its cap.
const std::set<std::string> kMalformed = {
    "bad_address",         "bad_hash",          "bad_hex",        "bad_idempotency_key", "bad_json",
    "bad_log_level",       "bad_request",       "bad_request_id", "data_too_large",      "invalid_header",
    "invalid_parameter",   "malformed_request", "nul_in_text",    "too_many_items",      "too_many_parameters",
    "bad_percent_encoding"};

struct Operation {
  std::string verb;
  std::string path;
  const json::object* described;

  std::string id() const { return std::string(described->at("operationId").as_string()); }
};

// The parts of one request; texts are not encoded yet.
struct Wish {
  std::map<std::string, std::string> path;
  std::map<std::string, std::string> query;
  std::vector<std::pair<std::string, std::string>> headers;
  std::optional<json::value> body;
  bool broken = false;
};

std::string encoded(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '.' || c == '_' || c == '~';
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

std::string text_of(const json::value& value) {
  return value.is_string() ? std::string(value.get_string()) : json::serialize(value);
}

class OpenApiLive : public testing::Test {
 protected:
  OpenApiLive() {
    auto settings = mail_settings(box_);
    for (const auto* more : {"FENCEPOST_TRANSFER_EVENT_POOL_ENABLED=true", "FENCEPOST_WEBHOOKS_ALLOW_PRIVATE=true",
                             "FENCEPOST_WEBHOOKS_ALLOW_HTTP=true"}) {
      settings.emplace_back(more);
    }
    cluster_.node(0).start(settings);
    const auto made =
        fencepost({"apikey", "create", "--dsn", cluster_.dsn(), "--json", "--label", "live", "--scope", "admin"});
    key_ = std::string(json::parse(made.out).at("key").as_string());
    for (const auto& [path, item] : document_.at("paths").as_object()) {
      for (const auto& [verb, described] : item.as_object()) {
        // Its errors are not problem documents; json_rpc_test covers it.
        if (described.at("tags").as_array().front() == "json-rpc") continue;
        std::string name(verb);
        std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::toupper(c); });
        operations_.push_back({std::move(name), std::string(path), &described.as_object()});
      }
    }
    person_.emplace(cluster_, signer_key(0));
    suggest();
    suggest_timelocks();
    suggest_mail();
  }

  // The mails of the person go to files, as fast as the generator asks for codes.
  static std::vector<std::string> mail_settings(const Mailbox& box) {
    return {"FENCEPOST_EMAIL_TRANSPORT=file",
            "FENCEPOST_EMAIL_FROM=fencepost@example.org",
            "FENCEPOST_EMAIL_DIRECTORY=" + box.directory().string(),
            "FENCEPOST_EMAIL_CODE_RESEND_INTERVAL=0ms",
            "FENCEPOST_EMAIL_CODES_PER_USER_PER_DAY=10000",
            "FENCEPOST_EMAIL_CODES_PER_ADDRESS_PER_DAY=10000"};
  }

  void suggest_mail() {
    for (const auto* email : {"a@example.org", "b@example.org", "c@example.org"}) generator_.suggest("email", email);
    generator_.suggest("notifyOn", json::array{"waiting", "ready"});
    generator_.suggest("functions", json::array{"pause()"});
    const TimelockChain chain(cluster_);
    const OpenZeppelinTimelock timelock(chain, signer(8), 100);
    cluster_.post(0, "/api/v1/timelocks", {{"chainId", 31337}, {"address", timelock.address()}});
    generator_.suggest("contractAddress", json::value(timelock.address()));
    for (int i = 0; i < 6; ++i) {
      const auto email =
          person_->post("/api/v1/me/emails", {{"email", fmt::format("{}@example.org", i)}}).json().at("id");
      const auto subscription = person_->post("/api/v1/me/subscriptions", {{"emailId", email},
                                                                           {"standard", "openzeppelin"},
                                                                           {"chainId", 31337},
                                                                           {"contractAddress", timelock.address()},
                                                                           {"notifyOn", json::array{"ready"}}});
      generator_.suggest("emailId", email);
      generator_.suggest("subscriptionId", subscription.json().at("id"));
    }
  }

  // Real contracts with a flow each. The flow's id depends on neither contract nor chain, so it is the same in all.
  void suggest_timelocks() {
    const TimelockChain chain(cluster_);
    const TimelockCall call{recipient(1)};
    for (int i = 0; i < 3; ++i) {
      const OpenZeppelinTimelock timelock(chain, signer(9), 100);
      timelock.schedule(call, salt(1), 1000);
      for (const auto* name : {"address", "contract"}) generator_.suggest(name, json::value(timelock.address()));
    }
    generator_.suggest("flowId", json::value(OpenZeppelinTimelock::id(call, salt(1))));
    generator_.suggest("initiator", json::value(signer(9)));
    generator_.suggest("standard", "openzeppelin");
    generator_.suggest("standard", nullptr);
    generator_.suggest("fromBlock", nullptr);
    generator_.suggest("generation", 1);
  }

  // Suggests values that exist, or may exist later.
  void suggest() {
    for (std::size_t i = 0; i < 3; ++i) {
      generator_.suggest("signer", json::value(signer(i)));
      generator_.suggest("to", json::value(signer(i)));
    }
    for (const auto* id : {"1", "2", "3"}) {
      for (const auto* name : {"guildId", "memberId", "initiatorId", "targetId"}) generator_.suggest(name, id);
    }
    generator_.suggest("memberId", "0");
    generator_.suggest("chainId", 31337);
    for (const auto* amount : {"1", "5", "100"}) {
      generator_.suggest("amount", amount);
      generator_.suggest("value", amount);
    }
    generator_.suggest("gas", 100'000);
    generator_.suggest("gasPrice", nullptr);
    generator_.suggest("maxPriorityFeePerGas", nullptr);
    generator_.suggest("maxFeePerGas", "100000000000");
    generator_.suggest("data", "0x");
    generator_.suggest("type", "TxConfirmed,TransferCompleted");
    generator_.suggest("subject", "tx/0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b");
    generator_.suggest("chain", "31337,1");
    generator_.suggest("guild", "1");
    generator_.suggest("url", "http://127.0.0.1:9/hook");  // no program listens there
    generator_.suggest("from", "now");
  }

  const json::value& resolved(const json::value& value) const {
    const auto* reference = value.as_object().if_contains("$ref");
    return reference == nullptr ? value : schemas_.resolve(reference->as_string());
  }

  std::vector<const json::object*> parameters(const Operation& operation) const {
    std::vector<const json::object*> out;
    if (const auto* list = operation.described->if_contains("parameters")) {
      for (const auto& parameter : list->as_array()) out.push_back(&resolved(parameter).as_object());
    }
    return out;
  }

  const json::value* body_schema(const Operation& operation) const {
    const auto* body = operation.described->if_contains("requestBody");
    return body == nullptr ? nullptr : &body->at("content").at("application/json").at("schema");
  }

  Wish good_wish(const Operation& operation) {
    Wish wish;
    for (const auto* parameter : parameters(operation)) {
      const std::string name(parameter->at("name").as_string());
      const auto place = parameter->at("in").as_string();
      const auto* required = parameter->if_contains("required");
      if ((required == nullptr || !required->as_bool()) && !generator_.chance(40)) continue;
      const auto value = text_of(generator_.good(parameter->at("schema"), name));
      if (place == "path") wish.path[name] = value;
      if (place == "query") wish.query[name] = value;
      if (place == "header") wish.headers.emplace_back(name, value);
    }
    if (const auto* schema = body_schema(operation)) {
      const auto& body = operation.described->at("requestBody");
      if (body.at("required").as_bool() || generator_.chance(50)) wish.body = generator_.good(*schema);
    }
    settle(operation, wish);
    return wish;
  }

  // Applies rules between two values, which the document states in prose only.
  void settle(const Operation& operation, Wish& wish) {
    if (operation.id() == "streamEvents") wish.query["follow"] = "false";  // or the answer would not end
    wish.query.erase("timeout");
    if (wish.query.contains("wait")) wish.query["timeout"] = "20ms";
    if (operation.id() == "getStatement" && wish.query["format"] != "csv") wish.query.erase("limit");
    if (wish.query.contains("format") && wish.query["format"].empty()) wish.query.erase("format");
    if (operation.id() == "listFlows" && wish.query.contains("cursor")) {
      wish.query["sort"] = wish.query["cursor"].starts_with("n") ? "newest" : "eta";
    }
    auto* body = wish.body ? wish.body->if_object() : nullptr;
    if (body == nullptr) return;
    if (auto* statuses = body->if_contains("notifyOn"); statuses != nullptr && statuses->is_array()) {
      auto& list = statuses->as_array();
      list.erase(std::remove(list.begin(), list.end(), json::value("expired")), list.end());
      if (list.empty()) list.emplace_back("ready");
    }
    if (operation.id() == "addAbi") body->at("abi").as_array().push_back(json::object{{"name", "f"}});
    for (const auto* name : {"requestId", "idempotencyKey"}) {
      if (!wish.headers.empty() && body->contains(name) && generator_.chance(90)) {
        (*body)[name] = wish.headers.front().second;
      }
    }
    const auto no_expiry = [](json::object& transfer) {
      const auto* mode = transfer.if_contains("mode");
      if (mode != nullptr && *mode == "sync") transfer.erase("expiresHours");
    };
    no_expiry(*body);
    if (auto* items = body->if_contains("items"); items != nullptr && items->is_array()) {
      for (auto& item : items->as_array()) no_expiry(item.as_object());
    }
  }

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

  // Whether the schema accepts the text as a string or as an integer.
  bool is_parameter(const json::value& schema, const std::string& text) const {
    if (schemas_.accepts(schema, json::value(text))) return true;
    boost::system::error_code not_json;
    const auto number = json::parse(text, not_json);
    return !not_json && number.is_int64() && std::to_string(number.get_int64()) == text &&
           schemas_.accepts(schema, number);
  }

  Answer send(const Operation& operation, const Wish& wish, const std::string& key) {
    std::string target = operation.path;
    for (const auto& [name, value] : wish.path) {
      target.replace(target.find("{" + name + "}"), name.size() + 2, encoded(value));
    }
    char separator = '?';
    for (const auto& [name, value] : wish.query) {
      target += fmt::format("{}{}={}", std::exchange(separator, '&'), name, encoded(value));
    }
    auto headers = wish.headers;
    const bool as_person = key == key_ && is_personal(operation);
    if (as_person) headers.insert(headers.end(), person_->headers().begin(), person_->headers().end());
    shown_ = fmt::format("{} {} {}", operation.verb, target, wish.body ? json::serialize(*wish.body) : "");
    for (const auto& [name, value] : wish.headers) shown_ += fmt::format("\n{}: {}", name, value);
    return ask({operation.verb, cluster_.node(0).url(target), as_person ? "" : key,
                wish.body ? json::serialize(*wish.body) : "", headers});
  }

  static std::string_view described(const Operation& operation) {
    const auto* text = operation.described->if_contains("description");
    return text == nullptr ? std::string_view() : std::string_view(text->as_string());
  }

  static bool is_personal(const Operation& operation) { return described(operation).contains("`wallet`"); }

  static std::string header(const Answer& answer, std::string_view name) {
    for (const auto& [key, value] : answer.headers) {
      if (std::ranges::equal(
              key, name, {}, [](unsigned char c) { return std::tolower(c); },
              [](unsigned char c) { return std::tolower(c); })) {
        return value;
      }
    }
    return {};
  }

  // Compares status, content type and body of the answer with the document.
  void compare(const Operation& operation, const Answer& answer) {
    const auto* described = operation.described->at("responses").as_object().if_contains(std::to_string(answer.status));
    ASSERT_NE(described, nullptr) << "the status " << answer.status << " is not documented: " << answer.body;
    const auto* documented = resolved(*described).as_object().if_contains("content");
    if (documented == nullptr) {
      EXPECT_EQ(answer.body, "");
      return;
    }
    const auto& content = documented->as_object();
    const auto type = header(answer, "Content-Type");
    const auto media = type.substr(0, type.find(';'));
    const auto* medium = content.if_contains(media);
    ASSERT_NE(medium, nullptr) << "the content type " << media << " is not documented";
    if (!media.ends_with("json")) return;
    const auto body = json::parse(answer.body);
    EXPECT_EQ(schemas_.check(medium->at("schema"), body), std::vector<std::string>{}) << answer.body;
    if (answer.status >= 400) compare_problem(answer, body);
    remember(body);
  }

  static void compare_problem(const Answer& answer, const json::value& body) {
    EXPECT_EQ(body.at("status").as_int64(), answer.status);
    EXPECT_EQ(body.at("httpRequestId").as_string(), header(answer, "X-Request-Id"));
    const auto codes = http::error_codes();
    const auto listed = std::ranges::find(codes, answer.code(), &http::ErrorCode::code);
    ASSERT_NE(listed, codes.end()) << answer.code();
    EXPECT_EQ(listed->status, answer.status) << answer.code();
  }

  // Suggests the ids in an answer for later requests.
  void remember(const json::value& body) {
    if (const auto* object = body.if_object()) {
      for (const auto& [key, value] : *object) {
        if (key == "txId" || key == "transferId" || key == "txHash" || key == "nonce") generator_.suggest(key, value);
        if (key == "id") generator_.suggest("webhookId", value);
        if (key == "id" && object->contains("functions")) generator_.suggest("abiId", value);
        if (key == "nextCursor" && value.is_string()) generator_.suggest("cursor", value);
        remember(value);
      }
    }
    if (const auto* array = body.if_array()) {
      for (const auto& element : *array) remember(element);
    }
  }

  // Whether an invalid request was refused: as a whole, or at least one item of a batch.
  static bool refused(const Answer& answer) {
    if (answer.status != 200) return answer.status == 400;
    const auto body = json::parse(answer.body);
    const auto* results = body.is_object() ? body.as_object().if_contains("results") : nullptr;
    if (results == nullptr) return false;
    return std::ranges::any_of(results->as_array(), [](const auto& one) { return one.at("status") == 400; });
  }

  static std::set<std::string> malformed_codes(const Answer& answer) {
    std::set<std::string> codes;
    if (kMalformed.contains(answer.code())) codes.insert(answer.code());
    if (answer.status != 200 || !answer.body.starts_with(R"({"results")")) return codes;
    const auto body = json::parse(answer.body);
    for (const auto& result : body.at("results").as_array()) {
      if (const auto* error = result.as_object().if_contains("error")) {
        const std::string code(error->at("code").as_string());
        if (kMalformed.contains(code)) codes.insert(code);
      }
    }
    return codes;
  }

  Mailbox box_;
  TxCluster cluster_{{.nodes = 1, .start = false}};
  std::optional<Person> person_;
  json::value document_ = json::parse(openapi_document());
  JsonSchema schemas_{document_};
  ValueGenerator generator_{schemas_, seed()};
  std::vector<Operation> operations_;
  std::string key_;
  std::string shown_;  // the last request, for messages
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

// Needs a signature, a key or an origin that the generator does not make, and is limited by address; login_test covers
// these.
bool is_login(const Operation& operation) {
  return std::set<std::string>{"logIn", "exchangeKey", "logOut"}.contains(operation.id());
}

// Needs what only a mail has: a code or a link; the tests of mail cover these.
bool needs_a_mail(const Operation& operation) {
  return std::set<std::string>{"verifyEmail", "showUnsubscribe", "unsubscribe"}.contains(operation.id());
}

unsigned status_without_a_key(const Operation& operation) {
  if (operation.id() == "logOut") return 403;
  if (operation.id() == "showUnsubscribe" || operation.id() == "unsubscribe") return 404;
  const auto* security = operation.described->if_contains("security");
  const bool open = security != nullptr && security->as_array().empty();
  return open && !is_login(operation) ? 200 : 401;
}

TEST_F(OpenApiLive, answers_match_the_document) {
  std::size_t good = 0;
  std::size_t broken = 0;
  std::set<unsigned> seen;
  std::set<std::string> never_done;
  for (const auto& operation : operations_) {
    // Operator commands depend on the transaction's state at that moment; tx_operator_test covers them.
    if (!described(operation).contains("`tx:operate`") && !is_login(operation) && !needs_a_mail(operation)) {
      never_done.insert(operation.id());
    }
  }
  for (int round = 0; round < kRounds && !HasFailure(); ++round) {
    for (const auto& operation : operations_) {
      // Removals are rarer: without an address, there is nothing to subscribe and to change.
      const auto each = is_personal(operation) ? kRoundsOfPeople * (operation.verb == "DELETE" ? 5 : 1) : 1;
      if (round % each != 0) continue;
      auto wish = generator_.chance(60) ? std::optional(good_wish(operation)) : broken_wish(operation);
      if (!wish) continue;
      const auto answer = send(operation, *wish, key_);
      SCOPED_TRACE(fmt::format("{} {}", wish->broken ? "broken" : "good", shown_));
      ASSERT_LT(answer.status, 500U) << answer.body;
      ASSERT_NO_FATAL_FAILURE(compare(operation, answer));
      if (wish->broken) {
        EXPECT_TRUE(refused(answer) || (is_login(operation) && answer.status == 429))
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
  const auto personal = static_cast<std::size_t>(std::ranges::count_if(operations_, is_personal));
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

#include "tests/support/openapi_fixture.hpp"

#include <algorithm>
#include <cctype>
#include <map>

#include <fmt/format.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "http/error_codes.hpp"
#include "runtime/read_file.hpp"
#include "tests/support/source_dir.hpp"
#include "tests/support/timelocks.hpp"

namespace fencepost::test {

namespace json = boost::json;

namespace {

// A request that its schema accepts may be refused with these codes, each because of what a schema cannot say. Every
// other 400 for such a request means that the document and the server differ.
const std::map<std::string, std::string_view> kBeyondSchemas = {
    {"bad_checksum", "the case of an address's letters is a hash of the address"},
    {"bad_email", "whether a name is a valid internationalised domain is no pattern"},
    {"bad_fees", "one member is compared with another"},
    {"bad_from_block", "depends on the chain's head"},
    {"bad_function", "a signature may have tuples in tuples, which no regular expression describes"},
    {"chain_required", "depends on the configuration"},
    {"empty_payload", "`to` or `data`: a union of types in each generated client, for two optional members"},
    {"gas_too_low", "the least gas is computed from the data"},
    {"idempotency_key_in_batch", "the header is that of the items"},
    {"idempotency_key_mismatch", "a header is compared with a member"},
    {"invalid_transfer", "payer and payee must differ"},
    {"request_id_required", "a header or a member, and it depends on the configuration"},
    {"unknown_chain", "depends on the configuration"},
    {"unknown_event_id", "depends on the log"},
    {"unknown_signer", "depends on the keys of all nodes"},
};

bool is_malformed(std::int64_t status, const std::string& code) {
  return status == 400 && !kBeyondSchemas.contains(code);
}

std::string encoded(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '.' || c == '_' || c == '~';
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

json::array split(std::string_view text) {
  json::array out;
  for (;;) {
    const auto end = text.find(',');
    out.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return out;
    text.remove_prefix(end + 1);
  }
}

// The results of a batch.
bool is_batch(const Answer& answer) {
  return answer.status == 200 && answer.body.starts_with(R"({"results")");
}

// The mails of the persons go to files, as fast as the generator asks for codes.
std::vector<std::string> mail_settings(const Mailbox& box) {
  return {"FENCEPOST_EMAIL_TRANSPORT=file",
          "FENCEPOST_EMAIL_FROM=fencepost@example.org",
          "FENCEPOST_EMAIL_DIRECTORY=" + box.directory().string(),
          "FENCEPOST_EMAIL_CODE_RESEND_INTERVAL=0ms",
          "FENCEPOST_EMAIL_CODES_PER_USER_PER_DAY=10000",
          "FENCEPOST_EMAIL_CODES_PER_ADDRESS_PER_DAY=10000"};
}

}  // namespace

std::string text_of(const json::value& value) {
  if (value.is_string()) return std::string(value.get_string());
  const auto* list = value.if_array();
  if (list == nullptr) return json::serialize(value);
  std::string out;
  for (const auto& element : *list) out += (out.empty() ? "" : ",") + text_of(element);
  return out;
}

std::string_view Operation::description() const {
  const auto* text = described->if_contains("description");
  return text == nullptr ? std::string_view() : std::string_view(text->as_string());
}

bool Operation::is_personal() const {
  return description().contains("`wallet`");
}

bool Operation::is_login() const {
  return std::set<std::string>{"logIn", "exchangeKey", "logOut"}.contains(id());
}

bool Operation::needs_a_mail() const {
  return std::set<std::string>{"verifyEmail", "showUnsubscribe", "unsubscribe"}.contains(id());
}

OpenApiFixture::OpenApiFixture(std::uint64_t seed, std::size_t persons)
    : document_(json::parse(read_file(source_dir() / "api/openapi.json"))), generator_(schemas_, seed) {
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
  for (std::size_t i = 0; i < persons; ++i) persons_.emplace_back(cluster_, signer_key(i));
  suggest();
  suggest_timelocks();
  suggest_mail();
}

void OpenApiFixture::suggest_mail() {
  for (const auto* email : {"a@example.org", "b@example.org", "c@example.org"}) generator_.suggest("email", email);
  generator_.suggest("notifyOn", json::array{"waiting", "ready"});
  generator_.suggest("functions", json::array{"pause()"});
  const TimelockChain chain(cluster_);
  const OpenZeppelinTimelock timelock(chain, signer(8), 100);
  cluster_.post(0, "/api/v1/timelocks", {{"chainId", 31337}, {"address", timelock.address()}});
  generator_.suggest("contractAddress", json::value(timelock.address()));
  for (int i = 0; i < 6; ++i) {
    const auto email =
        persons_.front().post("/api/v1/me/emails", {{"email", fmt::format("{}@example.org", i)}}).json().at("id");
    const auto subscription =
        persons_.front().post("/api/v1/me/subscriptions", {{"emailId", email},
                                                           {"standard", "openzeppelin"},
                                                           {"chainId", 31337},
                                                           {"contractAddress", timelock.address()},
                                                           {"notifyOn", json::array{"ready"}}});
    generator_.suggest("emailId", email);
    generator_.suggest("subscriptionId", subscription.json().at("id"));
  }
}

// Real contracts with a flow each. The flow's id depends on neither contract nor chain, so it is the same in all.
void OpenApiFixture::suggest_timelocks() {
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
void OpenApiFixture::suggest() {
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
  generator_.suggest("type", json::array{"TxConfirmed", "TransferCompleted"});
  generator_.suggest("subject", json::array{"tx/0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b"});
  generator_.suggest("chain", json::array{"31337", "1"});
  generator_.suggest("guild", json::array{"1"});
  generator_.suggest("url", "http://127.0.0.1:9/hook");  // no program listens there
  generator_.suggest("from", "now");
}

const json::value& OpenApiFixture::resolved(const json::value& value) const {
  const auto* reference = value.as_object().if_contains("$ref");
  return reference == nullptr ? value : schemas_.resolve(reference->as_string());
}

std::vector<const json::object*> OpenApiFixture::parameters(const Operation& operation) const {
  std::vector<const json::object*> out;
  if (const auto* list = operation.described->if_contains("parameters")) {
    for (const auto& parameter : list->as_array()) out.push_back(&resolved(parameter).as_object());
  }
  return out;
}

const json::value* OpenApiFixture::body_schema(const Operation& operation) const {
  const auto* body = operation.described->if_contains("requestBody");
  return body == nullptr ? nullptr : &body->at("content").at("application/json").at("schema");
}

Wish OpenApiFixture::good_wish(const Operation& operation) {
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

void OpenApiFixture::settle(const Operation& operation, Wish& wish) {
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
    if (mode != nullptr && *mode == "sync") {
      transfer.erase("expiresHours");
      transfer.erase("maxRetries");
    }
  };
  no_expiry(*body);
  if (auto* items = body->if_contains("items"); items != nullptr && items->is_array()) {
    for (auto& item : items->as_array()) no_expiry(item.as_object());
  }
}

bool OpenApiFixture::is_parameter(const json::value& schema, const std::string& text) const {
  if (schemas_.accepts(schema, json::value(text)) || schemas_.accepts(schema, split(text))) return true;
  boost::system::error_code not_json;
  const auto value = json::parse(text, not_json);
  const bool scalar = !not_json && (value.is_int64() || value.is_bool());
  return scalar && json::serialize(value) == text && schemas_.accepts(schema, value);
}

Answer OpenApiFixture::send(const Operation& operation, const Wish& wish, const std::string& key) {
  std::string target = operation.path;
  for (const auto& [name, value] : wish.path) {
    target.replace(target.find("{" + name + "}"), name.size() + 2, encoded(value));
  }
  char separator = '?';
  for (const auto& [name, value] : wish.query) {
    target += fmt::format("{}{}={}", std::exchange(separator, '&'), name, encoded(value));
  }
  auto headers = wish.headers;
  const bool as_person = key == key_ && operation.is_personal();
  if (as_person) {
    const auto& person = persons_[turn_++ % persons_.size()].headers();
    headers.insert(headers.end(), person.begin(), person.end());
  }
  shown_ = fmt::format("{} {} {}", operation.verb, target, wish.body ? json::serialize(*wish.body) : "");
  for (const auto& [name, value] : wish.headers) shown_ += fmt::format("\n{}: {}", name, value);
  return ask({operation.verb, cluster_.node(0).url(target), as_person ? "" : key,
              wish.body ? json::serialize(*wish.body) : "", headers});
}

void OpenApiFixture::compare(const Operation& operation, const Answer& answer) {
  const auto* described = operation.described->at("responses").as_object().if_contains(std::to_string(answer.status));
  ASSERT_NE(described, nullptr) << "the status " << answer.status << " is not documented: " << answer.body;
  const auto* documented = resolved(*described).as_object().if_contains("content");
  if (documented == nullptr) {
    EXPECT_EQ(answer.body, "");
    return;
  }
  const auto& content = documented->as_object();
  const auto type = answer.header("Content-Type");
  const auto media = type.substr(0, type.find(';'));
  const auto* medium = content.if_contains(media);
  ASSERT_NE(medium, nullptr) << "the content type " << media << " is not documented";
  if (!media.ends_with("json")) return;
  const auto body = json::parse(answer.body);
  EXPECT_EQ(schemas_.check(medium->at("schema"), body), std::vector<std::string>{}) << answer.body;
  if (answer.status >= 400) compare_problem(answer, body);
  remember(body);
}

void OpenApiFixture::compare_problem(const Answer& answer, const json::value& body) const {
  const auto& schemas = document_.at("components").at("schemas");
  const auto& own = schemas.at("Problem").at("allOf").at(1).at("properties").as_object();
  const auto& further = schemas.at("ErrorMembers").at("properties").as_object();
  for (const auto& member : body.as_object()) {
    EXPECT_TRUE(own.contains(member.key()) || further.contains(member.key()))
        << member.key() << " is no member of ErrorMembers";
  }
  EXPECT_EQ(body.at("status").as_int64(), answer.status);
  EXPECT_EQ(body.at("httpRequestId").as_string(), answer.header("X-Request-Id"));
  const auto codes = http::error_codes();
  const auto listed = std::ranges::find(codes, answer.code(), &http::ErrorCode::code);
  ASSERT_NE(listed, codes.end()) << answer.code();
  EXPECT_EQ(listed->status, answer.status) << answer.code();
}

void OpenApiFixture::remember(const json::value& body) {
  if (const auto* object = body.if_object()) {
    for (const auto& [key, value] : *object) {
      if (key == "txId" || key == "transferId" || key == "txHash" || key == "nonce") generator_.suggest(key, value);
      if (key == "requestId" && value.is_string()) generator_.suggest(key, value);
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

bool OpenApiFixture::refused(const Answer& answer) {
  if (answer.status != 200) return answer.status == 400;
  if (!is_batch(answer)) return false;
  const auto body = json::parse(answer.body);
  return std::ranges::any_of(body.at("results").as_array(), [](const auto& one) { return one.at("status") == 400; });
}

std::set<std::string> OpenApiFixture::malformed_codes(const Answer& answer) {
  std::set<std::string> codes;
  if (is_malformed(answer.status, answer.code())) codes.insert(answer.code());
  if (!is_batch(answer)) return codes;
  const auto body = json::parse(answer.body);
  for (const auto& result : body.at("results").as_array()) {
    if (const auto* error = result.as_object().if_contains("error")) {
      const std::string code(error->at("code").as_string());
      if (is_malformed(result.at("status").as_int64(), code)) codes.insert(code);
    }
  }
  return codes;
}

}  // namespace fencepost::test

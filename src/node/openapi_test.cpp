// The OpenAPI document and the routes say the same.
#include <regex>
#include <set>

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

#include "http/error_codes.hpp"
#include "identity/key_authenticator.hpp"
#include "identity/scopes.hpp"
#include "node/event_catalog.hpp"
#include "node/routes.hpp"
#include "node/timelock_flows.hpp"
#include "notify/model/send_status.hpp"
#include "notify/notify_manager.hpp"
#include "pg/listener.hpp"
#include "timelock/model/call_text.hpp"
#include "timelock/model/flow_status.hpp"
#include "timelock/timelock_manager.hpp"
#include "transfer/transfer_manager.hpp"
#include "tx/model/attempt.hpp"
#include "tx/model/event_type.hpp"
#include "tx/model/sub_state.hpp"
#include "tx/tx_manager.hpp"

namespace fencepost {
namespace {

namespace json = boost::json;
using Operations = std::set<std::string>;

// "GET /api/v1/tx/{txId}": the document knows parameters without our types.
std::string operation(std::string verb, const std::string& pattern) {
  std::ranges::transform(verb, verb.begin(), [](unsigned char c) { return std::toupper(c); });
  return verb + " " + std::regex_replace(pattern, std::regex(R"(\{(\w+):\w+\})"), "{$1}");
}

// A node's routes and the objects that they refer to; nothing is started.
struct Router {
  Router() {
    add_all_routes(router, {.system = {database, metrics, serving},
                            .cluster = {database, chains, {}},
                            .login = {login},
                            .events = {feed, database, authenticator, metrics},
                            .webhooks = {webhooks},
                            .tx = {manager, database, keys, ids},
                            .timelock = {timelocks.service(), ids, clock},
                            .mail = {mail},
                            .transfer = {transfers.service(), database, ids}});
  }

  Metrics metrics;
  SystemClock clock;
  SystemRandom random;
  UuidGenerator ids{clock, random};
  Runtime runtime{{.threads = 1}};
  pg::Database database{runtime, {.dsn = Secret("unused")}, {}, metrics};
  pg::Listener listener{runtime.executor(0), database.connector(), {}, metrics};
  outbox::EventFeed feed{runtime, database, listener, event_catalog(), {}, metrics};
  outbox::WebhookOptions webhook_options;
  outbox::WebhookService webhooks{{database, feed, clock, random, ids, webhook_options}};
  identity::KeyAuthenticator authenticator{database, clock, {}, metrics};
  evm::KeyRing keys{runtime};
  std::vector<std::unique_ptr<evm::Chain>> chains;
  identity::PublicUrl public_url{""};
  identity::LoginService login{{database, clock, random, chains, public_url, authenticator}, {}};
  tx::TxManager manager{{runtime, database, listener, keys, ids, metrics}, {}, {}, {}, {}};
  timelock::TimelockManager timelocks{{database, metrics, "test"}, {}};
  TimelockFlows flows{timelocks.service()};
  notify::NotifyManager mail{{.runtime = runtime,
                              .database = database,
                              .clock = clock,
                              .random = random,
                              .public_url = public_url,
                              .flows = flows,
                              .metrics = metrics,
                              .chains = {}},
                             {}};
  transfer::TransferManager transfers{runtime, database, listener, {}, metrics};
  std::atomic<bool> serving = false;
  http::Router router;
};

TEST(openapi, lists_every_route_and_nothing_else) {
  const Router node;
  Operations served;
  for (const auto& route : node.router.routes()) {
    served.insert(operation(std::string(http::to_string(route.verb)), route.pattern));
  }
  Operations documented;
  const auto document = json::parse(openapi_document());
  for (const auto& path : document.at("paths").as_object()) {
    for (const auto& verb : path.value().as_object()) documented.insert(operation(verb.key(), path.key()));
  }
  EXPECT_EQ(served, documented);
}

// Generators name functions after it.
TEST(openapi, each_operation_has_an_id_of_its_own) {
  const auto document = json::parse(openapi_document());
  std::set<std::string> ids;
  for (const auto* part : {"paths", "webhooks"}) {
    for (const auto& path : document.at(part).as_object()) {
      for (const auto& verb : path.value().as_object()) {
        const std::string id(verb.value().at("operationId").as_string());
        EXPECT_TRUE(ids.insert(id).second) << id;
      }
    }
  }
}

TEST(openapi, lists_the_refusals_that_every_caller_may_get) {
  const auto document = json::parse(openapi_document());
  for (const auto& path : document.at("paths").as_object()) {
    for (const auto& verb : path.value().as_object()) {
      const auto& described = verb.value().as_object();
      const auto& responses = described.at("responses").as_object();
      const auto* security = described.if_contains("security");
      const bool open = security != nullptr && security->as_array().empty();
      std::vector<std::string_view> needed;
      if (!open) needed = {"401", "429", "503"};
      if (described.contains("requestBody")) needed.emplace_back("400");
      const bool reads_body = verb.key() != "get" && verb.key() != "delete";
      if (reads_body) needed.insert(needed.end(), {"413", "415"});
      EXPECT_TRUE(reads_body || !described.contains("requestBody")) << verb.key() << " " << path.key();
      for (const auto status : needed) {
        EXPECT_TRUE(responses.contains(status)) << verb.key() << " " << path.key() << ": no " << status;
      }
    }
  }
}

TEST(openapi, says_which_routes_need_a_key) {
  const Router node;
  const auto document = json::parse(openapi_document());
  for (const auto& route : node.router.routes()) {
    const auto path = operation("GET", route.pattern).substr(4);
    std::string verb(http::to_string(route.verb));
    std::ranges::transform(verb, verb.begin(), [](unsigned char c) { return std::tolower(c); });
    const auto& described = document.at("paths").at(path).at(verb).as_object();
    const auto* security = described.if_contains("security");
    const bool open = security != nullptr && security->as_array().empty();
    EXPECT_EQ(open, route.access == "open") << verb << " " << path;
    if (route.access != "open" && route.access != "authenticated" && route.access != "key_or_wallet") {
      EXPECT_NE(std::string_view(described.at("description").as_string()).find("`" + route.access + "`"),
                std::string_view::npos)
          << verb << " " << path << " does not name its scope";
    }
  }
}

TEST(openapi, a_key_may_have_exactly_the_scopes_that_routes_need) {
  const Router node;
  std::set<std::string> needed;
  for (const auto& route : node.router.routes()) {
    if (http::is_scope(route.access)) needed.insert(route.access);
  }
  needed.insert("metrics:read");  // where metrics.require_key is true
  EXPECT_EQ(needed, std::set<std::string>(identity::kScopes.begin(), identity::kScopes.end()));
}

TEST(openapi, every_reference_resolves) {
  const auto document = json::parse(openapi_document());
  const std::string text(openapi_document());
  const std::regex reference(R"re("\$ref": "#(/[^"]+)")re");
  int found = 0;
  for (std::sregex_iterator it(text.begin(), text.end(), reference), end; it != end; ++it, ++found) {
    boost::system::error_code missing;
    EXPECT_NE(document.find_pointer((*it)[1].str(), missing), nullptr) << (*it)[1];
  }
  EXPECT_GT(found, 0);
}

TEST(openapi, lists_every_state) {
  const auto document = json::parse(openapi_document());
  const auto listed = [&](const char* schema) { return document.at("components").at("schemas").at(schema).at("enum"); };
  const auto names = [](const auto& lifecycle) {
    json::array out;
    for (const auto& name : lifecycle.names()) out.emplace_back(name);
    return out;
  };
  EXPECT_EQ(listed("TxState"), names(tx::kManagedTx));
  EXPECT_EQ(listed("FlowStatus"), names(timelock::kFlow));
  EXPECT_EQ(listed("TransferStatus"), names(transfer::kPendingTransfer));
  EXPECT_EQ(listed("SendStatus"), names(notify::kSendStatus));
}

TEST(openapi, lists_every_sub_state_attempt_and_event) {
  const auto document = json::parse(openapi_document());
  const auto& schemas = document.at("components").at("schemas");
  // An empty name stands for null.
  const auto names = [](const auto& table) {
    json::array out;
    for (const auto& row : table) out.push_back(row.name.empty() ? json::value(nullptr) : json::value(row.name));
    return out;
  };
  const auto& attempt = schemas.at("TxAttempt").at("properties");
  auto outcomes = names(tx::kAttemptOutcomes);
  outcomes.push_back(nullptr);  // null while the attempt is in flight
  auto reasons = names(tx::kSubStates);
  EXPECT_EQ(schemas.at("TxSubState").at("enum"), reasons);
  reasons.erase(reasons.begin());  // null
  EXPECT_EQ(schemas.at("TxReason").at("enum"), reasons);
  json::array types;
  for (const auto& domain : event_catalog().domains()) {
    for (const auto& type : domain.types) types.emplace_back(type);
  }
  types.emplace_back(outbox::kGapType);
  EXPECT_EQ(schemas.at("EventType").at("enum"), types);
  EXPECT_EQ(schemas.at("TxEventType").at("enum"), names(tx::kTxEvents));
  EXPECT_EQ(schemas.at("TimelockStandard").at("enum"), names(timelock::kStandards));
  EXPECT_EQ(schemas.at("ExplainedCall").at("properties").at("source").at("enum"), names(timelock::kCallSources));
  EXPECT_EQ(schemas.at("Language").at("enum"), names(notify::kLanguages));
  EXPECT_EQ(schemas.at("SubscriptionScope").at("enum"), names(notify::kScopes));
  EXPECT_EQ(attempt.at("kind").at("enum"), names(tx::kAttemptKinds));
  EXPECT_EQ(attempt.at("outcome").at("enum"), outcomes);
}

TEST(openapi, lists_every_error_code) {
  const auto document = json::parse(openapi_document());
  json::array expected;
  for (const auto& entry : http::error_codes()) expected.emplace_back(entry.code);
  EXPECT_EQ(document.at("components").at("schemas").at("ErrorCode").at("enum"), expected);
}

TEST(openapi, carries_the_programs_version) {
  EXPECT_EQ(json::parse(openapi_document()).at("info").at("version").as_string(), version());
}

}  // namespace
}  // namespace fencepost

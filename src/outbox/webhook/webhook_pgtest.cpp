// Webhooks with a real log, a real database and a real receiver over HTTP.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "outbox/delivery/delivery_test_support.hpp"
#include "outbox/log_test_support.hpp"
#include "outbox/webhook/signature.hpp"
#include "outbox/webhook/webhook_service.hpp"
#include "outbox/webhook/webhook_sink.hpp"
#include "outbox/webhook/webhook_store.hpp"
#include "outbox/webhook/webhook_test_support.hpp"

namespace fencepost::outbox {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;
using test::eventually;
using testing::HttpReceiver;
using testing::Received;

http::Principal admin() {
  return {.id = "k", .label = "test", .scopes = {"admin"}, .restrictions = {}};
}

class WebhookTest : public ::testing::Test {
 protected:
  WebhookTest() {
    options_.allow_private = options_.allow_http = true;
    options_.retry_initial = 30ms;
    options_.retry_cap = 200ms;
    options_.timeout = 2s;
  }
  void start() {
    node_.emplace(db_.dsn(), "one");
    metrics_.emplace(node_->metrics());
    node_->manager().add_kind("webhook", [this](Claim claim) {
      return WebhookSink::open({node_->database(), testing::catalog(), clock_, options_, *metrics_}, std::move(claim));
    });
    node_->start();
    service_.emplace(WebhookService::Parts{node_->database(), node_->feed(), clock_, random_, ids_, options_});
  }
  template <class T>
  T run(awaitable<T> task) {
    return node_->runtime().run_on(0, std::move(task));
  }
  CreatedWebhook create(json::object body, const http::Principal& caller = admin()) {
    if (!body.contains("url")) body["url"] = receiver_.url();
    auto created = run(service_->create(caller, body));
    if (!created) throw Exception(created.error());
    return std::move(*created);
  }
  Webhook get(const Uuid& id) { return run(service_->get(admin(), id)).value(); }
  void append(int count, const std::string& type = "TxConfirmed", int subjects = 5, const std::string& prefix = "tx/") {
    db_.exec(
        fmt::format("INSERT INTO event (type, subject, data) SELECT '{}', '{}' || n % {}, jsonb_build_object("
                    "'signer', '0xa', 'chainId', 1) FROM generate_series(1, {}) AS n",
                    type, prefix, subjects, count));
  }
  std::string value(const std::string& sql) { return db_.exec(sql); }
  void expect_order() {
    for (const auto& [subject, seqs] : receiver_.by_subject()) EXPECT_TRUE(std::ranges::is_sorted(seqs)) << subject;
  }

  testing::OwnServer own_;
  test::TestDatabase db_{test::Template::kMigrated};
  SystemClock clock_;
  SystemRandom random_;
  UuidGenerator ids_{clock_, random_};
  WebhookOptions options_;
  HttpReceiver receiver_;
  std::optional<WebhookMetrics> metrics_;
  std::optional<testing::DeliveryNode> node_;
  std::optional<WebhookService> service_;
};

TEST_F(WebhookTest, delivers_signed_events_and_only_those_after_its_creation) {
  append(3);
  start();
  const auto created = create({});
  EXPECT_TRUE(created.secret.reveal().starts_with("whsec_"));
  EXPECT_EQ(receiver_.count(), 0U);
  append(20);
  ASSERT_TRUE(eventually([&] { return receiver_.count() >= 20; }));
  const auto keys = run(webhook_keys(node_->database().pool_of(0), created.webhook.id));
  std::set<std::string> ids;
  for (const auto& request : receiver_.all()) {
    EXPECT_EQ(request.content_type, "application/cloudevents+json");
    EXPECT_EQ(request.length, std::to_string(request.body.size()));
    EXPECT_EQ(request.signature, webhook_signature(keys, {}, request.id, std::stoll(request.timestamp), request.body));
    EXPECT_EQ(request.id, created.webhook.id.to_string() + "_" + request.events[0]);
    ids.insert(request.id);
  }
  EXPECT_EQ(ids.size(), 20U);
  expect_order();
  EXPECT_TRUE(eventually([&] { return value("SELECT count(*) FROM webhook_delivery WHERE succeeded") == "20"; }));
}

TEST_F(WebhookTest, sends_lists_when_asked_to) {
  start();
  create({{"batch", 7}});
  append(20);
  ASSERT_TRUE(eventually([&] { return receiver_.delivered().size() >= 20; }));
  for (const auto& request : receiver_.all()) {
    EXPECT_EQ(request.content_type, "application/cloudevents-batch+json");
    EXPECT_LE(request.events.size(), 7U);
    EXPECT_EQ(request.body.front(), '[');
  }
  expect_order();
}

// Events of other parcels may lie between those of one.
TEST_F(WebhookTest, a_stored_list_stays_one_request) {
  start();
  const auto created = create({{"batch", 7}});
  ASSERT_TRUE(run(service_->change(admin(), created.webhook.id, json::object{{"paused", true}})));
  const auto id = created.webhook.id.to_string();
  for (const auto& [seq, message] :
       std::vector<std::pair<int, std::string>>{{1, "1-5"}, {2, "2"}, {3, "1-5"}, {4, "4"}, {5, "1-5"}}) {
    db_.exec(
        fmt::format("INSERT INTO webhook_backlog (webhook_id, seq, message, type, subject, envelope) VALUES "
                    "('{}', {}, '{}', 'TxConfirmed', 'tx/{}', '{{}}')",
                    id, seq, message, seq));
  }
  const auto parcels = run(load_backlog(node_->database().pool_of(0), created.webhook.id));
  std::vector<std::size_t> sizes;
  sizes.reserve(parcels.size());
  for (const auto& parcel : parcels) sizes.push_back(parcel.events.size());
  EXPECT_EQ(sizes, (std::vector<std::size_t>{3, 1, 1}));
}

TEST_F(WebhookTest, a_poison_event_holds_back_its_subject_only_and_keeps_its_id) {
  start();
  const auto created = create({});
  std::atomic<bool> poison{true};
  receiver_.decide([&](const Received& request) { return poison && request.subjects[0] == "tx/3" ? 400U : 200U; });
  append(50);
  ASSERT_TRUE(eventually([&] { return receiver_.delivered().size() >= 40; }));
  EXPECT_TRUE(eventually([&] { return get(created.webhook.id).waiting == 10; }));
  const auto failed = [&] {
    std::set<std::string> out;
    std::size_t count = 0;
    for (const auto& request : receiver_.all()) {
      if (request.answered < 300) continue;
      ++count;
      out.insert(request.id);
    }
    return std::pair(count, out.size());
  };
  ASSERT_TRUE(eventually([&] { return failed().first >= 3; }));
  EXPECT_EQ(failed().second, 1U) << "only the first event of the subject is tried, under one webhook-id";
  poison = false;
  EXPECT_TRUE(eventually([&] { return receiver_.delivered().size() == 50; }));
  EXPECT_TRUE(eventually([&] { return get(created.webhook.id).waiting == 0; }));
  expect_order();
}

// What waits for a retry is behind the position: the lag counts it all the same, or no alert would ever fire.
TEST_F(WebhookTest, the_lag_counts_what_waits_for_a_retry) {
  start();
  const auto created = create({});
  const Metrics::Labels labels{{"consumer", Webhook::consumer_of(created.webhook.id)}};
  std::atomic<bool> poison{true};
  receiver_.decide([&](const Received& request) { return poison && request.subjects[0] == "tx/3" ? 400U : 200U; });
  append(50);
  ASSERT_TRUE(eventually([&] { return receiver_.delivered().size() >= 40; }));
  const auto lag = [&](const char* name) { return node_->metrics().gauge(name, "", labels).Value(); };
  EXPECT_TRUE(eventually([&] {
    return value("SELECT position FROM event_consumer") == value("SELECT max(seq) FROM event") &&
           lag("event_consumer_lag_events") == 10 && lag("event_consumer_lag_seconds") > 1;
  }));
  poison = false;
  EXPECT_TRUE(
      eventually([&] { return lag("event_consumer_lag_events") == 0 && lag("event_consumer_lag_seconds") == 0; }));
}

// While it is down only probes are sent; they come no earlier than the receiver asked for.
TEST_F(WebhookTest, a_receiver_that_is_down_is_left_alone_for_as_long_as_it_asked) {
  options_.connections = 1;  // one failure means down
  start();
  create({});
  receiver_.decide([](const Received&) { return 503U; });
  receiver_.with_header("Retry-After", "2");
  append(5);
  ASSERT_TRUE(eventually([&] { return receiver_.count() >= 2; }));
  const auto all = receiver_.all();
  EXPECT_GE(all[1].at - all[0].at, 1900ms) << "the first try and the first probe";
}

TEST_F(WebhookTest, a_receiver_that_is_down_costs_bounded_space_and_loses_nothing) {
  options_.backlog = 40;
  start();
  const auto created = create({});
  std::atomic<bool> down{true};
  receiver_.decide([&](const Received&) { return down ? 503U : 200U; });
  for (int i = 0; i < 10; ++i) append(100, "TxConfirmed", 50);
  ASSERT_TRUE(eventually([&] { return get(created.webhook.id).waiting > 0; }));
  ASSERT_TRUE(eventually([&] { return get(created.webhook.id).last_error.has_value(); }));
  EXPECT_LE(std::stoi(value("SELECT count(*) FROM webhook_backlog")), 40);
  down = false;
  EXPECT_TRUE(eventually([&] {
    const auto seen = receiver_.delivered();
    return std::set<std::string>(seen.begin(), seen.end()).size() == 1000;
  }));
  EXPECT_EQ(receiver_.delivered().size(), 1000U) << "without a crash nothing is repeated";
  expect_order();
  EXPECT_TRUE(eventually([&] { return get(created.webhook.id).waiting == 0; }));
  EXPECT_TRUE(eventually([&] { return !get(created.webhook.id).failing_since; }));
}

TEST_F(WebhookTest, what_is_not_taken_for_too_long_becomes_a_dead_letter_that_can_be_replayed) {
  options_.retry_for = 300ms;
  start();
  const auto created = create({});
  std::atomic<bool> poison{true};
  receiver_.decide([&](const Received& request) { return poison && request.subjects[0] == "tx/1" ? 302U : 200U; });
  append(10);
  ASSERT_TRUE(eventually([&] { return get(created.webhook.id).dead_letters == 2; }));
  const auto letters = run(list_dead_letters(node_->database().pool_of(0), created.webhook.id, 0, 10));
  ASSERT_EQ(letters.size(), 2U);
  EXPECT_EQ(letters[0].last_status, 302);
  EXPECT_GE(letters[0].attempts, 2);
  poison = false;
  EXPECT_EQ(run(service_->replay(admin(), created.webhook.id, {letters[0].seq})).value(), 1);
  EXPECT_TRUE(eventually([&] { return receiver_.delivered().size() == 9; }));
  EXPECT_EQ(run(service_->replay(admin(), created.webhook.id, {})).value(), 1);
  EXPECT_TRUE(eventually([&] { return receiver_.delivered().size() == 10; }));
  EXPECT_TRUE(eventually([&] { return get(created.webhook.id).dead_letters == 0; }));
  EXPECT_EQ(run(service_->replay(admin(), created.webhook.id, {})).value(), 0);
}

TEST_F(WebhookTest, gone_disables_and_resuming_loses_nothing) {
  start();
  const auto created = create({});
  std::atomic<bool> gone{true};
  receiver_.decide([&](const Received&) { return gone ? 410U : 200U; });
  append(10, "TxConfirmed", 1);
  ASSERT_TRUE(eventually([&] { return get(created.webhook.id).state == WebhookState::kDisabled; }));
  EXPECT_THAT(get(created.webhook.id).disabled_reason.value(), ::testing::HasSubstr("410"));
  EXPECT_EQ(receiver_.count(), 1U);
  append(10, "TxConfirmed", 1);
  gone = false;
  const auto resumed = run(service_->change(admin(), created.webhook.id, json::object{{"paused", false}}));
  ASSERT_TRUE(resumed) << resumed.error().to_string();
  EXPECT_EQ(resumed->state, WebhookState::kActive);
  EXPECT_TRUE(eventually([&] { return receiver_.delivered().size() == 20; }));
  expect_order();
}

TEST_F(WebhookTest, a_rotated_secret_signs_beside_the_old_one) {
  start();
  const auto created = create({});
  const auto rotated = run(service_->rotate_secret(admin(), created.webhook.id));
  ASSERT_TRUE(rotated);
  EXPECT_FALSE(rotated->secret == created.secret);
  const auto keys = run(webhook_keys(node_->database().pool_of(0), created.webhook.id));
  ASSERT_EQ(keys.size(), 2U);
  EXPECT_EQ(webhook_secret_text(keys[0].secret), rotated->secret);
  EXPECT_EQ(webhook_secret_text(keys[1].secret), created.secret);
  EXPECT_TRUE(eventually([&] {
    append(1);
    const auto all = receiver_.all();
    return !all.empty() && std::ranges::count(all.back().signature, ' ') == 1;
  }));
  db_.exec("UPDATE webhook SET old_secret_until = clock_timestamp()");
  EXPECT_EQ(run(webhook_keys(node_->database().pool_of(0), created.webhook.id)).size(), 1U);
}

TEST_F(WebhookTest, a_test_fire_answers_what_the_receiver_answered) {
  start();
  const auto created = create({{"types", {"TxAccepted"}}});
  auto outcome = run(service_->test(admin(), created.webhook.id)).value();
  EXPECT_TRUE(outcome.delivered());
  EXPECT_EQ(receiver_.all().at(0).types.at(0), kWebhookTestType);
  receiver_.decide([](const Received&) { return 500U; });
  outcome = run(service_->test(admin(), created.webhook.id)).value();
  EXPECT_EQ(outcome.status, 500U);
  EXPECT_EQ(receiver_.count(), 2U) << "a test is not retried";
}

TEST_F(WebhookTest, gets_no_event_that_its_creator_could_not_read) {
  start();
  const http::Principal reader{
      .id = "r", .label = "", .scopes = {"tx:read", "webhooks:write"}, .restrictions = {{"signer", {"0xa"}}}};
  const auto created = create({}, reader);
  append(2);
  db_.exec("INSERT INTO event (type, subject, data) VALUES ('TxConfirmed', 'tx/9', '{\"signer\": \"0xb\"}')");
  append(1, "TransferCompleted", 1, "transfer/");
  append(1, "TxAccepted");
  ASSERT_TRUE(eventually([&] { return receiver_.count() >= 3; }));
  EXPECT_TRUE(
      eventually([&] { return value("SELECT position FROM event_consumer") == value("SELECT max(seq) FROM event"); }));
  EXPECT_EQ(receiver_.count(), 3U);
  // Others do not see it; a broader key does, and cannot widen it.
  const http::Principal other{.id = "o", .label = "", .scopes = {"tx:read"}, .restrictions = {{"signer", {"0xb"}}}};
  EXPECT_EQ(run(service_->get(other, created.webhook.id)).error().code, "no_such_webhook");
  EXPECT_TRUE(run(service_->list(other, std::nullopt, 10)).empty());
  EXPECT_EQ(run(service_->remove(other, created.webhook.id)).error().code, "no_such_webhook");
  EXPECT_EQ(run(service_->change(admin(), created.webhook.id, json::object{{"signers", {"0xb"}}})).error().code,
            "signer_not_allowed");
  EXPECT_EQ(run(service_->list(admin(), std::nullopt, 10)).size(), 1U);
}

TEST_F(WebhookTest, refuses_private_targets_without_permission_at_create_and_at_connect) {
  start();
  const auto created = create({});
  options_.allow_private = false;
  const auto refused = run(service_->create(admin(), json::object{{"url", receiver_.url()}}));
  EXPECT_EQ(refused.error().code, "webhook_address_not_allowed");
  const auto named =
      run(service_->create(admin(), json::object{{"url", fmt::format("http://localhost:{}/hook", receiver_.port())}}));
  EXPECT_EQ(named.error().code, "webhook_address_not_allowed");
  const auto outcome = run(service_->test(admin(), created.webhook.id)).value();
  EXPECT_FALSE(outcome.delivered());
  EXPECT_THAT(outcome.error, ::testing::HasSubstr("address_not_allowed"));
  options_.allow_http = false;
  EXPECT_EQ(run(service_->create(admin(), json::object{{"url", "http://example.org/"}})).error().code,
            "webhook_https_required");
  EXPECT_EQ(receiver_.count(), 0U);
}

TEST_F(WebhookTest, begins_where_it_was_asked_to_and_stops_when_paused) {
  append(10);
  start();
  const auto created = create({{"from", "oldest"}});
  ASSERT_TRUE(eventually([&] { return receiver_.delivered().size() == 10; }));
  ASSERT_TRUE(run(service_->change(admin(), created.webhook.id, json::object{{"paused", true}})));
  EXPECT_TRUE(eventually([&] { return value("SELECT owner_node FROM event_consumer").empty(); }));
  append(10);
  ASSERT_TRUE(run(service_->change(admin(), created.webhook.id, json::object{{"paused", false}})));
  EXPECT_TRUE(eventually([&] { return receiver_.delivered().size() == 20; }));
  ASSERT_TRUE(run(service_->remove(admin(), created.webhook.id)));
  EXPECT_EQ(value("SELECT count(*) FROM event_consumer"), "0");
}

TEST_F(WebhookTest, the_delivery_log_is_bounded) {
  start();
  create({});
  append(2500, "TxConfirmed", 100);
  ASSERT_TRUE(eventually([&] { return receiver_.delivered().size() == 2500; }));
  EXPECT_TRUE(
      eventually([&] { return value("SELECT position FROM event_consumer") == value("SELECT max(seq) FROM event"); }));
  EXPECT_LE(std::stoi(value("SELECT count(*) FROM webhook_delivery")), 1000);
}

}  // namespace
}  // namespace fencepost::outbox

// From events of the log to rows for mails.
#include <boost/json/serialize.hpp>

#include "notify/mail_node_test_support.hpp"
#include "notify/workers/flow_notifier.hpp"

namespace fencepost::notify {
namespace {

namespace json = boost::json;
using Logged = std::vector<outbox::LogEvent>;

outbox::LogEvent event(std::int64_t seq, std::string type, const json::object& data) {
  return {.seq = seq,
          .type = std::move(type),
          .subject = "subject/1",
          .at = at("2026-01-02T00:00:00Z"),
          .chain = {},
          .domain = nullptr,
          .id = {},
          .envelope = json::serialize(json::object{{"data", data}})};
}

outbox::LogEvent event(std::int64_t seq, const FlowChange& change) {
  const auto text = [](const std::optional<std::string>& value) { return value ? json::value(*value) : json::value(); };
  return event(seq, "FlowStatusChanged",
               {{"standard", change.ref.standard},
                {"chainId", change.ref.chain_id},
                {"contractAddress", change.ref.contract},
                {"flowId", change.ref.flow_id},
                {"generation", change.ref.generation},
                {"statusFrom", text(change.from)},
                {"statusTo", change.to},
                {"txHash", text(change.tx_hash)},
                {"blockNumber", change.block ? json::value(*change.block) : json::value()},
                {"initiatorAddress", change.initiator},
                {"viaAddress", text(change.via)},
                {"changedAt", to_rfc3339(change.changed_at)},
                {"retracted", change.retracted},
                {"retraction", change.retraction}});
}

class FlowNotifiers : public NotifyTest {
 protected:
  FlowNotifier notifier() {
    return {{.database = node.database,
             .flows = node.flows,
             .operators = operators,
             .new_mail = [this] { ++woken; },
             .queued_total = node.metrics.counter("test_mails_total", "")},
            claim};
  }
  outbox::Handed deliver(const Logged& events) {
    std::vector<const outbox::LogEvent*> pointers;
    for (const auto& logged : events) pointers.push_back(&logged);
    auto sink = notifier();
    return node.run([&] { return sink.deliver(pointers); });
  }
  static std::string filter_for(const std::string& target) { return fmt::format(R"({{"targets": ["{}"]}})", target); }
  // The flow of queued(), with a call of kOtherContract.
  void know_flow() {
    FlowFacts flow{.ref = queued().ref};
    flow.calls = {{.target = kOtherContract}};
    node.flows.flows[flow.ref] = flow;
  }

  MailNode node{db.dsn(), mail_options()};
  std::vector<std::string> operators{"ops@example.org"};
  int woken = 0;
};

TEST_F(FlowNotifiers, mail_a_change_to_the_initiator_and_to_all_who_follow_the_contract) {
  add_subscriber(1);
  add_subscriber(2, {.scope = "all"});
  add_subscriber(3);
  const auto handed = deliver({event(5, queued())});
  EXPECT_EQ(handed.handled, 1U);
  EXPECT_FALSE(handed.retry_after);
  EXPECT_EQ(mails(), "pending|change|0 pending|change|0");
  EXPECT_GT(woken, 0) << "the sender is woken";
}

TEST_F(FlowNotifiers, mail_an_address_once_if_several_subscriptions_name_it) {
  const auto user = add_user(1);
  subscribe(add_address(user, "team@example.org"), {.scope = "all"});
  subscribe(add_address(add_user(2), "team@example.org"), {.scope = "all"});
  deliver({event(5, queued()), event(5, queued())});
  EXPECT_EQ(mails(), "pending|change|0");
  woken = 0;
  deliver({event(5, queued())});
  EXPECT_EQ(woken, 0) << "nothing was added";
}

TEST_F(FlowNotifiers, do_not_look_at_the_flow_while_no_subscription_has_filters) {
  add_subscriber(1);
  add_subscriber(2, {.scope = "all"});
  deliver({event(5, queued())});
  EXPECT_EQ(node.flows.asked, 0);
}

TEST_F(FlowNotifiers, look_at_the_flow_once_for_all_filters) {
  know_flow();
  add_subscriber(1, {.filters = filter_for(kContract)});
  add_subscriber(2, {.scope = "all", .filters = filter_for(kOtherContract)});
  add_subscriber(3, {.scope = "all", .filters = filter_for(kContract)});
  add_subscriber(4, {.scope = "all"});
  deliver({event(5, queued())});
  EXPECT_EQ(node.flows.asked, 1);
  EXPECT_EQ(count("email_send_logs"), 2);
  EXPECT_EQ(only("string_agg(email, ' ' ORDER BY email)", "emails JOIN email_send_logs AS l ON l.email_id = emails.id"),
            "p2@example.org p4@example.org");
}

TEST_F(FlowNotifiers, mail_an_address_if_one_of_its_filters_matches) {
  know_flow();
  for (const auto& [number, target] : {std::pair(1, kContract), std::pair(2, kOtherContract)}) {
    subscribe(add_address(add_user(number), "team@example.org"), {.scope = "all", .filters = filter_for(target)});
  }
  deliver({event(5, queued())});
  EXPECT_EQ(mails(), "pending|change|0");
}

TEST_F(FlowNotifiers, mail_no_filtered_subscription_about_a_flow_that_is_gone) {
  add_subscriber(1, {.filters = filter_for(kOtherContract)});
  EXPECT_EQ(deliver({event(5, queued())}).handled, 1U);
  EXPECT_EQ(node.flows.asked, 1);
  EXPECT_EQ(mails(), "");
}

TEST_F(FlowNotifiers, want_changes_and_the_events_of_operators) {
  const auto wants = [&](const char* type) { return notifier().wants(event(1, type, {})); };
  for (const bool has_operators : {true, false}) {
    if (!has_operators) operators.clear();
    EXPECT_TRUE(wants("FlowStatusChanged"));
    EXPECT_EQ(wants("TxStuck"), has_operators);
    EXPECT_EQ(wants("TimelockVerifyFailed"), has_operators);
    EXPECT_FALSE(wants("TxConfirmed"));
    EXPECT_FALSE(wants("FlowReminder"));
  }
}

TEST_F(FlowNotifiers, report_an_event_to_each_operator_once) {
  operators = {"a@example.org", "b@example.org"};
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(deliver({event(7, "TxStuck", {{"txId", "1"}}), event(8, "TimelockVerifyFailed", {})}).handled, 2U);
  }
  EXPECT_EQ(only("string_agg(concat_ws(' ', email, event_id, event_type, event_subject, event_data), '; ' ORDER BY id)",
                 "operator_email_logs"),
            "a@example.org 7 TxStuck subject/1 {\"txId\": \"1\"}; b@example.org 7 TxStuck subject/1 {\"txId\": \"1\"}; "
            "a@example.org 8 TimelockVerifyFailed subject/1 {}; b@example.org 8 TimelockVerifyFailed subject/1 {}");
}

TEST_F(FlowNotifiers, pass_over_a_gap) {
  add_subscriber(1);
  const auto gap = event(4, std::string(outbox::kGapType), {{"gap", true}, {"from", "1"}, {"to", "4"}});
  EXPECT_EQ(deliver({gap, event(5, queued())}).handled, 2U);
  EXPECT_EQ(mails(), "pending|change|0");
}

TEST_F(FlowNotifiers, do_not_wait_for_a_mail_that_is_being_sent_when_it_is_taken_back) {
  add_subscriber(1);
  deliver({event(5, queued())});
  with_pool([&](pg::Pool& pool) -> awaitable<> { co_await claim_mails(pool, each(1), 1h); });
  const auto handed = deliver({event(6, queued(2)), event(7, taken_back(queued())), event(8, queued(3))});
  EXPECT_EQ(handed.handled, 3U);
  EXPECT_EQ(mails(), "pending|change|0 pending|change|0 pending|correction|1 pending|change|0");
}

TEST_F(FlowNotifiers, pass_over_a_flow_that_cannot_be_read_for_filters) {
  node.flows.broken.insert(queued().ref);
  add_subscriber(1, {.filters = filter_for(kOtherContract)});
  add_subscriber(2, {.scope = "all"});
  EXPECT_EQ(deliver({event(5, queued()), event(6, queued(2))}).handled, 2U);
  EXPECT_EQ(count("email_send_logs"), 2) << "the subscription without filters gets both";
}

TEST_F(FlowNotifiers, pass_over_stored_filters_that_cannot_be_read) {
  know_flow();
  add_subscriber(1, {.filters = R"({"targets": ["nonsense"]})"});
  add_subscriber(2, {.scope = "all"});
  EXPECT_EQ(deliver({event(5, queued())}).handled, 1U);
  EXPECT_EQ(count("email_send_logs"), 1);
}

TEST_F(FlowNotifiers, hand_nothing_over_when_the_claim_is_lost) {
  add_subscriber(1);
  admin.must("UPDATE event_consumer SET claim_token = claim_token + 1");
  for (const auto& events :
       {Logged{event(5, queued())}, Logged{event(5, taken_back(queued()))}, Logged{event(5, "TxStuck", {})}}) {
    const auto handed = deliver(events);
    EXPECT_EQ(handed.handled, 0U);
    EXPECT_TRUE(handed.retry_after);
    EXPECT_EQ(handed.error, "the claim is lost");
  }
  EXPECT_EQ(count("email_send_logs"), 0);
  EXPECT_EQ(count("operator_email_logs"), 0);
}

}  // namespace
}  // namespace fencepost::notify

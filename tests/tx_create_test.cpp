// Creating transactions through three real nodes at once.
#include <algorithm>
#include <csignal>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "tests/support/tx_cluster.hpp"

namespace fencepost::test {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

std::string text_of(const Answer& answer, const char* name) {
  return std::string(answer.json().at(name).as_string());
}

TEST(tx_create, a_hundred_concurrent_creates_with_one_request_id_make_one_transaction) {
  TxCluster cluster({.nodes = 3});
  std::vector<Ask> asks;
  asks.reserve(100);
  for (std::size_t i = 0; i < 100; ++i) asks.push_back(cluster.create_ask(i % 3, transfer(signer(0), "pay-1", 7)));
  const auto answers = ask_all(std::move(asks));
  std::set<std::string> ids;
  for (const auto& answer : answers) {
    ASSERT_TRUE(answer.status == 200 || answer.status == 202) << answer.status << answer.body << cluster.describe();
    ids.insert(text_of(answer, "txId"));
  }
  EXPECT_EQ(ids.size(), 1U);
  EXPECT_EQ(std::ranges::count(answers, 202U, &Answer::status), 1);
  EXPECT_EQ(cluster.sql("SELECT count(*) FROM tx_view"), "1");
  EXPECT_EQ(cluster.sql("SELECT next_nonce FROM signer_nonce_cursor"), "1");

  for (std::size_t node = 0; node < 3; ++node) {
    const auto other = ask(cluster.create_ask(node, transfer(signer(0), "pay-1", 8)));
    EXPECT_EQ(other.status, 409U) << other.body;
    EXPECT_EQ(other.code(), "request_conflict");
    EXPECT_EQ(text_of(other, "txId"), *ids.begin());
  }
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  EXPECT_EQ(cluster.mined_count(signer(0)), 1);
  EXPECT_EQ(cluster.balance(recipient()), 7);
}

// Through the node that leads and through one that forwards.
TEST(tx_create, the_idempotency_header_is_the_request_id) {
  TxCluster cluster({.nodes = 2});
  const auto nameless = [&](std::size_t node, const std::string& key) {
    auto asked = cluster.create_ask(node, transfer(signer(0), "pay-1", 7));
    auto body = json::parse(asked.body).as_object();
    body.erase("requestId");
    asked.body = json::serialize(body);
    asked.headers.emplace_back("Idempotency-Key", key);
    return ask(asked);
  };
  const auto first = nameless(0, "pay-1");
  EXPECT_EQ(first.status, 202U) << first.body;
  EXPECT_EQ(text_of(first, "requestId"), "pay-1");
  for (std::size_t node = 0; node < 2; ++node) {
    const auto again = nameless(node, "pay-1");
    EXPECT_EQ(again.status, 200U) << again.body;
    EXPECT_EQ(text_of(again, "txId"), text_of(first, "txId"));
  }
  EXPECT_EQ(nameless(1, "pay-2").status, 202U);
  auto both = cluster.create_ask(0, transfer(signer(0), "pay-1", 7));
  both.headers.emplace_back("Idempotency-Key", "pay-1");
  EXPECT_EQ(ask(both).status, 200U);
  both.headers.back().second = "pay-9";
  EXPECT_EQ(ask(both).code(), "idempotency_key_mismatch");
  EXPECT_EQ(nameless(0, "").code(), "bad_idempotency_key");
  auto batch = cluster.create_ask(0, transfer(signer(0), "pay-9", 7));
  batch.url += "/batch";
  batch.body = R"({"items": []})";
  batch.headers.emplace_back("Idempotency-Key", "pay-9");
  EXPECT_EQ(ask(batch).code(), "idempotency_key_in_batch");
  EXPECT_EQ(cluster.sql("SELECT count(*) FROM tx_view"), "2");
}

TEST(tx_create, a_node_that_may_not_forward_refuses_with_not_leader) {
  TxCluster cluster({.nodes = 2, .settings = {.forwarding = false}});
  cluster.create(0, transfer(signer(0), "a", 1));
  const auto refused = ask(cluster.create_ask(1, transfer(signer(0), "b", 1)));
  EXPECT_EQ(refused.status, 409U) << refused.body;
  EXPECT_EQ(refused.code(), "not_leader");
  EXPECT_TRUE(std::ranges::any_of(refused.headers, [](const auto& header) { return header.first == "Retry-After"; }));
  // A requestId that one node accepted is known to every node.
  const auto known = ask(cluster.create_ask(1, transfer(signer(0), "a", 1)));
  EXPECT_EQ(known.status, 200U) << known.body;
  EXPECT_EQ(cluster.sql("SELECT count(*) FROM tx_view"), "1");
}

// The caller gets outcome_unknown; a retry with the same requestId finds the outcome.
TEST(tx_create, a_leader_that_does_not_answer_means_outcome_unknown_until_the_caller_retries) {
  TxCluster cluster({.nodes = 2, .settings = {.lease_duration = 60s, .renew_interval = 5s}});
  cluster.create(0, transfer(signer(0), "a", 1));
  ASSERT_EQ(cluster.leader_of(signer(0)), 0U);
  cluster.node(0).signal(SIGSTOP);
  const auto body = transfer(signer(0), "b", 1);
  const auto open = ask(cluster.create_ask(1, body));
  cluster.node(0).resume();
  EXPECT_EQ(open.status, 503U) << open.body;
  EXPECT_EQ(open.code(), "outcome_unknown");
  const auto id = cluster.create_by_retrying(1, body);
  EXPECT_EQ(cluster.sql("SELECT count(*) FROM tx_view"), "2");
  EXPECT_EQ(cluster.column(id, "nonce"), "1");
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  EXPECT_EQ(cluster.mined_count(signer(0)), 2);
}

struct Window {
  std::int64_t max_in_flight;
  std::size_t creates;
};

void PrintTo(const Window& window, std::ostream* out) {
  *out << window.max_in_flight;
}

// Mines a block whenever the window is full of accepted transactions, or all are sent. Automatic mining would not do:
// anvil may leave a transaction queued forever if it arrives while the one before it is mined.
void mine_as_it_fills(TxCluster& cluster, std::int64_t window) {
  const auto full = fmt::format(
      "SELECT count(*) FILTER (WHERE state = 'ALLOCATED') = 0 AND (count(*) FILTER (WHERE state <> 'CREATED') = {} OR "
      "count(*) FILTER (WHERE state = 'CREATED') = 0) FROM tx_view WHERE receipt_block IS NULL",
      window);
  const auto unmined = [&] { return cluster.sql("SELECT count(*) FROM tx_view WHERE receipt_block IS NULL"); };
  for (auto left = unmined(); left != "0"; left = unmined()) {
    ASSERT_TRUE(cluster.sql_becomes(full, "t")) << cluster.describe();
    cluster.mine();
    const auto fewer = fmt::format("SELECT count(*) < {} FROM tx_view WHERE receipt_block IS NULL", left);
    ASSERT_TRUE(cluster.sql_becomes(fewer, "t")) << cluster.describe();
  }
}

class TxCreateInOrder : public testing::TestWithParam<Window> {};

TEST_P(TxCreateInOrder, concurrent_creates_for_one_signer_get_nonces_without_gap_or_repeat) {
  const auto [window, count] = GetParam();
  TxCluster cluster({.nodes = 3, .settings = {.max_in_flight = window}, .anvil = {"--no-mining"}});
  std::vector<Ask> asks;
  asks.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    asks.push_back(cluster.create_ask(i % 3, transfer(signer(1), fmt::format("pay-{}", i), 1)));
  }
  for (const auto& answer : ask_all(std::move(asks))) {
    ASSERT_EQ(answer.status, 202U) << answer.body << cluster.describe();
  }
  ASSERT_NO_FATAL_FAILURE(mine_as_it_fills(cluster, window));
  cluster.mine(2);
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  const auto line = fmt::format("{} rows, nonces 0 to {}, {} in creation order", count, count - 1, count);
  EXPECT_EQ(cluster.sql("SELECT format('%s rows, nonces %s to %s, %s in creation order', count(*), min(nonce), "
                        "max(nonce), count(*) FILTER (WHERE nonce = place - 1)) FROM (SELECT nonce, row_number() OVER "
                        "(ORDER BY creation_seq) AS place FROM tx_view) AS t"),
            line);
  EXPECT_EQ(cluster.mined_count(signer(1)), static_cast<std::int64_t>(count));
  EXPECT_EQ(cluster.balance(recipient()), static_cast<std::int64_t>(count));
}

INSTANTIATE_TEST_SUITE_P(windows, TxCreateInOrder, testing::Values(Window{1, 30}, Window{16, 1000}, Window{0, 1000}),
                         [](const auto& info) { return fmt::format("of_{}", info.param.max_in_flight); });

// Each test below has a cluster of one node.
class TxCreate : public testing::Test {
 protected:
  Answer create(json::object body) const { return ask(cluster_.create_ask(0, body)); }

  TxCluster cluster_;
};

struct Refused {
  const char* change;  // a member of the body, or of its payload when it begins with "payload."
  json::value value;   // null: the member is left out
  const char* field;
};

json::object changed(json::object body, const Refused& refused) {
  std::string name = refused.change;
  auto* where = &body;
  if (name.starts_with("payload.")) {
    where = &body["payload"].as_object();
    name.erase(0, 8);
  }
  where->erase(name);
  if (!refused.value.is_null()) (*where)[name] = refused.value;
  return body;
}

TEST_F(TxCreate, bad_input_is_refused_with_its_field_and_leaves_nothing) {
  const std::string too_big(79, '9');
  const Refused table[] = {
      {"signer", nullptr, "signer"},
      {"signer", "0x1234", "signer"},
      {"signer", "0xF39fd6e51aad88F6F4ce6aB8827279cffFb92266", "signer"},  // one letter off its checksum
      {"signer", json::value(recipient()), "signer"},                      // a valid address without a key on the node
      {"requestId", nullptr, "requestId"},
      {"requestId", "", "requestId"},
      {"requestId", json::value(std::string("a\0b", 3)), "requestId"},
      {"requestId", json::value(std::string(129, 'x')), "requestId"},
      {"requestId", 7, "requestId"},
      {"chainId", 1, "chainId"},
      {"chainId", "31337", "chainId"},
      {"payload", nullptr, "payload"},
      {"payload.to", "0x00", "payload.to"},
      {"payload.value", "-1", "payload.value"},
      {"payload.value", "010", "payload.value"},
      {"payload.value", "1.5", "payload.value"},
      {"payload.value", json::value(too_big), "payload.value"},
      {"payload.value", "115792089237316195423570985008687907853269984665640564039457584007913129639936",
       "payload.value"},
      {"payload.data", "0x123", "payload.data"},
      {"payload.data", "1234", "payload.data"},
      {"payload.data", "0xzz", "payload.data"},
      {"payload.gas", 20999, "payload.gas"},
      {"payload.gas", "99999999999999999999", "payload.gas"},
      {"payload.gasPrice", "one", "payload.gasPrice"},
      {"payload.maxPriorityFeePerGas", "1", "payload.maxPriorityFeePerGas"},
      {"payload.gasLimit", 21000, "payload.gasLimit"},
      {"prefligth", true, "prefligth"},
  };
  for (const auto& refused : table) {
    const auto body = changed(transfer(signer(0), "bad", 1), refused);
    const auto answer = create(body);
    EXPECT_EQ(answer.status, 400U) << json::serialize(body) << "\n" << answer.body;
    const auto problem = answer.json();
    const auto* field = problem.as_object().if_contains("field");
    EXPECT_TRUE(field != nullptr && field->as_string() == refused.field) << json::serialize(body) << "\n"
                                                                         << answer.body;
  }
  EXPECT_EQ(cluster_.sql("SELECT count(*) FROM tx_view"), "0");
}

TEST_F(TxCreate, a_call_that_would_revert_is_refused_with_its_reason) {
  // revert("no"): the ABI's Error(string), put into memory from the end of the code.
  const std::string data =
      "08c379a000000000000000000000000000000000000000000000000000000000000000200000000000000000000000000000000000000000"
      "0000"
      "000000000000000000026e6f000000000000000000000000000000000000000000000000000000000000";
  const std::string code = "0x6064600c60003960646000fd" + data;
  cluster_.rpc("anvil_setCode", {recipient(9), code});
  json::object body{{"signer", signer(0)}, {"requestId", "r"}, {"payload", {{"to", recipient(9)}}}};
  const auto refused = create(body);
  EXPECT_EQ(refused.status, 422U) << refused.body;
  EXPECT_EQ(refused.code(), "would_revert");
  EXPECT_EQ(text_of(refused, "revertReason"), "no");
  EXPECT_EQ(cluster_.sql("SELECT count(*) FROM tx_view"), "0");

  // With gas given, the call is only simulated if preflight is set.
  body["payload"].as_object()["gas"] = 100000;
  body["preflight"] = true;
  EXPECT_EQ(create(body).code(), "would_revert");
  body.erase("preflight");
  EXPECT_EQ(create(body).status, 202U);
  EXPECT_TRUE(cluster_.sql_becomes("SELECT state || ' ' || sub_state FROM tx_view", "FAILED_FINAL reverted"))
      << cluster_.describe();
  const auto ended = cluster_.get(0, "/api/v1/tx/by-request?signer=" + signer(0) + "&requestId=r");
  EXPECT_EQ(text_of(ended, "error"), "execution reverted: no") << ended.body;
  const auto attempt = ended.json().at("attempts").at(0);
  EXPECT_EQ(attempt.at("outcome").as_string(), "accepted");
  EXPECT_EQ(attempt.at("message").as_string(), "execution reverted: no");
  EXPECT_EQ(cluster_.sql("SELECT data->>'detail' FROM event WHERE type = 'TxFailed'"), "execution reverted: no");

  // A known requestId is answered from the database, without a preflight.
  body["preflight"] = true;
  const auto again = create(body);
  EXPECT_EQ(again.status, 200U) << again.body;
  EXPECT_EQ(text_of(again, "state"), "FAILED_FINAL");
}

TEST_F(TxCreate, gas_is_estimated_when_it_is_not_given) {
  auto body = transfer(signer(2), "estimated", 3);
  body["payload"].as_object().erase("gas");
  const auto answer = create(body);
  ASSERT_EQ(answer.status, 202U) << answer.body;
  EXPECT_EQ(text_of(answer, "gas"), "21000");
  EXPECT_TRUE(cluster_.all_confirmed()) << cluster_.describe();
  EXPECT_EQ(cluster_.balance(recipient()), 3);
}

TEST_F(TxCreate, wait_and_timeout_delay_the_answer_until_the_state_is_reached) {
  auto request = cluster_.create_ask(0, transfer(signer(4), "w", 1));
  request.url += "?wait=confirmed&timeout=30s";
  const auto answer = ask_all({request}).front();
  ASSERT_EQ(answer.status, 202U) << answer.body;
  EXPECT_EQ(text_of(answer, "state"), "CONFIRMED");
  const auto id = text_of(answer, "txId");
  const auto named = cluster_.get(0, "/api/v1/tx/by-request?signer=" + signer(4) + "&requestId=w");
  EXPECT_EQ(text_of(named, "txId"), id);
  const auto history = cluster_.get(0, "/api/v1/tx/" + id + "/history").json();
  std::string steps;
  for (const auto& step : history.at("items").as_array()) {
    steps += std::string(step.at("to").as_string()) + " ";
    EXPECT_EQ(step.at("fencingToken").as_int64(), 1);
    EXPECT_TRUE(step.at("node").as_string().starts_with("node0"));
  }
  EXPECT_EQ(steps, "ALLOCATED TRACKING TRACKING CONFIRMED ");
}

// A forwarding node chooses the txId. One that another transaction has must be refused, not end in a 500.
TEST_F(TxCreate, a_forwarded_id_that_is_taken_is_refused) {
  const auto first = create(transfer(signer(4), "has-it", 1));
  ASSERT_EQ(first.status, 202U) << first.body;
  auto again = cluster_.create_ask(0, transfer(signer(4), "wants-it", 1));
  again.headers = {{"X-Fencepost-Forwarded", std::string(first.json().at("txId").as_string())}};
  const auto refused = ask(again);
  EXPECT_EQ(refused.status, 409U) << refused.body;
  EXPECT_EQ(refused.code(), "tx_id_taken");
  again.headers = {{"X-Fencepost-Forwarded", "17"}};
  EXPECT_EQ(ask(again).code(), "invalid_header");
  // The refused create used no nonce.
  EXPECT_EQ(create(transfer(signer(4), "wants-it", 1)).json().at("nonce").as_int64(), 1);
  ASSERT_TRUE(cluster_.all_confirmed()) << cluster_.describe();
}

TEST_F(TxCreate, one_bad_item_of_a_batch_fails_alone) {
  auto bad = transfer(signer(3), "b-1", 1);
  bad["payload"].as_object()["value"] = "lots";
  const json::object batch{
      {"items",
       {transfer(signer(3), "b-0", 1), bad, transfer(signer(3), "b-2", 1), transfer(signer(3), "b-0", 1),
        transfer(signer(3), "b-2", 5), transfer(recipient(), "b-3", 1)}}};
  const auto answer = cluster_.post(0, "/api/v1/tx/batch", batch);
  ASSERT_EQ(answer.status, 200U) << answer.body;
  const auto results = answer.json().at("results").as_array();
  ASSERT_EQ(results.size(), 6U);
  std::vector<std::int64_t> statuses;
  for (const auto& result : results) statuses.push_back(result.at("status").as_int64());
  EXPECT_EQ(statuses, (std::vector<std::int64_t>{202, 400, 202, 200, 409, 400})) << answer.body;
  EXPECT_EQ(results[1].at("error").at("field").as_string(), "payload.value");
  EXPECT_EQ(results[0].at("tx").at("txId"), results[3].at("tx").at("txId"));
  ASSERT_TRUE(cluster_.all_confirmed()) << cluster_.describe();
  EXPECT_EQ(cluster_.mined_count(signer(3)), 2);
}

// An event's type and data.
using Event = std::pair<std::string, json::object>;

// The events of a transaction, oldest first, without the fields that all events have.
std::vector<Event> events_of(const TxCluster& cluster, const std::string& id) {
  std::vector<Event> out;
  for (const auto& event : cluster.get(0, "/api/v1/tx/" + id + "/events").json().at("items").as_array()) {
    EXPECT_EQ(event.at("subject").as_string(), "tx/" + id);
    auto data = event.at("data").as_object();
    EXPECT_EQ(data.at("txId").as_string(), id);
    EXPECT_EQ(data.at("chainId").as_int64(), 31337);
    EXPECT_EQ(data.at("signer").as_string(), signer(0));
    for (const auto* repeated : {"txId", "chainId", "signer"}) data.erase(repeated);
    out.emplace_back(event.at("type").as_string(), std::move(data));
  }
  return out;
}

TEST(tx_create, announces_acceptance_nonce_and_broadcast_each_once) {
  TxCluster cluster({.settings = {.max_in_flight = 1}, .anvil = {"--no-mining"}});
  const auto first = cluster.create(0, transfer(signer(0), "first", 1));
  const auto second = cluster.create(0, transfer(signer(0), "second", 1));
  ASSERT_TRUE(cluster.becomes(first, "state", "TRACKING")) << cluster.describe();
  const auto accepted = [](const char* request, json::value nonce) {
    return Event("TxAccepted", {{"requestId", request}, {"nonce", std::move(nonce)}});
  };
  const auto submitted = [&](const std::string& id, int nonce) {
    return Event("TxSubmitted", {{"txHash", cluster.column(id, "tx_hash")}, {"nonce", nonce}});
  };
  // The window had room: the nonce was assigned with the acceptance.
  EXPECT_EQ(events_of(cluster, first), (std::vector{accepted("first", 0), submitted(first, 0)}));
  EXPECT_EQ(events_of(cluster, second), (std::vector{accepted("second", nullptr)}));
  EXPECT_EQ(ask(cluster.create_ask(0, transfer(signer(0), "second", 1))).status, 200U);

  cluster.mine(3);  // makes room in the window
  ASSERT_TRUE(cluster.becomes(second, "state", "TRACKING")) << cluster.describe();
  EXPECT_EQ(events_of(cluster, second),
            (std::vector{accepted("second", nullptr), Event("TxAllocated", {{"nonce", 1}}), submitted(second, 1)}));
}

}  // namespace
}  // namespace fencepost::test

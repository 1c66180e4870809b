// Transactions that a chain refuses for good: what is refused at create, what ends without holding up its signer, and
// what is signed again.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "evm/transaction.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/rpc_rewriter.hpp"
#include "tests/support/tx_cluster.hpp"

namespace fencepost::test {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr auto kEnd = "state || ' ' || coalesce(sub_state, '')";

std::string zeros(std::size_t bytes) {
  return "0x" + std::string(2 * bytes, '0');
}

json::object with(json::object body, json::object members) {
  for (const auto& [name, value] : members) body["payload"].as_object()[name] = value;
  return body;
}

// "422 insufficient_funds"
std::string refusal(const TxCluster& cluster, const json::object& body) {
  const auto answer = cluster.post(0, "/api/v1/tx", body);
  return fmt::format("{} {}", answer.status, answer.status < 300 ? "" : answer.code());
}

// Creates a contract with more code than the chain takes. Fencepost does not check it, so the chain refuses it.
TxClusterOptions unchecked(std::string fees = "{}") {
  return {.settings = {.fees = std::move(fees), .more = "limits: {max_initcode_bytes: 0}\n"},
          .anvil = {"--block-time", "1"}};
}
json::object too_much_code(const std::string& request) {
  return {{"signer", signer(0)}, {"requestId", request}, {"payload", {{"data", zeros(50'000)}, {"gas", 5'000'000}}}};
}

std::vector<std::string> create_batch(const TxCluster& cluster, json::array items) {
  const auto answer = cluster.post(0, "/api/v1/tx/batch", {{"items", std::move(items)}});
  std::vector<std::string> ids;
  for (const auto& result : answer.json().at("results").as_array()) {
    ids.emplace_back(result.at("tx").at("txId").as_string());
  }
  return ids;
}

TEST(tx_rejected, what_the_chain_would_refuse_is_refused_at_create) {
  TxCluster cluster;
  ASSERT_TRUE(eventually([&] { return cluster.node(0).metric("chain_head_block") >= 1; })) << cluster.describe();
  const auto any = [](const char* request) { return transfer(signer(0), request, 1); };
  const auto rich = with(any("rich"), {{"value", "1000000000000000000000000000"}});
  EXPECT_EQ(refusal(cluster, rich), "422 insufficient_funds");
  EXPECT_EQ(refusal(cluster, with(rich, {{"gas", nullptr}})), "422 insufficient_funds");
  EXPECT_EQ(refusal(cluster, with(any("gas"), {{"gas", 3'000'000'000}})), "422 gas_above_limit");
  EXPECT_EQ(refusal(cluster, with(any("code"), {{"to", nullptr}, {"data", zeros(49'153)}, {"gas", 5'000'000}})),
            "422 initcode_too_large");
  EXPECT_EQ(refusal(cluster, with(any("size"), {{"data", zeros(131'000)}, {"gas", 5'000'000}})), "422 tx_too_large");
  EXPECT_EQ(cluster.sql("SELECT count(*) FROM managed_tx"), "0");
  cluster.create(0, any("good"));
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
}

TEST(tx_rejected, gas_above_the_blocks_limit_is_refused_on_a_chain_without_another_limit) {
  TxCluster cluster({.settings = {.more = "limits: {max_gas: 0}\n"}});
  ASSERT_TRUE(eventually([&] { return cluster.node(0).metric("chain_head_block") >= 1; })) << cluster.describe();
  const auto body = with(transfer(signer(0), "gas", 1), {{"gas", 3'000'000'000}});
  EXPECT_EQ(refusal(cluster, body), "422 gas_above_block_limit");
}

// No block is mined, so the node learns the new values only by asking for this request.
TEST(tx_rejected, a_balance_and_a_gas_limit_that_were_lower_before_refuse_nothing) {
  TxCluster cluster(
      {.settings = {.more = "limits: {max_gas: 0}\n"}, .anvil = {"--no-mining"}, .rewritten = true, .start = false});
  auto& endpoint = cluster.chain_rewriter(0);
  endpoint.change("eth_getBlockByNumber", [](const json::object&, json::object reply) {
    if (reply.contains("result") && reply["result"].is_object()) reply["result"].as_object()["gasLimit"] = "0xf4240";
    return reply;
  });
  cluster.rpc("anvil_setBalance", {signer(0), "0x1"});
  cluster.node(0).start();
  const auto much_gas = with(transfer(signer(1), "gas", 1), {{"gas", 2'000'000}});
  ASSERT_TRUE(eventually([&] { return refusal(cluster, much_gas) == "422 gas_above_block_limit"; }));
  EXPECT_EQ(refusal(cluster, transfer(signer(0), "value", 5)), "422 insufficient_funds");
  endpoint.pass_all();
  cluster.rpc("anvil_setBalance", {signer(0), "0xde0b6b3a7640000"});
  EXPECT_EQ(refusal(cluster, much_gas), "202 ");
  EXPECT_EQ(refusal(cluster, transfer(signer(0), "value", 5)), "202 ");
}

TEST(tx_rejected, good_requests_do_not_ask_for_the_balance_again) {
  TxCluster cluster;
  for (int i = 0; i < 5; ++i) cluster.create(0, transfer(signer(0), fmt::format("r-{}", i), 1));
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  EXPECT_EQ(cluster.node(0).metric("rpc_requests_total{method=\"eth_getBalance\",result=\"ok\"}"), 1);
}

TEST(tx_rejected, a_request_that_was_accepted_is_found_when_it_would_be_refused_now) {
  TxCluster cluster;
  const auto body = transfer(signer(0), "again", 1000);
  const auto id = cluster.create(0, body);
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  cluster.node(0).stop();
  cluster.rpc("anvil_setBalance", {signer(0), "0x1"});
  cluster.node(0).start();
  const auto again = cluster.post(0, "/api/v1/tx", body);
  EXPECT_EQ(again.status, 200U) << again.body;
  EXPECT_EQ(again.json().at("txId").as_string(), id);
}

TEST(tx_rejected, a_transaction_that_can_never_be_sent_ends_and_its_nonce_is_used_again) {
  TxCluster cluster(unchecked());
  const auto bad = cluster.create(0, too_much_code("bad"));
  ASSERT_TRUE(cluster.becomes(bad, kEnd, "FAILED_FINAL rejected")) << cluster.describe();
  const auto shown = cluster.get(0, "/api/v1/tx/" + bad).json();
  EXPECT_TRUE(shown.at("nonce").is_null());
  EXPECT_THAT(std::string(shown.at("error").as_string()), HasSubstr("invalid: "));
  EXPECT_EQ(cluster.sql("SELECT count(*) FROM event WHERE type = 'TxStuck'"), "0");
  EXPECT_THAT(cluster.node(0).output(), HasSubstr("transaction rejected, and its nonce released"));

  const auto good = cluster.create(0, transfer(signer(0), "good", 1));
  ASSERT_TRUE(cluster.becomes(good, "nonce || ' ' || state", "0 CONFIRMED")) << cluster.describe();
  EXPECT_EQ(cluster.mined_count(signer(0)), 1);
  // The same request is still known, and is not sent again.
  const auto again = cluster.post(0, "/api/v1/tx", too_much_code("bad"));
  EXPECT_EQ(again.status, 200U) << again.body;
  EXPECT_EQ(again.json().at("state").as_string(), "FAILED_FINAL");
}

TEST(tx_rejected, a_node_killed_after_a_release_leaves_the_nonce_to_the_next_transaction) {
  auto options = unchecked();
  options.nodes = 2;
  options.start = false;
  TxCluster cluster(options);
  cluster.node(1).launch();
  cluster.node(0).start({"FENCEPOST_TEST_KILL_AT=submitter.rejected"});
  ask(cluster.create_ask(0, too_much_code("bad")));  // no answer if the node dies first
  ASSERT_TRUE(cluster.node(0).dies()) << cluster.describe();
  const auto bad = cluster.create_by_retrying(1, too_much_code("bad"));
  EXPECT_EQ(cluster.column(bad, kEnd), "FAILED_FINAL rejected") << cluster.describe();
  const auto good = cluster.create_by_retrying(1, transfer(signer(0), "good", 1));
  ASSERT_TRUE(cluster.becomes(good, "nonce || ' ' || state", "0 CONFIRMED")) << cluster.describe();
  EXPECT_EQ(cluster.sql("SELECT count(*) FROM event WHERE type = 'TxFailed'"), "1");
}

TEST(tx_rejected, a_transaction_that_waited_behind_gets_the_released_nonce) {
  auto options = unchecked();
  options.settings.max_in_flight = 1;
  TxCluster cluster(options);
  cluster.create(0, transfer(signer(0), "first", 1));  // the node leads the signer: the batch is one commit
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  const auto ids =
      create_batch(cluster, {too_much_code("bad"), transfer(signer(0), "a", 1), transfer(signer(0), "b", 1)});
  ASSERT_EQ(ids.size(), 3U);
  ASSERT_TRUE(cluster.becomes(ids[0], kEnd, "FAILED_FINAL rejected")) << cluster.describe();
  ASSERT_TRUE(cluster.becomes(ids[2], "nonce || ' ' || state", "2 CONFIRMED")) << cluster.describe();
  EXPECT_EQ(cluster.column(ids[1], "nonce || ' ' || state"), "1 CONFIRMED");
}

TEST(tx_rejected, the_last_nonces_are_released_together) {
  TxCluster cluster(unchecked());
  const auto ids =
      create_batch(cluster, {transfer(signer(0), "good", 1), too_much_code("bad-1"), too_much_code("bad-2")});
  ASSERT_EQ(ids.size(), 3U);
  for (const auto& id : {ids[1], ids[2]}) {
    ASSERT_TRUE(cluster.becomes(id, kEnd, "FAILED_FINAL rejected")) << cluster.describe();
  }
  EXPECT_EQ(cluster.sql("SELECT next_nonce FROM signer_nonce_cursor"), "1");
  EXPECT_TRUE(cluster.becomes(ids[0], "state", "CONFIRMED")) << cluster.describe();
}

TEST(tx_rejected, below_other_nonces_it_is_stuck_and_says_what_it_blocks) {
  TxCluster cluster(unchecked());
  cluster.create(0, transfer(signer(0), "first", 1));  // the node leads the signer: the batch is one commit
  const auto ids = create_batch(cluster, {too_much_code("bad"), transfer(signer(0), "behind", 1)});
  ASSERT_EQ(ids.size(), 2U);
  ASSERT_TRUE(cluster.becomes(ids[0], kEnd, "STUCK invalid")) << cluster.describe();
  EXPECT_EQ(cluster.get(0, "/api/v1/tx/" + ids[1]).json().at("blockedBy").as_string(), ids[0]);
  EXPECT_THAT(cluster.node(0).output(), HasSubstr("warn  transaction moved"));
  const auto cancelled = cluster.post(0, "/api/v1/tx/" + ids[0] + "/cancel", {{"reason", "too much code"}});
  ASSERT_EQ(cancelled.status, 200U) << cancelled.body;
  ASSERT_TRUE(cluster.becomes(ids[1], "state", "CONFIRMED")) << cluster.describe();
  EXPECT_TRUE(cluster.becomes(ids[0], kEnd, "FAILED_FINAL cancelled_by_operator")) << cluster.describe();
}

TEST(tx_rejected, it_is_filled_without_an_operator_where_that_is_configured) {
  TxCluster cluster(unchecked("{fill_rejected: true}"));
  cluster.create(0, transfer(signer(0), "first", 1));  // the node leads the signer: the batch is one commit
  const auto ids = create_batch(cluster, {too_much_code("bad"), transfer(signer(0), "behind", 1)});
  ASSERT_EQ(ids.size(), 2U);
  ASSERT_TRUE(cluster.becomes(ids[1], "state", "CONFIRMED")) << cluster.describe();
  EXPECT_TRUE(cluster.becomes(ids[0], kEnd, "FAILED_FINAL cancelled_by_operator")) << cluster.describe();
  EXPECT_THAT(cluster.sql("SELECT action || ' ' || actor || ' ' || reason FROM operator_action"),
              HasSubstr("cancel fencepost fees.fill_rejected: "));
}

// An endpoint that simulates refuses what may succeed once an earlier transaction is mined.
TEST(tx_rejected, a_revert_that_an_endpoint_foresees_is_tried_again_until_it_is_stuck) {
  TxCluster cluster({.settings = {.stuck_after = 5s}, .rewritten = true});
  auto& endpoint = cluster.chain_rewriter(0);
  endpoint.refuse("eth_sendRawTransaction",
                  [](const json::object&) { return std::optional<std::string>("execution reverted: not yet"); });
  const auto id = cluster.create(0, transfer(signer(0), "early", 1));
  ASSERT_TRUE(cluster.becomes(id, kEnd, "ALLOCATED reverted")) << cluster.describe();
  endpoint.pass_all();
  ASSERT_TRUE(cluster.becomes(id, "state", "CONFIRMED")) << cluster.describe();

  endpoint.refuse("eth_sendRawTransaction",
                  [](const json::object&) { return std::optional<std::string>("execution reverted: never"); });
  const auto never = cluster.create(0, transfer(signer(0), "never", 1));
  ASSERT_TRUE(cluster.becomes(never, kEnd, "FAILED_FINAL rejected")) << cluster.describe();
  EXPECT_EQ(cluster.sql("SELECT count(*) FROM event WHERE type = 'TxStuck'"), "1");
}

// geth and besu refuse a transaction whose gas times its cap is above 1 ether by default.
TEST(tx_rejected, a_cap_that_endpoints_do_not_let_through_is_lowered) {
  TxCluster cluster({.anvil = {"--block-time", "1", "--base-fee", "1000000000"}, .rewritten = true});
  const Uint256 most = Uint256(21'000) * 2'500'000'000;
  cluster.chain_rewriter(0).refuse("eth_sendRawTransaction",
                                   [most](const json::object& call) -> std::optional<std::string> {
                                     const auto raw = from_hex0x(std::string(call.at("params").at(0).as_string()));
                                     const auto tx = evm::decode_transaction(raw.value()).value().transaction;
                                     const auto cap = std::get<evm::DynamicFees>(tx.fees).max_fee_per_gas;
                                     if (cap * tx.gas <= most) return std::nullopt;
                                     return "tx fee (1.26 ether) exceeds the configured cap (1.00 ether)";
                                   });
  const auto id = cluster.create(0, transfer(signer(0), "cap", 1));
  ASSERT_TRUE(cluster.becomes(id, "state", "CONFIRMED")) << cluster.describe();
  EXPECT_EQ(cluster.sql("SELECT string_agg(outcome, ' ' ORDER BY attempt) FROM tx_attempt"), "refused accepted");
  EXPECT_EQ(cluster.balance(recipient()), 1);

  // The caller's own cap is not changed: the transaction ends.
  const auto own = with(transfer(signer(1), "own", 1), {{"maxFeePerGas", "9000000000"}});
  const auto ended = cluster.create(0, own);
  ASSERT_TRUE(cluster.becomes(ended, kEnd, "FAILED_FINAL rejected")) << cluster.describe();
}

TEST(tx_rejected, the_callers_own_cap_that_endpoints_do_not_let_through_is_filled_like_any_other_refusal) {
  TxCluster cluster({.settings = {.fees = "{fill_rejected: true}"}, .rewritten = true});
  cluster.chain_rewriter(0).refuse("eth_sendRawTransaction",
                                   [](const json::object& call) -> std::optional<std::string> {
                                     const auto raw = from_hex0x(std::string(call.at("params").at(0).as_string()));
                                     const auto tx = evm::decode_transaction(raw.value()).value().transaction;
                                     if (tx.value != 777) return std::nullopt;
                                     return "tx fee (1.26 ether) exceeds the configured cap (1.00 ether)";
                                   });
  cluster.create(0, transfer(signer(0), "first", 1));  // the node leads the signer: the batch is one commit
  const auto own = with(transfer(signer(0), "own", 777), {{"maxFeePerGas", "9000000000"}});
  const auto ids = create_batch(cluster, {own, transfer(signer(0), "behind", 1)});
  ASSERT_EQ(ids.size(), 2U);
  ASSERT_TRUE(cluster.becomes(ids[1], "state", "CONFIRMED")) << cluster.describe();
  EXPECT_TRUE(cluster.becomes(ids[0], kEnd, "FAILED_FINAL cancelled_by_operator")) << cluster.describe();
}

// One endpoint's answer was lost, so an endpoint may have it: the nonce must not be used again.
TEST(tx_rejected, a_nonce_that_an_endpoint_may_have_is_not_released) {
  TxCluster cluster({.settings = {.nonce_state_timeout = 1s}, .anvil = {"--no-mining"}, .rewritten = true});
  auto& endpoint = cluster.chain_rewriter(0);
  // The endpoint has the transaction, and says that something went wrong.
  endpoint.answer_error("eth_sendRawTransaction", -32603, "internal error");
  const auto id = cluster.create(0, transfer(signer(0), "lost", 1));
  ASSERT_TRUE(cluster.sql_becomes("SELECT outcome FROM tx_attempt", "unknown")) << cluster.describe();
  endpoint.answer_error("eth_sendRawTransaction", -32000, "exceeds block gas limit");
  ASSERT_TRUE(cluster.becomes(id, kEnd, "STUCK invalid")) << cluster.describe();
  EXPECT_EQ(cluster.column(id, "nonce"), "0");
  endpoint.pass_all();
  cluster.mine(3);
  EXPECT_TRUE(cluster.becomes(id, "state", "CONFIRMED")) << cluster.describe();
}

// A relay need not show what it has, so its refusal alone must not make a payment count as failed.
TEST(tx_rejected, what_a_relay_refused_keeps_its_nonce) {
  TxCluster cluster(
      {.settings = {.nonce_state_timeout = 1s}, .anvil = {"--no-mining"}, .rewritten = true, .start = false});
  RpcRewriter relay(cluster.anvil().url());
  relay.answer_error("eth_sendRawTransaction", -32000, "exceeds block gas limit");
  cluster.chain_rewriter(0).answer_null("eth_getTransactionByHash");
  cluster.node(0).start({"FENCEPOST_CHAINS_0_SUBMIT_URLS=" + relay.url()});
  const auto id = cluster.create(0, transfer(signer(0), "private", 1));
  ASSERT_TRUE(cluster.becomes(id, kEnd, "STUCK invalid")) << cluster.describe();
  EXPECT_EQ(cluster.column(id, "nonce"), "0");
  cluster.mine(3);
  EXPECT_TRUE(cluster.becomes(id, "state", "CONFIRMED")) << cluster.describe();
}

// The endpoint has the transaction, and says that it refused it: one lie must not make a payment count as failed.
TEST(tx_rejected, a_transaction_that_an_endpoint_refused_and_has_is_not_rejected) {
  TxCluster cluster({.settings = {.nonce_state_timeout = 1s}, .anvil = {"--no-mining"}, .rewritten = true});
  auto& endpoint = cluster.chain_rewriter(0);
  endpoint.answer_error("eth_sendRawTransaction", -32000, "exceeds block gas limit");
  const auto id = cluster.create(0, transfer(signer(0), "lie", 1));
  ASSERT_TRUE(cluster.becomes(id, kEnd, "STUCK invalid")) << cluster.describe();
  EXPECT_EQ(cluster.column(id, "nonce"), "0");
  cluster.mine(3);
  EXPECT_TRUE(cluster.becomes(id, "state", "CONFIRMED")) << cluster.describe();
  EXPECT_EQ(cluster.balance(recipient()), 1);
}

// The only endpoint has the transaction, says that it refused it, and denies to know it: nothing contradicts the lie.
TEST(tx_rejected, a_payment_that_ended_and_is_mined_after_all_is_reported_and_the_next_one_names_it) {
  TxCluster cluster(
      {.settings = {.resubmit_interval = 60s, .nonce_state_timeout = 1s}, .anvil = {"--no-mining"}, .rewritten = true});
  auto& endpoint = cluster.chain_rewriter(0);
  endpoint.answer_error("eth_sendRawTransaction", -32000, "exceeds block gas limit");
  endpoint.answer_null("eth_getTransactionByHash");
  const auto wrong = cluster.create(0, transfer(signer(0), "lie", 1));
  ASSERT_TRUE(cluster.becomes(wrong, kEnd, "FAILED_FINAL rejected")) << cluster.describe();
  const auto hash = cluster.column(wrong, "tx_hash");
  // The endpoint takes the next one at that nonce, and drops it.
  endpoint.pass_all();
  endpoint.swallow_broadcasts();
  const auto next = cluster.create(0, transfer(signer(0), "next", 2));
  ASSERT_TRUE(cluster.becomes(next, "state || ' ' || nonce", "TRACKING 0")) << cluster.describe();

  cluster.mine(1);
  ASSERT_TRUE(cluster.becomes(wrong, kEnd, "FAILED_FINAL mined_after_end")) << cluster.describe();
  EXPECT_EQ(cluster.sql("SELECT concat_ws(' ', data ->> 'nonce', data ->> 'txHash', data ->> 'blockNumber') "
                        "FROM outbox WHERE type = 'TxMinedAfterEnd'"),
            "0 " + hash + " 1");
  EXPECT_TRUE(eventually([&] { return cluster.node(0).metric("tx_finality_violated_total") == 1; }));
  EXPECT_THAT(cluster.node(0).output(), HasSubstr("a transaction that had ended without being mined is in a block"));
  cluster.mine(4);
  ASSERT_TRUE(cluster.becomes(next, kEnd, "FAILED_FINAL nonce_consumed_elsewhere")) << cluster.describe();
  EXPECT_EQ(cluster.sql("SELECT data #>> '{takenBy,txHash}' FROM outbox WHERE type = 'TxFailed' AND subject = 'tx/" +
                        next + "'"),
            hash);
  EXPECT_EQ(cluster.sql("SELECT count(*) FROM outbox WHERE type = 'TxMinedAfterEnd'"), "1");
  EXPECT_EQ(cluster.balance(recipient()), 1);
}

// The first endpoint refuses what another one would take: its word alone ends nothing.
class OneRefuses : public ::testing::Test {
 protected:
  OneRefuses()
      : cluster_({.settings = {.nonce_state_timeout = 1s},
                  .anvil = {"--block-time", "1"},
                  .rewritten = true,
                  .second_endpoint = true,
                  .second_rewritten = true}) {}
  void refuse_all_broadcasts() {
    cluster_.chain_rewriter(0).refuse("eth_sendRawTransaction", [](const json::object&) -> std::optional<std::string> {
      return "exceeds block gas limit";
    });
  }
  json::object second() const {
    return cluster_.get(0, "/api/v1/chains").json().at("items").at(0).at("endpoints").at(1).as_object();
  }
  void expect_paid(const std::string& id) {
    ASSERT_TRUE(cluster_.becomes(id, "state", "CONFIRMED")) << cluster_.describe();
    EXPECT_EQ(cluster_.balance(recipient()), 1);
    EXPECT_EQ(cluster_.mined_count(signer(0)), 1);
  }

  TxCluster cluster_;
};

TEST_F(OneRefuses, while_the_other_one_fails_the_transaction_waits_for_it) {
  auto& other = cluster_.second_rewriter();
  for (const auto* method : {"eth_chainId", "eth_blockNumber"}) {
    other.answer_error(method, -32005, "daily request limit");
  }
  ASSERT_TRUE(eventually([&] { return !second().at("healthy").as_bool(); }, 30s)) << cluster_.describe();
  refuse_all_broadcasts();
  const auto id = cluster_.create(0, transfer(signer(0), "waits", 1));
  ASSERT_TRUE(cluster_.becomes(id, kEnd, "ALLOCATED transient")) << cluster_.describe();
  ASSERT_TRUE(cluster_.sql_becomes("SELECT max(retry_count) >= 2 FROM tx_open", "t")) << cluster_.describe();
  EXPECT_EQ(cluster_.column(id, "nonce || ' ' || state"), "0 ALLOCATED");
  other.pass_all();
  expect_paid(id);
}

TEST_F(OneRefuses, an_endpoint_that_is_behind_is_asked_too) {
  auto& other = cluster_.second_rewriter();
  other.lag(1);
  ASSERT_TRUE(eventually([&] { return second().at("behind").as_bool(); }, 30s)) << cluster_.describe();
  refuse_all_broadcasts();
  expect_paid(cluster_.create(0, transfer(signer(0), "behind", 1)));
}

TEST(tx_rejected, an_unfunded_transaction_that_became_stuck_is_priced_anew_when_it_is_funded) {
  TxCluster cluster({.settings = {.stuck_after = 2s}, .anvil = {"--block-time", "1"}});
  cluster.rpc("anvil_setBalance", {signer(0), "0x1"});
  const auto id = cluster.create(0, transfer(signer(0), "poor", 1));
  ASSERT_TRUE(cluster.becomes(id, kEnd, "STUCK insufficient_funds")) << cluster.describe();
  const auto old_fees = cluster.sql("SELECT fees FROM tx_attempt ORDER BY attempt LIMIT 1");
  cluster.rpc("anvil_setNextBlockBaseFeePerGas", {"0x2540be400"});  // 10 gwei: the old cap is below it
  cluster.rpc("anvil_setBalance", {signer(0), "0xde0b6b3a7640000"});
  ASSERT_TRUE(cluster.becomes(id, "state", "CONFIRMED")) << cluster.describe();
  EXPECT_EQ(cluster.balance(recipient()), 1);
  EXPECT_EQ(cluster.sql("SELECT count(*) FROM history WHERE from_state = 'STUCK' AND to_state = 'ALLOCATED'"), "1");
  EXPECT_NE(cluster.sql("SELECT fees FROM tx_attempt ORDER BY attempt DESC LIMIT 1"), old_fees);
}

}  // namespace
}  // namespace fencepost::test

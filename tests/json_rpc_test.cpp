// POST /rpc/{chainId} of real nodes, as a client without any library sees it.
#include <csignal>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "tests/support/cast.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/tx_cluster.hpp"

namespace fencepost::test {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

std::string text_of(const json::value& value) {
  return std::string(value.as_string());
}

json::object call(const std::string& method, json::array params = {}, json::value id = 1) {
  return {{"jsonrpc", "2.0"}, {"id", std::move(id)}, {"method", method}, {"params", std::move(params)}};
}

// The parameters of a plain transfer.
json::object transaction(std::int64_t value, const std::string& from = signer(0)) {
  return {{"from", from}, {"to", recipient()}, {"value", fmt::format("0x{:x}", value)}, {"gas", "0x5208"}};
}

class JsonRpc : public ::testing::Test {
 protected:
  void start(TxClusterOptions options = {}, const std::vector<std::string>& env = {}) {
    options.start = false;
    cluster_.emplace(std::move(options));
    for (std::size_t i = 0; i < cluster_->size(); ++i) cluster_->node(i).launch(env);
    for (std::size_t i = 0; i < cluster_->size(); ++i) cluster_->node(i).await_ready();
  }

  TxCluster& cluster() { return *cluster_; }
  std::string url(const std::string& rest = "", std::size_t node = 0) {
    return cluster().node(node).url("/rpc/31337" + rest);
  }
  Answer post(const std::string& body, std::vector<std::pair<std::string, std::string>> headers = {}) {
    return ask({"POST", url(), key_.empty() ? cluster().key() : key_, body, std::move(headers)});
  }
  json::value answer(const json::value& body, std::vector<std::pair<std::string, std::string>> headers = {}) {
    const auto got = post(json::serialize(body), std::move(headers));
    EXPECT_EQ(got.status, 200U) << got.body;
    return got.json();
  }
  json::value result(const std::string& method, json::array params = {}) {
    const auto got = answer(call(method, std::move(params)));
    if (const auto* found = got.as_object().if_contains("result")) return *found;
    ADD_FAILURE() << method << ": " << json::serialize(got) << cluster().describe();
    return nullptr;
  }
  json::value error(const std::string& method, json::array params = {}) {
    const auto got = answer(call(method, std::move(params)));
    if (const auto* found = got.as_object().if_contains("error")) return *found;
    ADD_FAILURE() << method << ": " << json::serialize(got);
    return json::object{{"code", 0}, {"message", ""}, {"data", nullptr}};
  }
  std::string send(json::object tx, std::vector<std::pair<std::string, std::string>> headers = {}) {
    const auto got = answer(call("eth_sendTransaction", {std::move(tx)}), std::move(headers));
    if (const auto* found = got.as_object().if_contains("result")) return text_of(*found);
    return json::serialize(got.at("error"));
  }
  std::string make_key(std::vector<std::string> more) {
    std::vector<std::string> argv{"apikey", "create", "--dsn", cluster().dsn(), "--json", "--label", "other"};
    argv.insert(argv.end(), more.begin(), more.end());
    return text_of(json::parse(fencepost(std::move(argv)).out).at("key"));
  }

  std::optional<TxCluster> cluster_;
  std::string key_;  // instead of the cluster's
};

TEST_F(JsonRpc, answers_about_the_chain_and_passes_the_rest_on) {
  start();
  EXPECT_EQ(result("eth_chainId"), "0x7a69");
  EXPECT_EQ(result("net_version"), "31337");
  EXPECT_EQ(result("eth_accounts").as_array().size(), 10U);
  EXPECT_EQ(result("eth_getBalance", {recipient(), "latest"}), "0x0");
  EXPECT_EQ(result("eth_getBlockByNumber", {"0x0", false}), cluster().rpc("eth_getBlockByNumber", {"0x0", false}));
  // An error of the chain comes through as it is.
  const auto refused = error("eth_getBlockByNumber", {"nonsense", false});
  const auto direct =
      ask({"POST", cluster().anvil().url(), "", json::serialize(call("eth_getBlockByNumber", {"nonsense", false}))});
  EXPECT_EQ(refused, direct.json().at("error"));
  EXPECT_EQ(error("made_up_method").at("code"), -32601);
  EXPECT_GE(cluster().node(0).metric(R"(jsonrpc_calls_total{class="proxied",result="error"})"), 2);
  EXPECT_EQ(cluster().node(0).metric(R"(rpc_requests_total{method="made_up_method"})"), 0);
}

TEST_F(JsonRpc, a_key_sees_and_uses_only_its_signers_and_scopes) {
  start();
  key_ = make_key({"--scope", "tx:read", "--scope", "tx:write", "--signer", signer(1)});
  EXPECT_EQ(result("eth_requestAccounts"), json::array{signer(1)});
  const auto foreign = error("eth_sendTransaction", {transaction(1)});
  EXPECT_EQ(foreign.at("code"), 4100);
  EXPECT_EQ(foreign.at("data").at("code"), "signer_not_allowed");
  EXPECT_EQ(send(transaction(1, signer(1))).size(), 66U);

  key_ = make_key({"--scope", "tx:read"});
  EXPECT_EQ(result("eth_chainId"), "0x7a69");
  const auto reader = error("eth_sendTransaction", {transaction(1)});
  EXPECT_EQ(reader.at("code"), 4100);
  EXPECT_EQ(reader.at("data").at("code"), "insufficient_scope");
  key_ = make_key({"--scope", "transfer:read"});
  EXPECT_EQ(error("eth_chainId").at("code"), 4100);
  EXPECT_EQ(cluster().sql("SELECT count(*) FROM managed_tx"), "1");
}

TEST_F(JsonRpc, the_key_comes_by_header_or_in_the_path_and_is_never_shown) {
  start({}, {"FENCEPOST_LOG_LEVEL=debug"});
  const auto body = json::serialize(call("eth_chainId"));
  const auto& key = cluster().key();
  const auto secret = key.substr(key.rfind('_') + 1);
  EXPECT_EQ(ask({"POST", url("/" + key), "", body}).json().at("result"), "0x7a69");
  EXPECT_EQ(ask({"POST", url(), key, body}).json().at("result"), "0x7a69");
  for (const auto& path : {std::string(""), std::string("/fp_wrong"), "/" + key + "0"}) {
    const auto refused = ask({"POST", url(path), "", body});
    EXPECT_EQ(refused.status, 401U) << refused.body;
    EXPECT_EQ(refused.json().at("id"), nullptr);
    EXPECT_EQ(refused.json().at("error").at("code"), 4100);
    EXPECT_EQ(refused.json().at("error").at("data").at("code"), path.empty() ? "no_api_key" : "bad_api_key");
    EXPECT_FALSE(refused.body.contains(secret));
  }
  // Paths that no route or no chain matches, too.
  const auto encoded = "/%66p_" + key.substr(3);
  for (const auto& path : {"/rpc/31337/" + key + "/more", "/rpc/x/" + key, "/rpc/1/" + key, "/rpc/" + key,
                           "/rpc/31337" + encoded, "/rpc/31337/extra" + encoded}) {
    const auto got = ask({"POST", cluster().node(0).url(path), "", body});
    EXPECT_FALSE(got.body.contains(secret)) << got.body;
  }
  const auto logged = [&] { return cluster().node(0).output(); };
  EXPECT_TRUE(eventually([&] { return logged().contains("/rpc/31337/extra/***"); })) << logged();
  EXPECT_TRUE(logged().contains("/rpc/31337/***"));
  EXPECT_FALSE(logged().contains(secret));
  EXPECT_FALSE(ask({"GET", cluster().node(0).url("/metrics"), "", ""}).body.contains(secret));
}

TEST_F(JsonRpc, batches_are_answered_in_order_with_their_ids) {
  start();
  auto silent = call("eth_chainId");
  silent.erase("id");
  const auto got = answer(json::array{call("eth_chainId", {}, "a"), silent, call("eth_blockNumber", {}, nullptr), 5,
                                      call("anvil_mine", {}, 4), call("net_version", {}, 5.5)});
  const auto& list = got.as_array();
  ASSERT_EQ(list.size(), 5U) << json::serialize(got);
  EXPECT_EQ(list[0].at("id"), "a");
  EXPECT_EQ(list[0].at("result"), "0x7a69");
  EXPECT_EQ(list[1].at("id"), nullptr);
  EXPECT_TRUE(list[1].as_object().contains("result"));
  EXPECT_EQ(list[2].at("error").at("code"), -32600);
  EXPECT_EQ(list[3].at("error").at("code"), -32601);
  EXPECT_EQ(list[4].at("result"), "31337");
  EXPECT_TRUE(post(R"({"jsonrpc":"2.0","id":12345678901234567890123,"method":"eth_chainId"})")
                  .body.contains("12345678901234567890123"));

  EXPECT_EQ(post(json::serialize(silent)).status, 204U);
  EXPECT_EQ(post("{").json().at("error").at("code"), -32700);
  EXPECT_EQ(post("[]").json().at("error").at("code"), -32600);
  EXPECT_EQ(post("5").json().at("error").at("code"), -32600);
  json::array many;
  for (int i = 0; i < 1001; ++i) many.push_back(call("eth_chainId", {}, i));
  EXPECT_EQ(answer(many).at("error").at("code"), -32600);
  many.pop_back();
  EXPECT_EQ(answer(many).as_array().size(), 1000U);
}

TEST_F(JsonRpc, denies_what_operates_a_node_and_subscriptions) {
  start();
  for (const auto* method : {"anvil_setBalance", "evm_mine", "hardhat_reset", "personal_sign", "debug_traceCall",
                             "admin_peers", "miner_start", "eth_sign", "eth_signTransaction"}) {
    const auto denied = error(method);
    EXPECT_EQ(denied.at("code"), -32601) << method;
    EXPECT_EQ(denied.at("data").at("code"), "method_denied");
  }
  EXPECT_EQ(error("eth_subscribe", {"newHeads"}).at("data").at("code"), "no_subscriptions");
  const Ask upgrade{"GET", url(), "", "", {{"Connection", "Upgrade"}, {"Upgrade", "websocket"}}};
  const auto refused = ask(upgrade);
  EXPECT_EQ(refused.status, 405U);
  EXPECT_EQ(refused.json().at("error").at("code"), -32601) << refused.body;
  const auto other =
      ask({"POST", cluster().node(0).url("/rpc/1"), cluster().key(), json::serialize(call("eth_chainId"))});
  EXPECT_EQ(other.status, 400U);
  EXPECT_EQ(other.json().at("error").at("data").at("code"), "unknown_chain");
}

TEST_F(JsonRpc, a_send_answers_the_hash_and_a_repeat_the_same) {
  start();
  const auto first = send(transaction(7), {{"Idempotency-Key", "pay-1"}});
  ASSERT_EQ(first.size(), 66U) << first;
  EXPECT_EQ(cluster().sql("SELECT tx_hash FROM tx_view WHERE request_id = 'pay-1'"), first);
  EXPECT_EQ(send(transaction(7), {{"Idempotency-Key", "pay-1"}}), first);
  const auto conflict = json::parse(send(transaction(8), {{"Idempotency-Key", "pay-1"}}));
  EXPECT_EQ(conflict.at("code"), -32000);
  EXPECT_EQ(conflict.at("data").at("code"), "request_conflict");
  EXPECT_EQ(cluster().sql("SELECT count(*) FROM managed_tx"), "1");

  json::array batch{call("eth_chainId"), call("eth_sendTransaction", {transaction(1)}, "x"),
                    call("eth_sendTransaction", {transaction(2)}, "y")};
  const auto sent = answer(batch, {{"Idempotency-Key", "b"}});
  EXPECT_EQ(answer(batch, {{"Idempotency-Key", "b"}}), sent);
  EXPECT_EQ(text_of(sent.at(1).at("result")), cluster().sql("SELECT tx_hash FROM tx_view WHERE request_id = 'b-1'"));
  EXPECT_EQ(text_of(sent.at(2).at("result")), cluster().sql("SELECT tx_hash FROM tx_view WHERE request_id = 'b-2'"));

  // Without a key, two equal sends are two transactions.
  EXPECT_NE(send(transaction(9)), send(transaction(9)));
  EXPECT_EQ(cluster().sql("SELECT count(*) FROM managed_tx WHERE request_id IS NULL"), "0");
  ASSERT_TRUE(cluster().all_confirmed()) << cluster().describe();
  EXPECT_EQ(cluster().balance(recipient()), 7 + 1 + 2 + 9 + 9);
  EXPECT_EQ(post(json::serialize(call("eth_chainId")), {{"Idempotency-Key", ""}}).status, 400U);
}

TEST_F(JsonRpc, the_sends_of_a_batch_run_together) {
  start({.settings = {.max_in_flight = 0}});
  json::array batch;
  for (int i = 1; i <= 300; ++i) batch.push_back(call("eth_sendTransaction", {transaction(i)}, i));
  const auto sent = answer(batch);
  std::set<std::string> hashes;
  for (const auto& one : sent.as_array()) {
    ASSERT_TRUE(one.as_object().contains("result")) << json::serialize(one);
    hashes.insert(text_of(one.at("result")));
  }
  EXPECT_EQ(hashes.size(), 300U);
  // A wait after each send would make a commit for each.
  EXPECT_LT(cluster().node(0).metric("tx_create_commits_total"), 100);
}

TEST_F(JsonRpc, a_nonce_is_accepted_only_as_the_next_one) {
  start({.anvil = {"--no-mining"}});
  const auto with_nonce = [](std::int64_t value, int nonce) {
    auto tx = transaction(value);
    tx["nonce"] = fmt::format("0x{:x}", nonce);
    return tx;
  };
  const auto early = json::parse(send(with_nonce(1, 1)));
  EXPECT_EQ(early.at("code"), -32000);
  EXPECT_EQ(early.at("data").at("code"), "nonce_mismatch");
  EXPECT_TRUE(text_of(early.at("message")).starts_with("nonce too high"));
  const auto first = send(with_nonce(1, 0));
  ASSERT_EQ(first.size(), 66U) << first;
  // A client that repeats a send with its nonce must not pay twice.
  EXPECT_EQ(send(with_nonce(1, 0)), first);
  EXPECT_EQ(json::parse(send(with_nonce(2, 0))).at("data").at("code"), "request_conflict");
  const auto second = send(with_nonce(2, 1));
  EXPECT_EQ(second.size(), 66U) << second;
  send(transaction(3));
  const auto late = json::parse(send(with_nonce(4, 2)));
  EXPECT_TRUE(text_of(late.at("message")).starts_with("nonce too low")) << json::serialize(late);
  EXPECT_EQ(late.at("data").at("nextNonce"), "3");
  EXPECT_EQ(cluster().sql("SELECT count(*) FROM managed_tx"), "3");
}

TEST_F(JsonRpc, pending_counts_what_has_a_nonce) {
  start({.settings = {.max_in_flight = 2}, .anvil = {"--no-mining"}});
  EXPECT_EQ(result("eth_getTransactionCount", {signer(0), "pending"}), "0x0");
  for (const auto* id : {"a", "b", "c"}) cluster().create(0, transfer(signer(0), id, 1));
  // The third waits for a nonce.
  EXPECT_EQ(result("eth_getTransactionCount", {signer(0), "pending"}), "0x2");
  EXPECT_EQ(result("eth_getTransactionCount", {signer(0), "latest"}), "0x0");
}

TEST_F(JsonRpc, a_transaction_that_the_chain_does_not_know_comes_from_the_record) {
  start({.rewritten = true});
  const auto hash = send(transaction(5));
  ASSERT_EQ(hash.size(), 66U) << hash;
  ASSERT_TRUE(cluster().all_confirmed()) << cluster().describe();
  const auto mined = cluster().rpc("eth_getTransactionByHash", {hash}).as_object();
  const auto receipt = cluster().rpc("eth_getTransactionReceipt", {hash});
  EXPECT_EQ(result("eth_getTransactionByHash", {hash}), mined);
  EXPECT_EQ(result("eth_getTransactionReceipt", {hash}), receipt);

  auto& endpoint = cluster().chain_rewriter(0);
  endpoint.answer_null("eth_getTransactionByHash");
  endpoint.answer_null("eth_getTransactionReceipt");
  const auto recorded = result("eth_getTransactionByHash", {hash}).as_object();
  for (const auto* name : {"hash", "from", "to", "nonce", "gas", "value", "input", "chainId", "type", "maxFeePerGas",
                           "maxPriorityFeePerGas", "accessList", "v", "r", "s", "yParity", "blockHash", "blockNumber",
                           "transactionIndex"}) {
    ASSERT_TRUE(mined.contains(name)) << name;
    EXPECT_EQ(recorded.at(name), mined.at(name)) << name;
  }
  EXPECT_EQ(result("eth_getTransactionReceipt", {hash}), receipt);
  EXPECT_EQ(result("eth_getTransactionReceipt", {"0x" + std::string(64, '1')}), nullptr);
  key_ = make_key({"--scope", "tx:read", "--signer", signer(1)});
  EXPECT_EQ(result("eth_getTransactionByHash", {hash}), nullptr) << "another key's transaction";
}

TEST_F(JsonRpc, a_pending_transaction_has_no_block_and_no_receipt) {
  start({.anvil = {"--no-mining"}, .rewritten = true});
  cluster().chain_rewriter(0).answer_null("eth_getTransactionByHash");
  const auto hash = send(transaction(5));
  const auto pending = result("eth_getTransactionByHash", {hash});
  EXPECT_EQ(pending.at("hash"), hash.c_str());
  EXPECT_EQ(pending.at("blockHash"), nullptr);
  EXPECT_EQ(pending.at("blockNumber"), nullptr);
  EXPECT_EQ(result("eth_getTransactionReceipt", {hash}), nullptr);
}

TEST_F(JsonRpc, a_send_that_is_not_signed_in_time_answers_its_tx_id) {
  start({.settings = {.max_in_flight = 1}, .anvil = {"--no-mining"}},
        {"FENCEPOST_RPC_SIGN_WAIT=500ms", "FENCEPOST_RPC_MAX_WAITING=1"});
  EXPECT_EQ(send(transaction(1)).size(), 66U);
  const auto late = json::parse(send(transaction(2), {{"Idempotency-Key", "late"}}));
  EXPECT_EQ(late.at("code"), -32000);
  EXPECT_EQ(late.at("data").at("code"), "sign_timeout");
  EXPECT_EQ(text_of(late.at("data").at("txId")),
            cluster().sql("SELECT tx_id FROM managed_tx WHERE request_id = 'late'"));

  // Only one may wait at a time.
  const auto both = answer(
      json::array{call("eth_sendTransaction", {transaction(3)}, 1), call("eth_sendTransaction", {transaction(4)}, 2)});
  std::multiset<std::int64_t> codes;
  for (const auto& one : both.as_array()) codes.insert(one.at("error").at("code").as_int64());
  EXPECT_EQ(codes, (std::multiset<std::int64_t>{-32005, -32000}));
  EXPECT_EQ(cluster().sql("SELECT count(*) FROM managed_tx"), "3") << "what is refused is not created";

  cluster().mine();
  ASSERT_TRUE(
      cluster().sql_becomes("SELECT count(*) FROM tx_view WHERE request_id = 'late' AND tx_hash IS NOT NULL", "1"));
  EXPECT_EQ(send(transaction(2), {{"Idempotency-Key", "late"}}),
            cluster().sql("SELECT tx_hash FROM tx_view WHERE request_id = 'late'"));
}

TEST_F(JsonRpc, a_node_that_does_not_lead_forwards_with_the_key_of_the_path) {
  start({.nodes = 2});
  ASSERT_EQ(send(transaction(1)).size(), 66U);
  ASSERT_EQ(cluster().leader_of(signer(0)), 0U);
  const auto body = json::serialize(call("eth_sendTransaction", {transaction(2)}));
  const auto forwarded = ask({"POST", url("/" + cluster().key(), 1), "", body}).json();
  EXPECT_EQ(text_of(forwarded.at("result")), cluster().sql("SELECT tx_hash FROM tx_view WHERE nonce = 1"));
}

// Clients repeat a call by themselves after -32603 or HTTP 503, and would then send twice.
TEST_F(JsonRpc, a_send_with_an_unknown_outcome_invites_no_repeat_and_names_its_tx_id) {
  start({.nodes = 2, .settings = {.lease_duration = 60s, .renew_interval = 5s}});
  ASSERT_EQ(send(transaction(1)).size(), 66U);
  ASSERT_EQ(cluster().leader_of(signer(0)), 0U);
  const Ask second{"POST",
                   url("", 1),
                   cluster().key(),
                   json::serialize(call("eth_sendTransaction", {transaction(2)})),
                   {{"Idempotency-Key", "second"}}};
  cluster().node(0).signal(SIGSTOP);
  const auto open = ask(second);
  cluster().node(0).resume();
  EXPECT_EQ(open.status, 200U);
  const auto error = open.json().at("error");
  EXPECT_EQ(error.at("code"), -32000) << open.body;
  EXPECT_EQ(error.at("data").at("code"), "outcome_unknown");
  EXPECT_EQ(error.at("data").at("requestId"), "second");
  std::string hash;
  EXPECT_TRUE(eventually([&] {
    const auto again = ask(second).json();
    const auto* result = again.as_object().if_contains("result");
    if (result != nullptr) hash = text_of(*result);
    return result != nullptr;
  }));
  EXPECT_EQ(hash, cluster().sql("SELECT tx_hash FROM tx_view WHERE request_id = 'second'"));
  EXPECT_EQ(cluster().sql("SELECT count(*) FROM managed_tx"), "2");
}

TEST_F(JsonRpc, a_revert_is_answered_as_clients_expect_it) {
  start();
  // Init code that reverts with Error("no").
  const auto reason =
      "08c379a0" + std::string(62, '0') + "20" + std::string(63, '0') + "2" + "6e6f" + std::string(60, '0');
  const auto size = reason.size() / 2;
  const auto code = fmt::format("0x60{:02x}600c60003960{:02x}6000fd{}", size, size, reason);
  const auto reverted = error("eth_sendTransaction", {json::object{{"from", signer(0)}, {"data", code}}});
  EXPECT_EQ(reverted.at("code"), 3) << json::serialize(reverted);
  EXPECT_EQ(reverted.at("message"), "execution reverted: no");
  EXPECT_EQ(text_of(reverted.at("data")), "0x" + reason);
  EXPECT_EQ(reverted.at("fencepost").at("code"), "would_revert");
  EXPECT_EQ(cluster().sql("SELECT count(*) FROM managed_tx"), "0");

  EXPECT_EQ(error("eth_sendTransaction", {transaction(1, recipient())}).at("data").at("code"), "unknown_signer");
  EXPECT_EQ(error("eth_sendTransaction", {json::object{{"from", signer(0)}, {"to", "0x1"}}}).at("code"), -32602);
}

TEST_F(JsonRpc, raw_bytes_are_passed_on_unless_the_sender_is_managed) {
  start();
  const std::string stranger = "0x" + std::string(63, '0') + "7";  // a private key that no node has
  const auto sender = cast({"wallet", "address", "--private-key", stranger});
  cluster().rpc("anvil_setBalance", {sender, "0xde0b6b3a7640000"});
  const auto raw_by = [&](const std::string& key) {
    return cast({"mktx", "--private-key", key, "--nonce", "0", "--gas-limit", "21000", "--gas-price", "5000000000",
                 "--priority-gas-price", "1000000000", "--chain", "31337", "--value", "3", "--rpc-url",
                 cluster().anvil().url(), recipient()});
  };
  EXPECT_EQ(text_of(result("eth_sendRawTransaction", {raw_by(stranger)})).size(), 66U);
  const auto managed = error("eth_sendRawTransaction", {raw_by(signer_key(0))});
  EXPECT_EQ(managed.at("code"), -32000);
  EXPECT_EQ(managed.at("data").at("code"), "managed_signer");
  EXPECT_TRUE(eventually([&] { return cluster().balance(recipient()) == 3; }));
  EXPECT_EQ(cluster().mined_count(signer(0)), 0);
}

}  // namespace
}  // namespace fencepost::test

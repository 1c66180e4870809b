// The key of a signer, or a chain, is taken from a node while transactions are open.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "tests/support/eventually.hpp"
#include "tests/support/tx_cluster.hpp"

namespace fencepost::test {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

TxSettings with_keys(std::vector<std::string> keys) {
  TxSettings settings;
  settings.only_keys = std::move(keys);
  return settings;
}

// JSON-RPC's form of transfer(signer, "", 1).
Answer send_over_rpc(TxCluster& cluster, std::size_t node, const std::string& request_id) {
  const json::object call{
      {"jsonrpc", "2.0"},
      {"id", 1},
      {"method", "eth_sendTransaction"},
      {"params", {json::object{{"from", signer(0)}, {"to", recipient()}, {"value", "0x1"}, {"gas", "0x5208"}}}}};
  return ask({"POST",
              cluster.node(node).url("/rpc/31337"),
              cluster.key(),
              json::serialize(call),
              {{"Idempotency-Key", request_id}}});
}

std::string doctor(TxCluster& cluster, std::size_t node) {
  return fencepost({"doctor", "--config", cluster.node(node).config().string()}).out;
}

bool unled_becomes(TxCluster& cluster, const std::string& labels, double wanted) {
  return eventually([&] { return cluster.node(0).metric("tx_unled{" + labels + "}") == wanted; }, 40s);
}

json::object on_chain(json::object body, std::int64_t chain_id) {
  body["chainId"] = chain_id;
  return body;
}

TEST(tx_orphans, without_its_key_what_was_sent_is_confirmed_and_the_rest_is_named) {
  TxCluster cluster({.settings = {.max_in_flight = 2}, .anvil = {"--no-mining"}});
  std::vector<std::string> ids;
  for (const auto* name : {"a", "b", "c"}) ids.push_back(cluster.create(0, transfer(signer(0), name, 1)));
  for (const int i : {0, 1}) ASSERT_TRUE(cluster.becomes(ids[i], "state", "TRACKING")) << cluster.describe();
  cluster.node(0).stop();
  auto keyless = with_keys({signer_key(1)});
  keyless.max_in_flight = 2;
  cluster.node(0).configure(keyless);
  cluster.node(0).start();

  // It leads the signer once a node with the key has had its time to come back.
  ASSERT_TRUE(eventually([&] { return cluster.leader_of(signer(0)) == 0; }, 20s)) << cluster.describe();
  EXPECT_TRUE(unled_becomes(cluster, R"(chain_id="31337",reason="no_key")", 3)) << cluster.describe();
  const auto verb = [&](const std::string& id, const char* name) {
    return cluster.post(0, "/api/v1/tx/" + id + "/" + name, {{"reason", "test"}});
  };
  const auto cancelled = verb(ids[0], "cancel");
  EXPECT_EQ(cancelled.status, 409U) << cancelled.body;
  EXPECT_EQ(cancelled.code(), "no_key");
  EXPECT_EQ(verb(ids[0], "rebroadcast").status, 200U);
  cluster.mine(4);
  for (const int i : {0, 1}) EXPECT_TRUE(cluster.becomes(ids[i], "state", "CONFIRMED")) << cluster.describe();
  EXPECT_EQ(cluster.column(ids[2], "state"), "CREATED");
  EXPECT_TRUE(unled_becomes(cluster, R"(chain_id="31337",reason="no_key")", 1)) << cluster.describe();
  const auto words = doctor(cluster, 0);
  EXPECT_NE(words.find(fmt::format("chain 31337, signer {}: 1 open, and no live node has the key", signer(0))),
            std::string::npos)
      << words;

  // An accepted request always gets its transaction.
  for (const int i : {0, 1, 2}) {
    const auto again = ask(cluster.create_ask(0, transfer(signer(0), std::string(1, static_cast<char>('a' + i)), 1)));
    EXPECT_EQ(again.status, 200U) << again.body;
    EXPECT_EQ(again.json().at("txId").as_string(), ids[i]);
  }
  EXPECT_EQ(ask(cluster.create_ask(0, transfer(signer(0), "a", 2))).code(), "request_conflict");
  const auto batch = cluster.post(0, "/api/v1/tx/batch", {{"items", {transfer(signer(0), "b", 1)}}});
  EXPECT_EQ(batch.json().at("results").at(0).at("status").as_int64(), 200) << batch.body;
  const auto rpc = send_over_rpc(cluster, 0, "a");
  EXPECT_NE(rpc.body.find(cluster.column(ids[0], "tx_hash")), std::string::npos) << rpc.body;
  const auto fresh = ask(cluster.create_ask(0, transfer(signer(0), "d", 1)));
  EXPECT_EQ(fresh.status, 503U) << fresh.body;
  EXPECT_EQ(fresh.code(), "no_leader");
  EXPECT_EQ(fresh.header("Retry-After"), "5");
  EXPECT_EQ(ask(cluster.create_ask(0, transfer(signer(5), "d", 1))).code(), "unknown_signer") << "never used";

  // The key comes back.
  cluster.node(0).stop();
  cluster.node(0).configure({.max_in_flight = 2});
  cluster.node(0).start();
  ASSERT_TRUE(cluster.becomes(ids[2], "state", "TRACKING")) << cluster.describe();
  cluster.mine(4);
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  EXPECT_EQ(cluster.mined_count(signer(0)), 3);
  EXPECT_TRUE(unled_becomes(cluster, R"(chain_id="31337",reason="no_key")", 0));
}

TEST(tx_orphans, a_transaction_with_a_nonce_and_without_bytes_waits_for_the_key) {
  TxCluster cluster({.start = false});
  cluster.node(0).start({"FENCEPOST_TEST_KILL_AT=create.committed"});
  ask(cluster.create_ask(0, transfer(signer(0), "a", 1)));
  ASSERT_TRUE(cluster.node(0).dies());
  cluster.node(0).configure(with_keys({signer_key(1)}));
  cluster.node(0).start();
  const auto id = cluster.sql("SELECT tx_id FROM managed_tx");
  ASSERT_TRUE(cluster.becomes(id, "state || ' ' || sub_state", "ALLOCATED signer_unavailable", 30s))
      << cluster.describe();
  const auto verb = cluster.post(0, "/api/v1/tx/" + id + "/rebroadcast", {{"reason", "test"}});
  EXPECT_EQ(verb.code(), "no_key") << verb.body;
  EXPECT_EQ(cluster.node(0).output().find("level=error"), std::string::npos) << cluster.describe();
  cluster.node(0).stop();
  cluster.node(0).configure({});
  cluster.node(0).start();
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  EXPECT_EQ(cluster.mined_count(signer(0)), 1);
}

TEST(tx_orphans, a_node_that_has_the_key_leads_and_gets_the_requests_of_the_others) {
  TxCluster cluster(
      {.nodes = 2, .settings = {.forward_timeout = 20s}, .node_keys = {{signer_key(0)}, {signer_key(1)}}});
  // A node without the key passes requests on, from the first one.
  const auto first = cluster.create(1, transfer(signer(0), "a", 1));
  EXPECT_EQ(cluster.leader_of(signer(0)), 0U);
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  cluster.rpc("evm_setAutomine", {false});
  cluster.rpc("evm_setIntervalMining", {0});
  const auto open = cluster.create(1, transfer(signer(0), "b", 1));
  ASSERT_TRUE(cluster.becomes(open, "state", "TRACKING")) << cluster.describe();
  const auto verb = cluster.post(1, "/api/v1/tx/" + open + "/cancel", {{"reason", "test"}});
  EXPECT_EQ(verb.status, 409U) << verb.body;
  EXPECT_EQ(verb.code(), "no_key");
  EXPECT_EQ(verb.json().at("leader").as_string(), cluster.node(0).url(""));

  // While no live node has the key, the other one leads, and does not keep the signer when the key is back.
  cluster.node(0).kill();
  ASSERT_TRUE(eventually([&] { return cluster.leader_of(signer(0)) == 1; }, 30s)) << cluster.describe();
  EXPECT_EQ(ask(cluster.create_ask(1, transfer(signer(0), "b", 1))).status, 200U);
  cluster.node(0).start();
  ASSERT_TRUE(eventually([&] { return cluster.leader_of(signer(0)) == 0; }, 10s)) << cluster.describe();
  cluster.create(1, transfer(signer(0), "c", 1));
  cluster.create(0, transfer(signer(0), "d", 1));
  cluster.rpc("evm_setIntervalMining", {1});
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  EXPECT_EQ(cluster.mined_count(signer(0)), 4);
  EXPECT_EQ(cluster.sql("SELECT count(*) FROM tx_attempt"), "4") << "signed more than once";
}

TEST(tx_orphans, a_create_waits_for_the_node_that_has_the_key_to_restart) {
  TxCluster cluster({.nodes = 2, .settings = {.forward_timeout = 1s}, .node_keys = {{signer_key(0)}, {signer_key(1)}}});
  cluster.create(1, transfer(signer(0), "a", 1));
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  for (const bool gracefully : {true, false}) {
    const std::string name = gracefully ? "stopped" : "killed";
    if (gracefully) {
      cluster.node(0).stop();
    } else {
      cluster.node(0).kill();
    }
    const auto down = [&] {
      const auto refused = ask(cluster.create_ask(1, transfer(signer(0), name, 1)));
      return refused.status == 503U && refused.code() == "no_leader" && !refused.header("Retry-After").empty();
    };
    EXPECT_TRUE(eventually(down, 30s)) << cluster.describe();
    cluster.node(0).start();
    const auto accepted = [&] { return ask(cluster.create_ask(1, transfer(signer(0), name, 1))).status < 300U; };
    EXPECT_TRUE(eventually(accepted, 30s)) << cluster.describe();
  }
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  EXPECT_EQ(cluster.mined_count(signer(0)), 3);
}

TEST(tx_orphans, a_node_that_cannot_forward_names_the_node_that_has_the_key) {
  TxCluster cluster({.nodes = 2, .settings = {.forwarding = false}, .node_keys = {{signer_key(0)}, {signer_key(1)}}});
  const auto refused = ask(cluster.create_ask(1, transfer(signer(0), "a", 1)));
  EXPECT_EQ(refused.status, 409U) << refused.body;
  EXPECT_EQ(refused.code(), "not_leader");
  EXPECT_EQ(refused.json().at("leader").as_string(), cluster.node(0).url(""));
  EXPECT_FALSE(refused.header("Retry-After").empty());
}

TEST(tx_orphans, an_error_names_a_node_without_a_url_by_its_id_alone) {
  TxCluster cluster({.nodes = 2, .settings = {.forwarding = false}, .anvil = {"--no-mining"}});
  const auto id = cluster.create(0, transfer(signer(0), "a", 1));
  const auto leader = cluster.sql("SELECT owner_node FROM signer_lease");
  cluster.sql(R"(
    CREATE FUNCTION no_url() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN NEW.advertise_url := ''; RETURN NEW; END $$)");
  cluster.sql("CREATE TRIGGER no_url BEFORE INSERT OR UPDATE ON cluster_node FOR EACH ROW EXECUTE FUNCTION no_url()");
  cluster.sql("UPDATE cluster_node SET version = version RETURNING 1");
  const auto refused = cluster.post(1, "/api/v1/tx/" + id + "/rebroadcast", {{"reason", "test"}});
  EXPECT_EQ(refused.code(), "not_leader") << refused.body;
  EXPECT_EQ(refused.json().at("node").as_string(), leader);
  EXPECT_FALSE(refused.json().as_object().contains("leader")) << refused.body;
}

// The second node has another chain only.
TEST(tx_orphans, a_create_for_a_chain_that_only_another_node_has_reaches_it) {
  TxCluster cluster({.nodes = 2});
  const Anvil other({"--chain-id", "999"});
  const auto serve_other = [&](bool forwarding) {
    cluster.node(1).stop();
    cluster.node(1).configure({.forwarding = forwarding, .chain_id = 999}, other.url());
    cluster.node(1).start();
  };
  serve_other(true);
  const auto forwarded = ask(cluster.create_ask(1, on_chain(transfer(signer(0), "a", 1), 31337)));
  EXPECT_EQ(forwarded.status, 202U) << forwarded.body;
  EXPECT_EQ(cluster.leader_of(signer(0)), 0U);
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  EXPECT_EQ(ask(cluster.create_ask(1, on_chain(transfer(signer(0), "b", 1), 5))).code(), "unknown_chain");

  serve_other(false);
  const auto refused = ask(cluster.create_ask(1, on_chain(transfer(signer(0), "c", 1), 31337)));
  EXPECT_EQ(refused.status, 409U) << refused.body;
  EXPECT_EQ(refused.code(), "not_leader");
  EXPECT_EQ(refused.json().at("leader").as_string(), cluster.node(0).url(""));
}

TEST(tx_orphans, open_work_on_a_removed_chain_is_named_and_its_requests_are_answered) {
  TxCluster cluster({.anvil = {"--no-mining"}});
  const auto id = cluster.create(0, transfer(signer(0), "a", 1));
  ASSERT_TRUE(cluster.becomes(id, "state", "TRACKING")) << cluster.describe();
  cluster.node(0).stop();
  const Anvil other({"--chain-id", "999"});
  cluster.node(0).configure({.chain_id = 999}, other.url());
  cluster.node(0).start();

  EXPECT_TRUE(unled_becomes(cluster, R"(chain_id="31337",reason="chain_not_configured")", 1)) << cluster.describe();
  const auto words = doctor(cluster, 0);
  EXPECT_NE(words.find("chain 31337, signer " + signer(0) + ": 1 open, and no live node has the chain"),
            std::string::npos)
      << words;
  const auto again = ask(cluster.create_ask(0, on_chain(transfer(signer(0), "a", 1), 31337)));
  EXPECT_EQ(again.status, 200U) << again.body;
  EXPECT_EQ(again.json().at("txId").as_string(), id);
  const auto batch = cluster.post(0, "/api/v1/tx/batch", {{"items", {on_chain(transfer(signer(0), "a", 1), 31337)}}});
  EXPECT_EQ(batch.json().at("results").at(0).at("status").as_int64(), 200) << batch.body;
  const auto rpc = send_over_rpc(cluster, 0, "a");
  EXPECT_NE(rpc.body.find(cluster.column(id, "tx_hash")), std::string::npos) << rpc.body;
  const auto named = cluster.get(0, "/api/v1/tx/by-request?chainId=31337&signer=" + signer(0) + "&requestId=a");
  EXPECT_EQ(named.status, 200U) << named.body;
  EXPECT_EQ(ask(cluster.create_ask(0, on_chain(transfer(signer(0), "b", 1), 31337))).code(), "unknown_chain");
  EXPECT_EQ(send_over_rpc(cluster, 0, "b").status, 400U);
  const auto verb = cluster.post(0, "/api/v1/tx/" + id + "/cancel", {{"reason", "test"}});
  EXPECT_EQ(verb.status, 409U) << verb.body;
  EXPECT_EQ(verb.code(), "chain_not_configured");
}

TEST(tx_orphans, a_thousand_signers_without_keys_do_not_keep_one_with_a_key_from_its_node) {
  TxCluster cluster({.anvil = {"--no-mining"}});
  const auto id = cluster.create(0, transfer(signer(0), "a", 1));
  ASSERT_TRUE(cluster.becomes(id, "state", "TRACKING")) << cluster.describe();
  cluster.node(0).stop();
  cluster.sql(R"(
    WITH orphan AS MATERIALIZED (
      SELECT 31337 AS chain_id, '0x' || lpad(to_hex(s), 40, '0') AS signer, gen_random_uuid() AS tx_id
        FROM generate_series(1, 1000) AS s),
    lease AS (
      INSERT INTO signer_lease (chain_id, signer, owner_node, fencing_token, expires_at)
      SELECT chain_id, signer, '', 1, '-infinity' FROM orphan),
    cursor AS (
      INSERT INTO signer_nonce_cursor (chain_id, signer, next_nonce, next_creation)
      SELECT chain_id, signer, 0, 1 FROM orphan)
    INSERT INTO managed_tx (tx_id, chain_id, signer, creation_seq, payload, payload_hash, gas_limit)
    SELECT tx_id, chain_id, signer, 0, '{"to":"0x0000000000000000000000000000000000000001"}', '', 21000 FROM orphan
    RETURNING 1)");
  cluster.node(0).start();
  const auto led = [&] { return cluster.leader_of(signer(0)) == 0; };
  ASSERT_TRUE(eventually(led, 3s)) << cluster.describe();
  EXPECT_EQ(cluster.sql("SELECT count(*) FROM signer_lease WHERE owner_node <> ''"), "1")
      << "signers without keys are led only after their nodes have had time to come back";
  cluster.mine(4);
  ASSERT_TRUE(cluster.becomes(id, "state", "CONFIRMED")) << cluster.describe();
  // They are led in the end, too, and nothing of theirs is numbered.
  EXPECT_TRUE(cluster.sql_becomes("SELECT count(*) >= 1000 FROM signer_lease WHERE owner_node <> ''", "t", 60s))
      << cluster.describe();
  EXPECT_EQ(cluster.sql("SELECT count(*) FROM managed_tx WHERE nonce IS NULL"), "1000");
  EXPECT_TRUE(unled_becomes(cluster, R"(chain_id="31337",reason="no_key")", 1000)) << cluster.describe();
}

}  // namespace
}  // namespace fencepost::test

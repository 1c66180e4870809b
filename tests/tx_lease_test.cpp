// Which node leads a signer when the signer is idle, and when a dead node leaves many signers.
#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "evm/keys/private_key.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/interleaving.hpp"
#include "tests/support/stub_chain_server.hpp"
#include "tests/support/tx_cluster.hpp"

namespace fencepost::test {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

constexpr auto kOwner = "SELECT split_part(owner_node, '/', 1) || '/' || fencing_token FROM signer_lease";

TEST(tx_lease, an_idle_signer_is_released_and_led_by_the_next_node_that_gets_a_request) {
  // The lease lasts far longer than this test, so only a release can free the signer.
  TxCluster cluster({.nodes = 2,
                     .settings = {.lease_duration = 300s, .renew_interval = 100ms, .idle_release = 300ms},
                     .anvil = {}});  // a block for each transaction
  std::int64_t sent = 0;
  for (const std::size_t node : {0, 0, 1}) {
    const auto id = cluster.create(node, transfer(signer(0), fmt::format("i-{}", sent++), 1));
    ASSERT_TRUE(cluster.becomes(id, "receipt_block IS NOT NULL", "t")) << cluster.describe();
    // The node keeps the lease while there is work: several rounds of the worker that releases idle leases pass.
    const std::string rounds = "worker_runs_total{result=\"ok\",worker=\"lease_adoption\"}";
    const auto before = cluster.node(node).metric(rounds);
    ASSERT_TRUE(eventually([&] { return cluster.node(node).metric(rounds) > before + 5; })) << cluster.describe();
    EXPECT_EQ(cluster.sql(kOwner), fmt::format("node{}/{}", node, sent));
    cluster.mine(2);
    ASSERT_TRUE(cluster.becomes(id, "state", "CONFIRMED")) << cluster.describe();
    ASSERT_TRUE(cluster.sql_becomes(kOwner, fmt::format("/{}", sent))) << cluster.describe();
    EXPECT_EQ(cluster.column(id, "fencing_token"), std::to_string(sent));
  }
  EXPECT_EQ(cluster.mined_count(signer(0)), sent);
  EXPECT_EQ(cluster.balance(recipient()), sent);
  for (std::size_t node = 0; node < 2; ++node) EXPECT_EQ(cluster.node(node).metric("lease_fenced_total"), 0);
}

TEST(tx_lease, a_lock_on_the_table_of_nodes_costs_no_lease) {
  TxCluster cluster(
      {.nodes = 2, .settings = {.lease_duration = 3s, .renew_interval = 200ms, .idle_release = 300s}, .anvil = {}});
  cluster.create(0, transfer(signer(0), "before", 1));
  constexpr auto kLease = "SELECT split_part(owner_node, '/', 1) || '/' || fencing_token FROM signer_lease";
  ASSERT_EQ(cluster.sql(kLease), "node0/1");
  {
    interleaving::Session psql(cluster.dsn(), "psql");
    psql.must("BEGIN");
    psql.must("LOCK TABLE cluster_node IN ACCESS EXCLUSIVE MODE");
    const std::string renewals = "worker_runs_total{result=\"ok\",worker=\"lease_renewal\"}";
    const auto before = cluster.node(0).metric(renewals);
    // Two and a half times the duration of the lease.
    ASSERT_TRUE(eventually([&] { return cluster.node(0).metric(renewals) > before + 36; })) << cluster.describe();
    EXPECT_EQ(cluster.sql("SELECT count(*) FROM signer_lease WHERE expires_at > clock_timestamp()"), "1");
    // Who leads this signer cannot be found out now; that costs this request only.
    const auto began = std::chrono::steady_clock::now();
    EXPECT_EQ(cluster.post(0, "/api/v1/tx", transfer(signer(1), "unled", 1)).status, 503);
    EXPECT_LT(std::chrono::steady_clock::now() - began, 10s);
    const auto during = cluster.create(0, transfer(signer(0), "during", 1));
    EXPECT_TRUE(cluster.becomes(during, "receipt_block IS NOT NULL", "t")) << cluster.describe();
    EXPECT_GT(cluster.node(0).metric("worker_runs_total{result=\"failed\",worker=\"node_heartbeat\"}"), 0);
  }
  EXPECT_EQ(cluster.sql(kLease), "node0/1");
  EXPECT_EQ(cluster.node(0).metric("lease_fenced_total"), 0);
  EXPECT_TRUE(eventually([&] { return cluster.get(1, "/api/v1/nodes").json().at("items").as_array().size() == 2; }));
}

struct Account {
  std::string key;
  evm::Address address;
};

std::vector<Account> some_accounts(std::size_t count) {
  std::vector<Account> accounts;
  for (std::size_t i = 0; i < count; ++i) {
    auto key = fmt::format("{:064x}", 0xf00d + i);
    const auto parsed = evm::PrivateKey::from_hex(Secret(key));
    if (!parsed) throw Exception(parsed.error());
    accounts.push_back({std::move(key), parsed->address()});
  }
  return accounts;
}

std::size_t led_by(const TxCluster& cluster, std::size_t node) {
  return std::stoull(cluster.sql(fmt::format(
      "SELECT count(*) FROM signer_lease WHERE owner_node LIKE 'node{}/%' AND expires_at > clock_timestamp()", node)));
}

TEST(tx_lease, the_signers_of_a_dead_node_are_shared_among_the_live_nodes) {
  constexpr std::size_t kSigners = 400;  // several times the number that a node adopts at once
  const auto accounts = some_accounts(kSigners);
  StubChainServer chain;
  TxSettings settings{.lease_duration = 60s, .renew_interval = 100ms};
  for (const auto& account : accounts) settings.more_keys.push_back(account.key);
  TxCluster cluster({.nodes = 3, .settings = settings, .rpc_urls = {chain.url(), chain.url(), chain.url()}});
  json::array batch;
  for (const auto& account : accounts) batch.emplace_back(transfer(to_hex0x(account.address), "only", 1));
  const auto created = cluster.post(0, "/api/v1/tx/batch", {{"items", batch}});
  ASSERT_EQ(created.status, 200U) << created.body;
  ASSERT_TRUE(eventually([&] { return chain.chain().pool_size() == kSigners; })) << cluster.describe();
  ASSERT_EQ(led_by(cluster, 0), kSigners);

  cluster.node(0).kill();
  // All leases expire at the same moment, so that their order does not decide the shares.
  cluster.sql("UPDATE signer_lease SET expires_at = '-infinity' RETURNING 1");
  ASSERT_TRUE(eventually([&] { return led_by(cluster, 1) + led_by(cluster, 2) == kSigners; })) << cluster.describe();
  RecordProperty("first_share", std::to_string(led_by(cluster, 1)));
  EXPECT_GT(led_by(cluster, 1), 0U);
  EXPECT_GT(led_by(cluster, 2), 0U);
  EXPECT_EQ(cluster.sql("SELECT min(fencing_token) || ' ' || max(fencing_token) FROM signer_lease"), "2 2");

  chain.set_interval(100ms);
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();
  EXPECT_EQ(chain.chain().mined_count(), kSigners);
  for (const auto& account : accounts) EXPECT_EQ(chain.chain().nonce(account.address), 1U);
  EXPECT_EQ(cluster.sql("SELECT count(*) FROM tx_attempt"), std::to_string(kSigners)) << "signed more than once";
  for (const std::size_t node : {1, 2}) EXPECT_EQ(cluster.node(node).metric("lease_fenced_total"), 0);
}

TEST(tx_lease, the_list_of_nodes_shows_which_are_alive_and_how_many_signers_they_lead) {
  TxCluster cluster({.nodes = 2, .settings = {.lease_duration = 4s, .renew_interval = 1s}, .anvil = {}});
  cluster.create(1, transfer(signer(0), "lead", 1));
  const auto nodes = [&] {
    std::map<std::string, json::object> by_name;
    for (const auto& node : cluster.get(0, "/api/v1/nodes").json().at("items").as_array()) {
      const std::string id(node.at("nodeId").as_string());
      by_name.emplace(id.substr(0, id.find('/')), node.as_object());
    }
    return by_name;
  };
  ASSERT_TRUE(eventually([&] {
    const auto now = nodes();
    return now.size() == 2 && std::ranges::all_of(now, [](const auto& n) { return n.second.at("alive").as_bool(); });
  }));
  const auto before = nodes();
  ASSERT_EQ(before.size(), 2U);
  for (const auto& [name, node] : before) {
    SCOPED_TRACE(name);
    EXPECT_EQ(node.at("leases").as_int64(), name == "node1" ? 1 : 0);
    EXPECT_EQ(node.at("version").as_string(), cluster.get(0, "/api/v1/version").json().at("version").as_string());
    EXPECT_EQ(node.at("advertiseUrl").as_string(), cluster.node(name == "node1" ? 1 : 0).url(""));
  }
  EXPECT_EQ(cluster.get(0, "/api/v1/signers").json().at("items").as_array().size(), 10U);

  cluster.node(1).kill();
  ASSERT_TRUE(eventually([&] { return nodes().contains("node1") && !nodes().at("node1").at("alive").as_bool(); }));
  EXPECT_TRUE(nodes().at("node0").at("alive").as_bool());
  EXPECT_TRUE(eventually([&] { return nodes().at("node0").at("leases").as_int64() == 1; })) << "took over";
}

}  // namespace
}  // namespace fencepost::test

// Which nodes count as able to lead or sign for a signer.
#include "tests/support/with_pool.hpp"
#include "tx/store/ability_store.hpp"
#include "tx/store/protocol_test_support.hpp"

#include "cluster/node_registry.hpp"

namespace fencepost::tx {
namespace {

using namespace std::chrono_literals;

constexpr auto kSilence = 3s;

class AbilityStore : public ProtocolTest {
 protected:
  template <class Body>
  void with_pool(Body body) {
    Metrics metrics;
    auto options = test::connect_options(db.dsn());
    pg::Connector connector(options);
    run_blocking(test::run_with_pool(connector, pg::PoolOptions{}, metrics, std::move(body)));
  }

  void start_node(const std::string& id, std::vector<std::string> signers,
                  std::vector<std::int64_t> chains = {kChain}) {
    with_pool([&](pg::Pool& pool) -> awaitable<> {
      cluster::NodeIdentity identity{.node_id = id, .advertise_url = "http://" + id, .version = "1"};
      co_await cluster::heartbeat(
          pool, identity, std::make_shared<const cluster::NodeAbilities>(cluster::NodeAbilities{signers, chains}));
    });
  }
  void silence(const std::string& id) {
    admin.must("UPDATE cluster_node SET heartbeat_at = clock_timestamp() - interval '4 s' WHERE node_id = $1",
               pg::Params::of(id));
  }

  // A signer without a leader, with one transaction that waits for a nonce; `ago` since the lease was released.
  std::string orphan(std::uint64_t number, const std::string& ago = "1 hour", std::int64_t chain = kChain) {
    auto signer = fmt::format("0x{:040x}", number);
    admin.must(
        "INSERT INTO signer_lease (chain_id, signer, owner_node, fencing_token, expires_at, renewed_at) "
        "VALUES ($1::bigint, $2, '', 1, '-infinity', clock_timestamp() - $3::interval)",
        pg::Params::of(chain, signer, ago));
    admin.must(
        "INSERT INTO signer_nonce_cursor (chain_id, signer, next_nonce, next_creation) VALUES ($1::bigint, $2, 0, 1)",
        pg::Params::of(chain, signer));
    return signer;
  }
  void lead(const std::string& node, const std::string& signer) {
    admin.must(
        "UPDATE signer_lease SET owner_node = $1, fencing_token = 7, expires_at = 'infinity', "
        "renewed_at = clock_timestamp() WHERE signer = $2",
        pg::Params::of(node, signer));
  }

  std::vector<std::string> keyless_orphans() {
    std::vector<std::string> out;
    with_pool([&](pg::Pool& pool) -> awaitable<> {
      for (const auto& key : co_await find_keyless_orphans(pool, {kChain}, 20s, kSilence, 10)) {
        out.push_back(key.signer);
      }
    });
    return out;
  }
  std::vector<std::string> elsewhere(const std::string& node, const std::vector<std::string>& signers,
                                     std::int64_t chain = kChain) {
    std::vector<SignerLease> leases;
    for (const auto& signer : signers) leases.push_back({{chain, signer}, 3});
    std::vector<std::string> out;
    with_pool([&](pg::Pool& pool) -> awaitable<> {
      for (const auto& lease : co_await led_elsewhere(pool, node, leases, kSilence)) {
        EXPECT_EQ(lease.fencing_token, 3);
        out.push_back(lease.key.signer);
      }
    });
    return out;
  }
  std::optional<LeaseView> holder(const std::string& signer, const std::string& node) {
    std::optional<LeaseView> out;
    with_pool(
        [&](pg::Pool& pool) -> awaitable<> { out = co_await find_key_holder(pool, {kChain, signer}, node, kSilence); });
    return out;
  }
  std::vector<std::string> unled() {
    std::vector<std::string> out;
    with_pool([&](pg::Pool& pool) -> awaitable<> {
      for (const auto& one : co_await unled_work(pool, kSilence, 100)) {
        out.push_back(fmt::format("{} {} {} {}", one.key.chain_id, one.key.signer, one.reason, one.transactions));
      }
    });
    return out;
  }
};

using Signers = std::vector<std::string>;

TEST_F(AbilityStore, a_signer_is_keyless_only_while_no_live_node_has_its_key) {
  const auto signer = orphan(1);
  start_node("node-a", {});
  EXPECT_EQ(keyless_orphans(), Signers{signer});
  start_node("node-b", {signer});
  EXPECT_EQ(keyless_orphans(), Signers{});
  silence("node-b");
  EXPECT_EQ(keyless_orphans(), Signers{signer});
}

TEST_F(AbilityStore, a_keyless_signer_waits_for_the_node_that_has_the_key_to_restart) {
  const auto signer = orphan(1, "19 s");
  start_node("node-a", {});
  EXPECT_EQ(keyless_orphans(), Signers{});
  admin.must("UPDATE signer_lease SET renewed_at = clock_timestamp() - interval '21 s'");
  EXPECT_EQ(keyless_orphans(), Signers{signer});
  // Expired, not released: counted from the expiry.
  admin.must("UPDATE signer_lease SET owner_node = 'node-x', expires_at = clock_timestamp() - interval '5 s'");
  EXPECT_EQ(keyless_orphans(), Signers{});
}

TEST_F(AbilityStore, a_node_of_the_version_before_is_assumed_to_have_every_key_and_chain) {
  const auto signer = orphan(1, "30 s");
  start_node("node-a", {}, {1});
  EXPECT_EQ(unled(), Signers{fmt::format("{} {} chain_not_configured 1", kChain, signer)});
  admin.must("INSERT INTO cluster_node (node_id, advertise_url, version) VALUES ('old', '', '0')");
  EXPECT_EQ(unled(), Signers{});
  EXPECT_EQ(keyless_orphans(), Signers{});
  EXPECT_EQ(elsewhere("node-a", {signer}), Signers{})
      << "a lease is released only to a node that is known to have the key";
}

TEST_F(AbilityStore, keys_elsewhere_are_those_of_other_live_nodes) {
  const auto one = fmt::format("0x{:040x}", 1);
  const auto two = fmt::format("0x{:040x}", 2);
  start_node("node-a", {one});
  start_node("node-b", {two});
  EXPECT_EQ(elsewhere("node-a", {one, two}), Signers{two});
  EXPECT_EQ(elsewhere("node-a", {one, two}, 5), Signers{}) << "no node has that chain";
  silence("node-b");
  EXPECT_EQ(elsewhere("node-a", {one, two}), Signers{});
}

TEST_F(AbilityStore, the_leader_is_the_first_choice_among_the_nodes_with_the_key) {
  const auto signer = orphan(1);
  EXPECT_EQ(holder(signer, "node-c"), std::nullopt);
  start_node("node-a", {signer});
  start_node("node-b", {signer});
  start_node("other-chain", {signer}, {1});
  const auto any = holder(signer, "node-c");
  ASSERT_TRUE(any);
  EXPECT_TRUE(any->expired) << "no node holds the lease";
  EXPECT_NE(any->owner_node, "other-chain");
  for (const auto* leader : {"node-a", "node-b"}) {
    lead(leader, signer);
    const auto found = holder(signer, "node-c");
    ASSERT_TRUE(found);
    EXPECT_EQ(found->owner_node, leader);
    EXPECT_EQ(found->advertise_url, fmt::format("http://{}", leader));
    EXPECT_FALSE(found->expired);
    EXPECT_EQ(found->fencing_token, 7);
  }
  EXPECT_EQ(holder(signer, "node-b")->owner_node, "node-a");
}

TEST_F(AbilityStore, work_whose_lease_no_node_has_taken_for_a_minute_has_no_leader) {
  const auto signer = orphan(1, "59 s");
  start_node("node-a", {signer});
  EXPECT_EQ(unled(), Signers{}) << "a node may still take it over";
  admin.must("UPDATE signer_lease SET renewed_at = clock_timestamp() - interval '61 s'");
  EXPECT_EQ(unled(), Signers{fmt::format("{} {} no_leader 1", kChain, signer)});
  // What is mined counts, too: without a leader it does not end.
  admin.must("UPDATE signer_nonce_cursor SET first_waiting = 1, next_nonce = 1");
  admin.must(
      "INSERT INTO tx_open (chain_id, signer, nonce, tx_id, state, fencing_token, receipt_block, receipt_hash, "
      "succeeded) SELECT chain_id, signer, 0, gen_random_uuid(), 'TRACKING', 1, 9, '0x', true FROM "
      "signer_nonce_cursor");
  EXPECT_EQ(unled(), Signers{fmt::format("{} {} no_leader 1", kChain, signer)});
  lead("node-a", signer);
  EXPECT_EQ(unled(), Signers{});
  admin.must("UPDATE signer_lease SET expires_at = clock_timestamp() - interval '61 s', renewed_at = '-infinity'");
  EXPECT_EQ(unled(), Signers{fmt::format("{} {} no_leader 1", kChain, signer)}) << "expired, not released";
}

TEST_F(AbilityStore, what_no_live_node_can_finish_is_counted_by_its_reason) {
  const auto here = orphan(1, "1 s");
  const auto keyless = orphan(2);
  const auto removed = orphan(3, "1 hour", 5);
  EXPECT_EQ(unled(), Signers{}) << "no node runs";
  start_node("node-a", {here, removed});
  EXPECT_EQ(unled(), (Signers{fmt::format("5 {} chain_not_configured 1", removed),
                              fmt::format("{} {} no_key 1", kChain, keyless)}));
  // What is mined ends without the key.
  admin.must("UPDATE signer_nonce_cursor SET first_waiting = 1, next_nonce = 2");
  admin.must(
      "INSERT INTO tx_open (chain_id, signer, nonce, tx_id, state, fencing_token, receipt_block, "
      "receipt_hash, succeeded) "
      "SELECT chain_id, signer, n, gen_random_uuid(), 'TRACKING', 1, CASE WHEN n = 1 THEN 9 END, "
      "CASE WHEN n = 1 THEN '0x' END, CASE WHEN n = 1 THEN true END "
      "FROM signer_nonce_cursor, generate_series(0, 1) AS n");
  EXPECT_EQ(unled(), (Signers{fmt::format("5 {} chain_not_configured 2", removed),
                              fmt::format("{} {} no_key 1", kChain, keyless)}));
  admin.must("DELETE FROM tx_open WHERE signer = $1", pg::Params::of(keyless));
  EXPECT_EQ(unled(), (Signers{fmt::format("5 {} chain_not_configured 2", removed)}));
}

TEST_F(AbilityStore, a_node_that_stops_takes_its_abilities_along) {
  start_node("node-a", {orphan(1)});
  with_pool([](pg::Pool& pool) -> awaitable<> { co_await cluster::forget_node(pool, "node-a"); });
  EXPECT_EQ(admin.value<std::int64_t>("SELECT count(*) FROM cluster_node_signer"), 0);
  EXPECT_EQ(admin.value<std::int64_t>("SELECT count(*) FROM cluster_node_chain"), 0);
  // A row that was removed while the node was suspended comes back as a whole.
  start_node("node-a", {"0x0000000000000000000000000000000000000001"});
  EXPECT_EQ(admin.value<std::int64_t>("SELECT count(*) FROM cluster_node_signer"), 1);
}

}  // namespace
}  // namespace fencepost::tx

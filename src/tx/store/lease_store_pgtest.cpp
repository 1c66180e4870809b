#include <boost/asio/co_spawn.hpp>

#include "pg/error.hpp"
#include "tests/support/eventually.hpp"
#include "tx/store/lease_store.hpp"
#include "tx/store/protocol_test_support.hpp"

#include "cluster/node_registry.hpp"

namespace fencepost::tx {
namespace {

using namespace std::chrono_literals;
using interleaving::Session;

class LeaseStore : public ProtocolTest {
 protected:
  using Leases = std::vector<SignerLease>;

  // Runs `body(pool)` with sessions whose application name is `node`.
  template <class Body>
  void as_node(const std::string& node, Body body) {
    Metrics metrics;
    auto options = test::connect_options(db.dsn());
    options.application_name = node;
    pg::Connector connector(options);
    run_blocking(test::run_with_pool(connector, pg::PoolOptions{}, metrics, std::move(body)));
  }

  // Calls acquire_leases as `node`, and measures the time in `took`.
  Leases acquire(const std::string& node, const std::vector<std::string>& signers) {
    Leases out;
    const auto start = std::chrono::steady_clock::now();
    as_node(node, [&](pg::Pool& pool) -> awaitable<> {
      out = co_await acquire_leases(pool, node, kChain, signers, LeaseTimes{});
    });
    took = std::chrono::steady_clock::now() - start;
    return out;
  }

  // A client that stopped in the middle of a fenced write: it holds the lock on the lease and never continues.
  Session stopped_client(const std::string& application, const SignerKey& key) {
    Session session(db.dsn(), application);
    session.must("BEGIN");
    session.must(sql::kLockLeases.sql, pg::Params::of(std::vector{key.chain_id}, std::vector{key.signer}));
    return session;
  }

  std::chrono::steady_clock::duration took{};
};

TEST_F(LeaseStore, sessions_of_a_stopped_owner_are_terminated_after_a_second) {
  const auto lease = signer_of("node-a");
  auto stopped = stopped_client("node-a", lease.key);
  expire(lease.key);
  const auto got = acquire("node-b", {lease.key.signer});
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].fencing_token, 2);
  EXPECT_GE(took, 1s);
  EXPECT_LT(took, 3s);
  EXPECT_TRUE(stopped.lost());
}

// A stopped node has several pipelines, and PostgreSQL names only one blocking session at a time.
TEST_F(LeaseStore, all_sessions_of_a_stopped_owner_are_terminated) {
  const auto lease = signer_of("node-a");
  std::vector<Session> stopped;
  stopped.reserve(4);
  for (int i = 0; i < 4; ++i) stopped.push_back(stopped_client("node-a", lease.key));
  expire(lease.key);
  const auto got = acquire("node-b", {lease.key.signer});
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].fencing_token, 2);
  EXPECT_LT(took, 4s);
  for (auto& session : stopped) EXPECT_TRUE(session.lost());
}

// One pipeline stopped while it held the cursor, and another waits for it. The takeover waits for the second session,
// but the first one must be terminated.
TEST_F(LeaseStore, a_stopped_owner_is_found_behind_its_own_waiting_session) {
  const auto lease = signer_of("node-a");
  const auto cursor = lease_params("node-a", {lease});
  auto waiting = stopped_client("node-a", lease.key);
  auto stopped = stopped_client("node-a", lease.key);
  stopped.must(sql::kLockCursors.sql, cursor);
  waiting.send(sql::kLockCursors.sql, cursor);
  interleaving::Theatre theatre(db.dsn());
  ASSERT_FALSE(theatre.settled(waiting));
  expire(lease.key);
  const auto got = acquire("node-b", {lease.key.signer});
  ASSERT_EQ(got.size(), 1u);
  EXPECT_LT(took, 4s);
}

TEST_F(LeaseStore, a_writer_that_finishes_in_time_is_not_terminated) {
  const auto lease = signer_of("node-a");
  auto writer = stopped_client("node-a", lease.key);
  expire(lease.key);
  interleaving::Theatre theatre(db.dsn());
  Leases got;
  as_node("node-b", [&](pg::Pool& pool) -> awaitable<> {
    const auto executor = co_await this_executor();
    const auto done = std::make_shared<Completion<bool>>(executor);
    asio::co_spawn(executor, acquire_leases(pool, "node-b", kChain, {lease.key.signer}, LeaseTimes{}),
                   [&got, done](const std::exception_ptr& failure, Leases leases) {
                     got = std::move(leases);
                     done->complete(!failure);
                   });
    asio::steady_timer pause(executor);
    while (admin.value<std::int64_t>("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'node-b' AND "
                                     "cardinality(pg_blocking_pids(pid)) > 0") == 0) {
      pause.expires_after(5ms);
      co_await pause.async_wait(asio::use_awaitable);
    }
    writer.must("COMMIT");
    co_await done->wait();
    EXPECT_TRUE(done->value());
  });
  EXPECT_EQ(got.size(), 1u);
  EXPECT_TRUE(writer.ask("SELECT 1").ok());
}

TEST_F(LeaseStore, a_session_of_no_node_is_not_terminated_and_the_error_names_it) {
  const auto lease = signer_of("node-a");
  auto stranger = stopped_client("psql", lease.key);
  expire(lease.key);
  try {
    acquire("node-b", {lease.key.signer});
    ADD_FAILURE() << "the lease was taken";
  } catch (const Exception& e) {
    EXPECT_EQ(e.error().code, "lease_locked");
    EXPECT_EQ(e.error().kind, ErrorKind::kUnavailable);
    EXPECT_TRUE(e.error().to_string().contains(std::to_string(stranger.pid()))) << e.error().to_string();
    EXPECT_TRUE(e.error().to_string().contains("psql")) << e.error().to_string();
  }
  EXPECT_TRUE(stranger.ask("SELECT 1").ok());
  EXPECT_EQ(owner_of(lease.key), "node-a/1");
}

// Both wait for the stopped owner, one of them behind the other. Neither may terminate the other.
TEST_F(LeaseStore, two_nodes_that_want_the_same_lease_do_not_terminate_each_other) {
  const auto lease = signer_of("node-a");
  auto stopped = stopped_client("node-a", lease.key);
  expire(lease.key);
  admin.must(
      "INSERT INTO cluster_node (node_id, advertise_url, version) VALUES ('node-b', '', ''), ('node-c', '', '')");
  std::vector<std::size_t> got;
  as_node("node-b", [&](pg::Pool& pool) -> awaitable<> {
    const auto executor = co_await this_executor();
    std::vector<std::shared_ptr<Completion<bool>>> done;
    for (const std::string node : {"node-b", "node-c"}) {
      done.push_back(std::make_shared<Completion<bool>>(executor));
      asio::co_spawn(executor, acquire_leases(pool, node, kChain, {lease.key.signer}, LeaseTimes{}),
                     [&got, told = done.back()](const std::exception_ptr& failure, const Leases& leases) {
                       if (!failure) got.push_back(leases.size());
                       told->complete(true);
                     });
    }
    for (const auto& one : done) co_await one->wait();
  });
  std::ranges::sort(got);
  EXPECT_EQ(got, (std::vector<std::size_t>{0, 1}));
}

TEST_F(LeaseStore, open_transactions_of_a_former_owner_are_due_at_once) {
  const auto lease = signer_of("node-a");
  std::vector<NewTx> items;
  items.reserve(4);
  for (int i = 0; i < 4; ++i) items.push_back(new_tx(lease.key));
  as_node("node-a", [&](pg::Pool& pool) -> awaitable<> { co_await create_batch(pool, "node-a", {{lease, 0}}, items); });
  admin.must(
      "UPDATE tx_open SET next_resubmit_at = clock_timestamp() + interval '1 h', "
      "       last_receipt_check = clock_timestamp(), state = CASE WHEN nonce < 2 THEN 'TRACKING' ELSE state END");
  acquire("node-a", {lease.key.signer});
  EXPECT_EQ(count_open("next_resubmit_at > clock_timestamp() AND last_receipt_check IS NOT NULL", lease.key), 4);
  expire(lease.key);
  acquire("node-b", {lease.key.signer});
  EXPECT_EQ(count_open("last_receipt_check IS NULL", lease.key), 4);
  EXPECT_EQ(count("next_resubmit_at <= clock_timestamp() AND state = 'ALLOCATED'", lease.key), 2);
  EXPECT_EQ(count("next_resubmit_at > clock_timestamp() AND state = 'TRACKING'", lease.key), 2);
}

TEST_F(LeaseStore, takes_free_leases_and_leaves_the_others) {
  const auto held = signer_of("node-a");
  const auto expired = signer_of("node-a");
  expire(expired.key);
  const std::string unknown = "0x" + std::string(40, 'f');
  const auto got = acquire("node-b", {unknown, held.key.signer, expired.key.signer, unknown});
  std::map<std::string, std::int64_t> tokens;
  for (const auto& lease : got) tokens[lease.key.signer] = lease.fencing_token;
  EXPECT_EQ(tokens, (std::map<std::string, std::int64_t>{{unknown, 1}, {expired.key.signer, 2}}));
}

TEST_F(LeaseStore, a_release_notifies_all_nodes) {
  const auto lease = signer_of("node-a");
  const pg::PgConn listener(PQconnectdb(db.dsn().c_str()));
  const pg::ResultSet listening(PQexec(listener.get(), fmt::format("LISTEN {}", kLeaseChannel).c_str()));
  as_node("node-a", [&](pg::Pool& pool) -> awaitable<> { co_await release_leases(pool, "node-a", {lease}); });
  EXPECT_TRUE(test::eventually([&] {
    PQconsumeInput(listener.get());
    auto* notification = PQnotifies(listener.get());
    PQfreemem(notification);
    return notification != nullptr;
  }));
  EXPECT_EQ(owner_of(lease.key), "/1");
}

TEST_F(LeaseStore, finds_the_leader_and_its_url) {
  const auto lease = signer_of("node-a");
  as_node("node-a", [&](pg::Pool& pool) -> awaitable<> {
    const SignerKey unknown{kChain, "0x" + std::string(40, 'e')};
    auto views = co_await find_leases(pool, {unknown, lease.key}, LeaseTimes{});
    EXPECT_FALSE(views[0]);
    if (!views[1]) co_return ADD_FAILURE();
    EXPECT_EQ(views[1]->owner_node, "node-a");
    EXPECT_EQ(views[1]->fencing_token, 1);
    EXPECT_FALSE(views[1]->expired);
    EXPECT_EQ(views[1]->advertise_url, "");
    co_await cluster::heartbeat(pool, {"node-a", "http://a:1", "v1"});
    views = co_await find_leases(pool, {unknown, lease.key}, LeaseTimes{});
    EXPECT_EQ(views[1]->advertise_url, "http://a:1");
    co_await release_leases(pool, "node-a", {lease});
    views = co_await find_leases(pool, {unknown, lease.key}, LeaseTimes{});
    EXPECT_EQ(views[1]->owner_node, "");
    EXPECT_TRUE(views[1]->expired);
  });
}

TEST_F(LeaseStore, orphans_are_signers_with_work_and_no_leader) {
  const auto led = signer_of("node-a");
  const auto idle = signer_of("node-a");
  const auto orphan = signer_of("node-a");
  const auto finished = signer_of("node-a");
  as_node("node-a", [&](pg::Pool& pool) -> awaitable<> {
    const std::vector<Allotment> allotments{{led, 0}, {orphan, 0}, {finished, 0}};
    co_await create_batch(pool, "node-a", allotments, {new_tx(led.key), new_tx(orphan.key), new_tx(finished.key)});
    end(id_at(finished.key, 0), "FAILED_FINAL");
    for (const auto& lease : {idle, orphan, finished}) expire(lease.key);
    auto found = co_await find_orphans(pool, {kChain}, LeaseTimes{}, 10);
    EXPECT_EQ(found, std::vector<SignerKey>{orphan.key});
    found = co_await find_orphans(pool, {kChain + 1}, LeaseTimes{}, 10);
    EXPECT_TRUE(found.empty());
    found = co_await idle_signers(pool, {led, idle, orphan, finished});
    std::ranges::sort(found);
    EXPECT_EQ(found, (std::vector<SignerKey>{idle.key, finished.key}));
    // Only a leader notices that what a signer waits for has happened.
    admin.must("UPDATE signer_nonce_cursor SET needs_reconcile = true WHERE signer = $1",
               pg::Params::of(finished.key.signer));
    found = co_await find_orphans(pool, {kChain}, LeaseTimes{}, 10);
    std::ranges::sort(found);
    EXPECT_EQ(found, (std::vector<SignerKey>{orphan.key, finished.key}));
    found = co_await idle_signers(pool, {led, idle, orphan, finished});
    EXPECT_EQ(found, std::vector<SignerKey>{idle.key});
  });
}

TEST_F(LeaseStore, nodes_are_listed_while_they_live_and_an_hour_longer) {
  const auto lease = signer_of("node-a");
  as_node("node-a", [&](pg::Pool& pool) -> awaitable<> {
    co_await cluster::heartbeat(pool, {"node-a", "http://a:1", "v1"});
    co_await cluster::heartbeat(pool, {"node-b", "", "v1"});
    auto nodes = co_await cluster::list_nodes(pool);
    EXPECT_EQ(nodes.size(), 2u);
    EXPECT_EQ(nodes[0].node_id, "node-a");
    EXPECT_EQ(nodes[0].leases, 1);
    EXPECT_EQ(nodes[1].leases, 0);
    admin.must("UPDATE cluster_node SET heartbeat_at = clock_timestamp() - interval '2 h'");
    co_await cluster::heartbeat(pool, {"node-c", "", "v1"});
    nodes = co_await cluster::list_nodes(pool);
    // node-a still owns a lease, so the name of its sessions must stay known.
    EXPECT_EQ(nodes.size(), 2u);
    co_await cluster::forget_node(pool, "node-c");
    nodes = co_await cluster::list_nodes(pool);
    EXPECT_EQ(nodes.size(), 1u);
    EXPECT_EQ(nodes[0].node_id, "node-a");
  });
}

}  // namespace
}  // namespace fencepost::tx

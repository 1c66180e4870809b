// Compares the leases that a node remembers with those in the database, while both change at the same time.
#include "pg/database.hpp"
#include "tests/support/eventually.hpp"
#include "tx/service/lease_manager.hpp"
#include "tx/store/protocol_test_support.hpp"

namespace fencepost::tx {
namespace {

using namespace std::chrono_literals;
using test::eventually;

class LeaseManagerTest : public ProtocolTest {
 protected:
  LeaseManagerTest() {
    runtime.start();
    runtime.run_on(0, database.start());
    runtime.run_on(0, [](LeaseManager& m) -> awaitable<> {
      m.start();
      co_return;
    }(manager));
  }
  ~LeaseManagerTest() override {
    runtime.run_on(0, manager.stop());
    runtime.run_on(0, database.stop(1s));
    runtime.stop();
  }

  SignerKey free_signer(std::uint64_t number) { return {kChain, fmt::format("0x{:040x}", number)}; }

  using Answer = std::variant<SignerLease, LeaseView>;
  // 0 when another node leads.
  static std::int64_t token_of(const Answer& answer) {
    const auto* lease = std::get_if<SignerLease>(&answer);
    return lease == nullptr ? 0 : lease->fencing_token;
  }
  std::int64_t lead(const SignerKey& key) { return token_of(runtime.run_on(0, manager.lead(key))); }

  bool somebody_waits_for(Session& holder) {
    return admin.value<bool>("SELECT EXISTS (SELECT FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid)))",
                             pg::Params::of(holder.pid()));
  }

  static constexpr pg::Statement kLook{"test_look", "SELECT owner_node FROM signer_lease WHERE signer = $1"};
  void look_at(const SignerKey& key) {
    runtime.run_on(0, [](pg::Database& d, SignerKey which) -> awaitable<> {
      co_await d.pool().query(kLook, which.signer);
    }(database, key));
  }

  Runtime runtime{{.threads = 1}};
  Metrics metrics;
  pg::Database database{runtime, test::connect_options(db.dsn()), {.shared_connections = 2}, metrics};
  // Leases are idle at once, but are released only when the test wakes the worker.
  LeaseManager manager{
      runtime.executor(0),
      database,
      {.node_id = "node-a", .advertise_url = "", .version = ""},
      {.times = {.duration = 1h}, .renew_interval = 20min, .idle_release = 0ms},
      {{kChain, "main"}},
      {.has = [](const std::string&) { return true; }, .all = [] { return std::vector<std::string>(); }},
      metrics};
};

TEST_F(LeaseManagerTest, an_idle_lease_that_is_requested_during_its_release_gets_a_new_token) {
  // The release waits before it reads any row, so the lease is still this node's in the database.
  admin.must(R"(
    CREATE FUNCTION wait_before_release() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF current_query() LIKE '%SET owner_node = '''',%' THEN PERFORM pg_advisory_xact_lock(42); END IF;
      RETURN NULL;
    END $$)");
  admin.must(
      "CREATE TRIGGER wait_before_release BEFORE UPDATE ON signer_lease FOR EACH STATEMENT "
      "EXECUTE FUNCTION wait_before_release()");
  Session gate(db.dsn(), "gate");
  // Queries alternate between the two shared connections. Try both: a query behind the release would wait anyway.
  for (std::uint64_t turn = 1; turn <= 4; ++turn) {
    const auto key = free_signer(turn);
    ASSERT_EQ(lead(key), 1);
    if (turn % 2 == 0) look_at(key);
    gate.must("SELECT pg_advisory_lock(42)");
    manager.look_for_orphans();
    ASSERT_TRUE(eventually([&] { return somebody_waits_for(gate); }));
    ASSERT_EQ(owner_of(key), "node-a/1");
    EXPECT_FALSE(manager.held(key)) << "used while it is released";

    auto wanted = asio::co_spawn(runtime.loop(0), manager.lead(key), asio::use_future);
    // More round trips than an acquisition needs.
    for (int i = 0; i < 20; ++i) {
      runtime.run_on(0, [](pg::Database& d, SignerKey which) -> awaitable<> {
        const auto connection = co_await d.pool().acquire();
        co_await connection->run(pg::Batch().add(kLook, which.signer));
      }(database, key));
    }
    gate.must("SELECT pg_advisory_unlock(42)");
    EXPECT_EQ(token_of(wanted.get()), 2);
    EXPECT_EQ(owner_of(key), "node-a/2") << "released after it was acquired again";
    EXPECT_EQ(manager.held(key).value_or(SignerLease{}).fencing_token, 2);
  }
}

TEST_F(LeaseManagerTest, a_lease_locked_by_another_session_does_not_delay_the_release_of_others) {
  const auto locked = free_signer(1);
  const auto free = free_signer(2);
  ASSERT_EQ(lead(locked), 1);
  ASSERT_EQ(lead(free), 1);
  Session stranger(db.dsn(), "psql");
  stranger.must("BEGIN");
  stranger.must("SELECT FROM signer_lease WHERE signer = $1 FOR UPDATE", pg::Params::of(locked.signer));
  manager.look_for_orphans();
  EXPECT_TRUE(eventually([&] { return owner_of(free) == "/1"; }));
  EXPECT_EQ(owner_of(locked), "node-a/1");
  stranger.must("COMMIT");
  // No other node has held it in between, so the token is the same.
  EXPECT_EQ(lead(locked), 1);
  manager.look_for_orphans();
  EXPECT_TRUE(eventually([&] { return owner_of(locked) == "/1"; })) << "its release is tried again";
}

}  // namespace
}  // namespace fencepost::tx

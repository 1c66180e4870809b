// An economy in use is carried over: migrations 0023 to 0028 find transfers in every state, and roles with the grants
// that the documentation asked for before.
#include "pg/error.hpp"
#include "pg/migrations.hpp"
#include "tests/support/role.hpp"
#include "tests/support/with_pool.hpp"
#include "transfer/economy_test_support.hpp"

namespace fencepost::transfer {
namespace {

constexpr int kBefore = 22;

void migrate_up_to(const test::TestDatabase& db, int version) {
  std::vector<pg::Migration> some;
  std::ranges::copy_if(pg::embedded_migrations(), std::back_inserter(some),
                       [&](const auto& migration) { return migration.version <= version; });
  pg::Connector connector(test::connect_options(db.dsn()));
  const auto applied = run_blocking(pg::migrate(connector, some));
  ASSERT_TRUE(applied) << applied.error().to_string();
}

TEST(economy_migration, carries_over_transfers_in_every_state_and_roles_with_the_old_grants) {
  const test::TestDatabase db;
  migrate_up_to(db, kBefore);
  const test::Role role(db);
  db.exec(fmt::format(
      "GRANT USAGE ON SCHEMA economy TO {0}; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA economy TO "
      "{0}; GRANT USAGE ON ALL SEQUENCES IN SCHEMA economy TO {0}",
      role.name()));
  Session clerk(role.dsn(), "clerk");
  clerk.must("SELECT economy.fn_mint(7, 1, 1000, 'r', 'a')");
  clerk.must("SELECT economy.fn_set_settings(7, '{\"cooldown_seconds\": 0}', 'r', 'a')");
  const auto create = [&](std::int64_t from, std::int64_t amount) {
    return clerk.value<Uuid>("SELECT economy.fn_create_pending_transfer(7, $1, 2, $2)", pg::Params::of(from, amount));
  };
  const auto completed = create(1, 10);
  clerk.must("SELECT economy.fn_process_due(10)");
  const auto approved = create(1, 20);
  const auto too_much = create(1, 600);
  const auto poor = create(5, 40);
  const auto cancelled = create(5, 41);
  clerk.must("SELECT economy.fn_cancel_transfer($1)", pg::Params::of(cancelled));

  migrate_up_to(db, pg::embedded_migrations().back().version);

  Session admin(db.dsn(), "admin");
  const auto status = [&](const Uuid& id) {
    return admin.value<std::string>("SELECT status FROM economy.fn_get_pending_transfer($1)", pg::Params::of(id));
  };
  const auto findings = [&] {
    return admin.value<std::string>(
        "SELECT coalesce(string_agg(check_name || ' ' || example, ', '), '') "
        "FROM economy.fn_audit() WHERE wrong > 0");
  };
  EXPECT_EQ(findings(), "");
  EXPECT_EQ(status(completed), "completed");
  EXPECT_EQ(status(too_much), "checking");
  EXPECT_EQ(status(cancelled), "rejected");

  // The session and its prepared statements go on over the migration, and so do its rights.
  clerk.must("SELECT economy.fn_process_due(10)");
  EXPECT_EQ(status(approved), "completed");
  clerk.must("SELECT economy.fn_mint(7, 5, 40, 'r', 'a')");
  clerk.must("SELECT economy.fn_process_due(10)");
  clerk.must("SELECT economy.fn_process_due(10)");
  EXPECT_EQ(status(poor), "completed") << "a payer who waited for money before is noticed";
  create(1, 30);
  EXPECT_EQ(findings(), "");
}

std::string may_call(const test::TestDatabase& db, const test::Role& role, const std::string& schema) {
  db.exec(fmt::format("CREATE FUNCTION {}.later() RETURNS integer LANGUAGE sql AS 'SELECT 1'", schema));
  return db.exec(fmt::format("SELECT has_function_privilege('{}', '{}.later()', 'EXECUTE')", role.name(), schema));
}

// A server on which the roles do not exist, and an owner that may not create them.
TEST(economy_migration, goes_on_for_an_owner_that_may_not_create_roles) {
  test::TestCluster server;
  test::exec_sql(server.dsn(), "CREATE ROLE app LOGIN");
  test::exec_sql(server.dsn(), "CREATE DATABASE app OWNER app");
  const auto as = [&](const std::string& role) { return server->dsn("app") + "&user=" + role; };
  const auto sql = [&](const std::string& role, const std::string& text) { return test::exec_sql(as(role), text); };
  pg::Connector connector(test::connect_options(as("app")));
  const auto applied = run_blocking(pg::migrate(connector, pg::embedded_migrations()));
  ASSERT_TRUE(applied) << applied.error().to_string();
  EXPECT_EQ(sql("app", "SELECT count(*) FROM pg_roles WHERE rolname LIKE 'fencepost_economy%'"), "0");
  sql("app", "SELECT economy.fn_mint(7, 1, 100, 'r', 'a')");
  sql("app", "SELECT economy.fn_create_pending_transfer(7, 1, 2, 10)");
  EXPECT_EQ(sql("app", "SELECT completed FROM economy.fn_process_due(10, p_hold_lanes => true)"), "1");

  // As docs/transfers.md says.
  for (const std::string role : {"user", "operator", "node"}) {
    test::exec_sql(server.dsn(), fmt::format("CREATE ROLE fencepost_economy_{} NOLOGIN", role));
  }
  sql("app", "SELECT economy._grant_rights()");
  test::exec_sql(server.dsn(), "CREATE ROLE bot LOGIN IN ROLE fencepost_economy_user");
  EXPECT_EQ(sql("bot", "SELECT balance FROM economy.fn_get_account(7, 1)"), "90");
  EXPECT_EQ(sql("app", "SELECT coalesce(sum(wrong), 0) FROM economy.fn_audit()"), "0");
}

TEST(economy_migration, closes_later_functions_of_its_schema_and_of_no_other) {
  const test::TestDatabase db;
  const test::Role role(db);
  db.exec("CREATE SCHEMA app");
  migrate_up_to(db, pg::embedded_migrations().back().version);
  EXPECT_EQ(may_call(db, role, "economy"), "f");
  EXPECT_EQ(may_call(db, role, "app"), "t");
  EXPECT_EQ(may_call(db, role, "public"), "t");
}

TEST(economy_migration, leaves_hardened_default_privileges_as_they_are) {
  const test::TestDatabase db;
  const test::Role role(db);
  db.exec("ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC");
  migrate_up_to(db, pg::embedded_migrations().back().version);
  EXPECT_EQ(may_call(db, role, "public"), "f");
}

TEST(economy_migration, drops_nothing_of_another_owner) {
  const test::TestDatabase db;
  migrate_up_to(db, kBefore);
  db.exec("CREATE VIEW mine AS SELECT NULL::economy._item AS item");
  EXPECT_THROW(migrate_up_to(db, pg::embedded_migrations().back().version), pg::QueryError);
  EXPECT_EQ(db.exec("SELECT max(version) FROM schema_migration"), std::to_string(kBefore));
  db.exec("DROP VIEW mine");
  migrate_up_to(db, pg::embedded_migrations().back().version);
}

}  // namespace
}  // namespace fencepost::transfer

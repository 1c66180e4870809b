#include <future>
#include <thread>

#include <gtest/gtest.h>

#include "pg/error.hpp"
#include "pg/migrations.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/interleaving.hpp"
#include "tests/support/postgres.hpp"
#include "tests/support/with_pool.hpp"

namespace fencepost::pg {
namespace {

using test::TestDatabase;

using Outcome = Result<std::vector<std::string>>;

Outcome migrate_now(const TestDatabase& db, const std::vector<Migration>& migrations,
                    std::chrono::milliseconds patience = std::chrono::minutes(1)) {
  Connector connector(test::connect_options(db.dsn()));
  return run_blocking(migrate(connector, migrations, patience));
}

std::string check_now(const TestDatabase& db, const std::vector<Migration>& migrations) {
  std::string code;
  test::with_pool(db.dsn(), {}, [&](Pool& pool) -> awaitable<> {
    const auto checked = co_await check_migrations(pool, migrations);
    code = checked ? "ok" : checked.error().code;
  });
  return code;
}

const std::vector<Migration> kTwo{{1, "0001_first", "CREATE TABLE a (id int)"},
                                  {2, "0002_second", "CREATE TABLE b (id int); INSERT INTO b VALUES (1);"}};

TEST(pg_migrations, applies_what_is_missing_once) {
  TestDatabase db;
  EXPECT_EQ(check_now(db, kTwo), "migrations_pending");
  EXPECT_EQ(migrate_now(db, {kTwo[0]}).value(), std::vector<std::string>{"0001_first"});
  EXPECT_EQ(check_now(db, kTwo), "migrations_pending");
  EXPECT_EQ(migrate_now(db, kTwo).value(), std::vector<std::string>{"0002_second"});
  EXPECT_EQ(migrate_now(db, kTwo).value(), std::vector<std::string>{});
  EXPECT_EQ(check_now(db, kTwo), "ok");
  EXPECT_EQ(db.exec("SELECT count(*) FROM b"), "1");
}

TEST(pg_migrations, an_edited_migration_is_an_error) {
  TestDatabase db;
  ASSERT_TRUE(migrate_now(db, kTwo).has_value());
  auto edited = kTwo;
  edited[0] = Migration(1, "0001_first", "CREATE TABLE a (id bigint)");
  const auto outcome = migrate_now(db, edited);
  ASSERT_FALSE(outcome.has_value());
  EXPECT_EQ(outcome.error().code, "migration_edited");
  EXPECT_NE(outcome.error().message.find("0001_first"), std::string::npos);
  EXPECT_EQ(check_now(db, edited), "migration_edited");
}

TEST(pg_migrations, a_newer_database_is_left_alone) {
  TestDatabase db;
  ASSERT_TRUE(migrate_now(db, kTwo).has_value());
  EXPECT_EQ(migrate_now(db, {kTwo[0]}).error().code, "database_newer");
  EXPECT_EQ(migrate_now(db, {kTwo[0], {3, "0003_other", "SELECT 1"}}).error().code, "migration_missing");
}

TEST(pg_migrations, a_migration_that_fails_is_rolled_back_with_the_ones_before_it) {
  TestDatabase db;
  const std::vector<Migration> broken{kTwo[0], {2, "0002_broken", "CREATE TABLE c (id int); SELECT 1/0"}};
  EXPECT_THROW(EXPECT_TRUE(migrate_now(db, broken)), QueryError);
  EXPECT_EQ(db.exec("SELECT to_regclass('a') IS NULL AND to_regclass('c') IS NULL"), "t");
  EXPECT_EQ(db.exec("SELECT count(*) FROM schema_migration"), "0");
}

// Two tables that a session uses in the opposite order of the migrations.
const std::vector<Migration> kBoth{
    kTwo[0], kTwo[1], {3, "0003_a", "ALTER TABLE a ADD c int"}, {4, "0004_b", "ALTER TABLE b ADD c int"}};

TEST(pg_migrations, tables_in_use_are_waited_for_and_the_sessions_that_use_them_go_on) {
  TestDatabase db;
  ASSERT_TRUE(migrate_now(db, kTwo));
  interleaving::Session node(db.dsn(), "node");
  node.must("BEGIN");
  node.must("INSERT INTO b VALUES (2)");
  auto migrated = std::async(std::launch::async, [&] { return migrate_now(db, kBoth); });
  ASSERT_TRUE(test::eventually([&] {
    return db.exec(
               "SELECT count(*) FROM pg_locks WHERE relation = 'a'::regclass AND mode = 'AccessExclusiveLock' "
               "AND granted") != "0";
  }));
  node.must("INSERT INTO a VALUES (1)");  // waits for the migrations, which wait for the node
  node.must("COMMIT");
  EXPECT_EQ(migrated.get().value(), (std::vector<std::string>{"0003_a", "0004_b"}));
  EXPECT_EQ(db.exec("SELECT count(*) FROM a WHERE c IS NULL"), "1");
}

TEST(pg_migrations, a_table_that_stays_in_use_is_given_up_and_nothing_is_applied) {
  TestDatabase db;
  ASSERT_TRUE(migrate_now(db, kTwo));
  interleaving::Session psql(db.dsn(), "psql");
  psql.must("BEGIN");
  psql.must("INSERT INTO b VALUES (2)");
  const auto outcome = migrate_now(db, kBoth, std::chrono::milliseconds(1));
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, "database_busy");
  EXPECT_EQ(db.exec("SELECT count(*) FROM schema_migration"), "2");
  psql.must("COMMIT");
  EXPECT_EQ(migrate_now(db, kBoth).value().size(), 2U);
}

TEST(pg_migrations, ten_nodes_may_start_at_once) {
  TestDatabase db;
  std::atomic<std::size_t> applied = 0;
  {
    std::vector<std::jthread> nodes;
    nodes.reserve(10);
    for (int i = 0; i < 10; ++i) {
      nodes.emplace_back([&] { applied += migrate_now(db, kTwo).value().size(); });
    }
  }
  EXPECT_EQ(applied, 2U);
  EXPECT_EQ(db.exec("SELECT count(*) FROM b"), "1");
}

TEST(pg_migrations, the_programs_migrations_apply_to_an_empty_database) {
  TestDatabase db;
  const auto applied = migrate_now(db, embedded_migrations());
  ASSERT_TRUE(applied.has_value()) << applied.error().to_string();
  EXPECT_EQ(applied->size(), embedded_migrations().size());
  EXPECT_EQ(check_now(db, embedded_migrations()), "ok");
}

}  // namespace
}  // namespace fencepost::pg

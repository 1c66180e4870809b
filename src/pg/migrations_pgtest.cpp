#include <thread>

#include <gtest/gtest.h>

#include "pg/error.hpp"
#include "pg/migrations.hpp"
#include "tests/support/postgres.hpp"
#include "tests/support/with_pool.hpp"

namespace fencepost::pg {
namespace {

using test::TestDatabase;

using Outcome = Result<std::vector<std::string>>;

Outcome migrate_now(const TestDatabase& db, const std::vector<Migration>& migrations) {
  Connector connector(test::connect_options(db.dsn()));
  return run_blocking(migrate(connector, migrations));
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

TEST(pg_migrations, a_migration_that_fails_is_rolled_back) {
  TestDatabase db;
  const std::vector<Migration> broken{kTwo[0], {2, "0002_broken", "CREATE TABLE c (id int); SELECT 1/0"}};
  EXPECT_THROW(EXPECT_TRUE(migrate_now(db, broken)), QueryError);
  EXPECT_EQ(db.exec("SELECT to_regclass('a') IS NOT NULL AND to_regclass('c') IS NULL"), "t");
  EXPECT_EQ(db.exec("SELECT count(*) FROM schema_migration"), "1");
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

#include <gtest/gtest.h>

#include "pg/migrations.hpp"
#include "tests/support/postgres.hpp"
#include "tests/support/tcp_proxy.hpp"

namespace fencepost::test {
namespace {

TEST(test_database, belongs_to_one_test) {
  const TestDatabase one;
  const TestDatabase two;
  one.exec("CREATE TABLE t (n int); INSERT INTO t VALUES (7)");
  EXPECT_EQ(one.exec("SELECT n FROM t"), "7");
  EXPECT_EQ(two.exec("SELECT count(*) FROM pg_tables WHERE tablename = 't'"), "0");
}

TEST(test_database, is_dropped_at_the_end) {
  const TestDatabase outer;
  std::string name;
  {
    const TestDatabase inner;
    name = inner.name();
    EXPECT_EQ(outer.exec("SELECT count(*) FROM pg_database WHERE datname = '" + name + "'"), "1");
  }
  EXPECT_EQ(outer.exec("SELECT count(*) FROM pg_database WHERE datname = '" + name + "'"), "0");
}

TEST(test_database, a_failing_statement_throws) {
  const TestDatabase db;
  EXPECT_THROW(db.exec("SELECT nonsense"), Exception);
}

TEST(test_database, a_migrated_one_has_our_schema_and_an_empty_one_nothing) {
  const auto expected = std::to_string(pg::embedded_migrations().size());
  const TestDatabase one(Template::kMigrated);
  const TestDatabase two(Template::kMigrated);
  EXPECT_EQ(one.exec("SELECT count(*) FROM schema_migration"), expected);
  one.exec("DELETE FROM schema_migration");
  EXPECT_EQ(two.exec("SELECT count(*) FROM schema_migration"), expected);
  const TestDatabase empty(Template::kEmpty);
  EXPECT_EQ(empty.exec("SELECT to_regclass('schema_migration') IS NULL"), "t");
}

TEST(test_cluster, is_killed_and_started_again_at_the_same_address) {
  TestCluster server;
  exec_sql(server.dsn(), "SELECT 1");
  server->kill();
  EXPECT_THROW(exec_sql(server.dsn(), "SELECT 1"), Exception);
  ASSERT_TRUE(server->restart());
  EXPECT_EQ(exec_sql(server.dsn(), "SELECT 1"), "1");
}

TEST(test_database, is_reached_through_a_proxy) {
  const TestDatabase db;
  TcpProxy proxy(server_socket());
  const auto dsn = through_port(db.dsn(), proxy.port());
  EXPECT_EQ(exec_sql(dsn, "SELECT current_database()"), db.name());
  proxy.refuse();
  EXPECT_THROW(exec_sql(dsn, "SELECT 1"), Exception);
}

}  // namespace
}  // namespace fencepost::test

#include <gtest/gtest.h>

#include "pg/statistics_keeper.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/postgres.hpp"
#include "tests/support/with_pool.hpp"

namespace fencepost::pg {
namespace {

using namespace std::chrono_literals;

TEST(statistics_keeper, analyzes_a_table_of_its_schema_that_has_grown) {
  test::TestDatabase db;
  // Without autovacuum, which runs once a minute and would also analyze the table.
  db.exec(
      "CREATE SCHEMA other; CREATE TABLE other.grows_elsewhere (id bigint) WITH (autovacuum_enabled = off);"
      "CREATE TABLE grows (id bigint PRIMARY KEY) WITH (autovacuum_enabled = off);"
      "CREATE TABLE stays (id bigint PRIMARY KEY) WITH (autovacuum_enabled = off)");
  Runtime runtime({.threads = 1});
  Metrics metrics;
  Database database(runtime, test::connect_options(db.dsn()), {}, metrics);
  StatisticsKeeper keeper(runtime.executor(0), database, "public", metrics);
  runtime.start();
  runtime.run_on(0, database.start());
  db.exec(
      "INSERT INTO other.grows_elsewhere SELECT generate_series(1, 1000);"
      "INSERT INTO grows SELECT generate_series(1, 1000); INSERT INTO stays SELECT generate_series(1, 100)");
  runtime.run_on(0, [](StatisticsKeeper& k) -> awaitable<> {
    k.start();
    co_return;
  }(keeper));
  EXPECT_TRUE(test::eventually(
      [&] { return db.exec("SELECT reltuples FROM pg_class WHERE relname = 'grows'") == "1000"; }, 20s));
  EXPECT_EQ(db.exec("SELECT reltuples FROM pg_class WHERE relname = 'stays'"), "-1");
  EXPECT_EQ(db.exec("SELECT reltuples FROM pg_class WHERE relname = 'grows_elsewhere'"), "-1");
  runtime.run_on(0, keeper.stop());
  runtime.run_on(0, database.stop(1s));
  runtime.stop();
}

}  // namespace
}  // namespace fencepost::pg

// What one session guarantees: order, atomic batches, clean sessions after errors, and the right error after a loss.
#include <gtest/gtest.h>

#include "pg/connection.hpp"
#include "pg/error.hpp"
#include "tests/support/postgres.hpp"
#include "tests/support/with_pool.hpp"

namespace fencepost::pg {
namespace {

using namespace std::chrono_literals;
using test::TestDatabase;

constexpr Statement kOne{"one", "SELECT 1"};
constexpr Statement kEcho{"echo", "SELECT $1::bigint"};
constexpr Statement kInsert{"insert_t", "INSERT INTO t (id) VALUES ($1)"};
constexpr Statement kCount{"count_t", "SELECT count(*) FROM t"};
constexpr Statement kKillMe{"kill_me", "SELECT pg_terminate_backend(pg_backend_pid())"};
constexpr Statement kWait{"wait_seconds", "SELECT pg_sleep($1)"};

// Runs the body with one open connection.
template <class Body>
void with_connection(const std::string& dsn, Body body) {
  Connector connector(test::connect_options(dsn));
  auto scenario = [&]() -> awaitable<> {
    const auto executor = co_await this_executor();
    auto session = co_await connector.connect(executor);
    const OwnedConnection connection(std::move(session), {});
    co_await body(*connection);
  };
  run_blocking(scenario());
}

// The SQLSTATE of the batch's error; "" if it succeeds.
awaitable<std::string> sqlstate_of(Connection& connection, const Batch& batch) {
  try {
    co_await connection.run(batch);
  } catch (const QueryError& e) {
    co_return e.sqlstate();
  }
  co_return std::string{};
}

awaitable<std::int64_t> count_rows(Connection& connection) {
  Batch batch;
  batch.add(kCount);
  const auto results = co_await connection.run(batch);
  co_return results[0].one().get<std::int64_t>(0);
}

TEST(pg_connection, answers_each_statement_of_a_batch_in_order) {
  TestDatabase db;
  with_connection(db.dsn(), [](Connection& connection) -> awaitable<> {
    Batch batch;
    for (std::int64_t i = 0; i < 200; ++i) batch.add(kEcho, i);
    const auto results = co_await connection.run(batch);
    EXPECT_EQ(results.size(), 200U);
    for (std::size_t i = 0; i < results.size(); ++i) {
      EXPECT_EQ(results[i].one().get<std::int64_t>(0), static_cast<std::int64_t>(i));
    }
  });
}

TEST(pg_connection, a_failing_statement_undoes_its_batch_and_no_other) {
  TestDatabase db;
  db.exec("CREATE TABLE t (id int PRIMARY KEY)");
  with_connection(db.dsn(), [](Connection& connection) -> awaitable<> {
    Batch good;
    good.add(kInsert, 1);
    co_await connection.run(good);
    Batch bad;
    bad.add(kInsert, 2).add(kInsert, 1).add(kInsert, 3);
    EXPECT_EQ(co_await sqlstate_of(connection, bad), "23505");
    Batch after;
    after.add(kInsert, 4);
    EXPECT_EQ(co_await sqlstate_of(connection, after), "");
    EXPECT_EQ(co_await count_rows(connection), 2);
  });
}

TEST(pg_connection, a_constraint_that_fails_at_commit_is_an_error_of_that_batch) {
  TestDatabase db;
  db.exec("CREATE TABLE t (id int, CONSTRAINT t_unique UNIQUE (id) DEFERRABLE INITIALLY DEFERRED)");
  with_connection(db.dsn(), [](Connection& connection) -> awaitable<> {
    Batch twice;
    twice.add(kInsert, 1).add(kInsert, 1);
    EXPECT_EQ(co_await sqlstate_of(connection, twice), "23505");
    EXPECT_TRUE(connection.is_open());
    Batch once;
    once.add(kInsert, 1);
    EXPECT_EQ(co_await sqlstate_of(connection, once), "");
    EXPECT_EQ(co_await count_rows(connection), 1);
  });
}

TEST(pg_connection, a_statement_that_cannot_be_prepared_fails_with_its_own_error_every_time) {
  constexpr Statement kWrong{"wrong", "SELECT nonsense FROM nowhere"};
  TestDatabase db;
  with_connection(db.dsn(), [&](Connection& connection) -> awaitable<> {
    for (int i = 0; i < 3; ++i) {
      Batch batch;
      batch.add(kWrong);
      EXPECT_EQ(co_await sqlstate_of(connection, batch), "42P01");
      Batch fine;
      fine.add(kOne);
      EXPECT_EQ(co_await sqlstate_of(connection, fine), "");
    }
  });
}

TEST(pg_connection, two_statements_under_one_name_throw) {
  constexpr Statement kFirst{"same_name", "SELECT 1"};
  constexpr Statement kSecond{"same_name", "SELECT 2"};
  TestDatabase db;
  test::with_pool(db.dsn(), {}, [&](Pool& pool) -> awaitable<> {
    EXPECT_EQ(co_await test::code_of(pool.query(kFirst)), "ok");
    EXPECT_EQ(co_await test::code_of(pool.query(kSecond)), "duplicate_statement");
    EXPECT_EQ(co_await test::code_of(pool.query(kFirst)), "ok");
  });
}

TEST(pg_connection, a_statement_survives_a_change_of_its_columns) {
  constexpr Statement kAll{"select_all", "SELECT * FROM t"};
  TestDatabase db;
  db.exec("CREATE TABLE t (id int)");
  test::with_pool(db.dsn(), {}, [&](Pool& pool) -> awaitable<> {
    co_await pool.query(kAll);
    db.exec("ALTER TABLE t ADD COLUMN more text DEFAULT 'x'; INSERT INTO t VALUES (1)");
    const auto rows = co_await pool.query(kAll);
    EXPECT_EQ(rows.one().get<std::string>("more"), "x");
  });
}

TEST(pg_connection, the_batch_timeout_is_for_that_batch_only) {
  TestDatabase db;
  with_connection(db.dsn(), [](Connection& connection) -> awaitable<> {
    Batch slow;
    slow.add(kWait, 10.0).statement_timeout(50ms);
    EXPECT_EQ(co_await sqlstate_of(connection, slow), "57014");
    Batch patient;
    patient.add(kWait, 0.1);
    EXPECT_EQ(co_await sqlstate_of(connection, patient), "");
  });
}

TEST(pg_connection, the_lock_timeout_is_for_that_batch_only) {
  constexpr Statement kLock{"lock_t", "SELECT id FROM t FOR UPDATE"};
  TestDatabase db;
  db.exec("CREATE TABLE t (id int); INSERT INTO t VALUES (1)");
  test::with_pool(db.dsn(), {}, [&](Pool& pool) -> awaitable<> {
    auto holder = co_await pool.acquire();
    co_await holder->exec_script("BEGIN; SELECT id FROM t FOR UPDATE");
    Batch batch;
    batch.add(kLock).lock_timeout(50ms);
    std::string state;
    try {
      co_await pool.run(std::move(batch));
    } catch (const QueryError& e) {
      state = e.sqlstate();
    }
    EXPECT_EQ(state, "55P03");
  });
}

TEST(pg_connection, the_lock_timeout_holds_while_a_statement_is_prepared) {
  constexpr Statement kRead{"read_locked_t", "SELECT id FROM t"};
  constexpr Statement kLimit{"read_lock_timeout", "SELECT current_setting('lock_timeout') AS limit"};
  TestDatabase db;
  db.exec("CREATE TABLE t (id int)");
  test::with_pool(db.dsn(), {}, [&](Pool& pool) -> awaitable<> {
    auto holder = co_await pool.acquire();
    co_await holder->exec_script("BEGIN; LOCK TABLE t IN ACCESS EXCLUSIVE MODE");
    auto reader = co_await pool.acquire();
    Batch settings;
    settings.add(kLimit);
    const auto before = (co_await reader->run(settings)).front().one().get<std::string>("limit");
    Batch batch;
    batch.add(kRead).lock_timeout(50ms);
    for (int i = 0; i < 2; ++i) EXPECT_EQ(co_await sqlstate_of(*reader, batch), "55P03");
    co_await holder->exec_script("COMMIT");
    EXPECT_EQ(co_await sqlstate_of(*reader, batch), "");
    EXPECT_EQ((co_await reader->run(settings)).front().one().get<std::string>("limit"), before);
  });
}

TEST(pg_connection, losing_the_session_is_commit_unknown_for_a_write_and_connection_lost_for_a_read) {
  TestDatabase db;
  for (const auto access : {Access::kWrite, Access::kRead}) {
    with_connection(db.dsn(), [access](Connection& connection) -> awaitable<> {
      Batch batch;
      batch.add(kKillMe);
      std::string code;
      try {
        co_await connection.run(batch, {.access = access});
      } catch (const Exception& e) {
        code = e.error().code;
      }
      EXPECT_EQ(code, access == Access::kWrite ? "outcome_unknown" : "database_unavailable");
      EXPECT_FALSE(connection.is_open());
    });
  }
}

TEST(pg_connection, a_caller_that_times_out_leaves_the_pipeline_in_order) {
  TestDatabase db;
  with_connection(db.dsn(), [](Connection& connection) -> awaitable<> {
    Batch slow;
    slow.add(kWait, 0.3);
    std::string code;
    try {
      co_await connection.run(slow, {.access = Access::kWrite, .timeout = 20ms});
    } catch (const CommitUnknown& e) {
      code = e.error().code;
    }
    EXPECT_EQ(code, "outcome_unknown");
    Batch next;
    next.add(kEcho, 42);
    const auto results = co_await connection.run(next);
    EXPECT_EQ(results[0].one().get<int>(0), 42);
  });
}

TEST(pg_connection, a_cancelled_caller_leaves_the_pipeline_in_order) {
  TestDatabase db;
  with_connection(db.dsn(), [](Connection& connection) -> awaitable<> {
    const auto executor = co_await this_executor();
    TaskGroup group(executor, "callers", 10);
    auto caller = [](Connection& c) -> awaitable<> {
      Batch slow;
      slow.add(kWait, 0.2);
      co_await c.run(slow);
    };
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(group.spawn(caller(connection)));
    co_await asio::post(executor, asio::use_awaitable);
    EXPECT_GT(connection.in_flight(), 0U);
    co_await group.stop(0ms);
    Batch next;
    next.add(kEcho, 7);
    const auto results = co_await connection.run(next);
    EXPECT_EQ(results[0].one().get<int>(0), 7);
  });
}

TEST(pg_connection, a_script_runs_as_one_transaction) {
  TestDatabase db;
  db.exec("CREATE TABLE t (id int PRIMARY KEY)");
  with_connection(db.dsn(), [](Connection& connection) -> awaitable<> {
    std::string state;
    try {
      co_await connection.exec_script("INSERT INTO t VALUES (1); INSERT INTO t VALUES (1)");
    } catch (const QueryError& e) {
      state = e.sqlstate();
    }
    EXPECT_EQ(state, "23505");
    EXPECT_EQ(co_await count_rows(connection), 0);
    const auto results = co_await connection.exec_script("INSERT INTO t VALUES (1); SELECT 5");
    EXPECT_EQ(results.back().one().get<int>(0), 5);
    EXPECT_EQ(co_await count_rows(connection), 1);
  });
}

TEST(pg_connection, a_megabyte_each_way_does_not_deadlock) {
  constexpr Statement kBig{"echo_big", "SELECT $1::text"};
  TestDatabase db;
  with_connection(db.dsn(), [&](Connection& connection) -> awaitable<> {
    const std::string big(1 << 20, 'x');
    Batch batch;
    for (int i = 0; i < 16; ++i) batch.add(kBig, big);
    const auto results = co_await connection.run(batch);
    EXPECT_EQ(results.size(), 16U);
    for (const auto& result : results) EXPECT_EQ(result.one().get<std::string_view>(0).size(), big.size());
  });
}

}  // namespace
}  // namespace fencepost::pg

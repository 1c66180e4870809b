// What a pool guarantees: bounds, fairness, recovery, and that no caller hangs.
#include <gtest/gtest.h>

#include "pg/error.hpp"
#include "pg/pool.hpp"
#include "pg/transaction.hpp"
#include "tests/support/postgres.hpp"
#include "tests/support/with_pool.hpp"

namespace fencepost::pg {
namespace {

using namespace std::chrono_literals;
using test::code_of;
using test::TestCluster;
using test::TestDatabase;
using test::with_pool;

constexpr Statement kEcho{"echo", "SELECT $1::bigint"};
constexpr Statement kWait{"wait_seconds", "SELECT pg_sleep($1)"};
constexpr Statement kInsert{"insert_t", "INSERT INTO t (id) VALUES ($1)"};
constexpr Statement kKillOthers{"kill_others", R"(
  SELECT count(pg_terminate_backend(pid))
    FROM pg_stat_activity
   WHERE pid <> pg_backend_pid()
     AND datname = current_database())"};

constexpr Statement kSleepers{"count_sleepers", R"(
  SELECT count(*)
    FROM pg_stat_activity
   WHERE wait_event = 'PgSleep'
     AND datname = current_database())"};

constexpr Statement kSessionsOf{"sessions_of", R"(
  SELECT count(*)
    FROM pg_stat_activity
   WHERE application_name = $1
     AND datname = current_database())"};

awaitable<> tally(awaitable<std::string> call, std::map<std::string, int>& counts) {
  const auto code = co_await std::move(call);
  ++counts[code];
}

TEST(pg_pool, serves_many_callers_over_one_connection) {
  TestDatabase db;
  with_pool(db.dsn(), {}, [](Pool& pool) -> awaitable<> {
    std::map<std::string, int> counts;
    TaskGroup callers(pool.executor(), "callers", 1000);
    for (std::int64_t i = 0; i < 1000; ++i) {
      EXPECT_TRUE(callers.spawn(tally(code_of(pool.query(kEcho, i)), counts)));
    }
    co_await callers.stop(20s);
    EXPECT_EQ(counts["ok"], 1000);
  });
}

TEST(pg_pool, may_be_stopped_at_the_moment_of_its_first_connect) {
  TestDatabase db;
  auto options = test::connect_options(db.dsn());
  options.application_name = "stopped early";
  Connector connector(options);
  Metrics metrics;
  with_pool(db.dsn(), {}, [&](Pool& observer) -> awaitable<> {
    for (int i = 0; i < 60; ++i) {
      Pool pool(observer.executor(), connector, {}, metrics);
      pool.start();
      {
        // Both connections open concurrently, so the stop comes at about the time when the shared one opens.
        const auto borrowed = co_await pool.acquire();
      }
      const auto began = std::chrono::steady_clock::now();
      co_await pool.stop(10s);
      EXPECT_LT(std::chrono::steady_clock::now() - began, 5s) << "no batch was in flight to wait for";
      EXPECT_FALSE(pool.connected());
    }
    // Every session must end while the loop still runs, also one whose connect was in flight.
    std::int64_t left = -1;
    const auto deadline = std::chrono::steady_clock::now() + 20s;
    while (left != 0 && std::chrono::steady_clock::now() < deadline) {
      left = (co_await observer.query(kSessionsOf, "stopped early")).one().get<std::int64_t>(0);
    }
    EXPECT_EQ(left, 0);
    if (left != 0) co_await observer.query(kKillOthers);  // the loop ends when these sessions end
  });
}

TEST(pg_pool, refuses_at_once_when_the_queue_is_full) {
  TestDatabase db;
  with_pool(db.dsn(), {.max_in_flight = 1, .queue_limit = 5}, [](Pool& pool) -> awaitable<> {
    co_await pool.query(kEcho, 0);
    std::map<std::string, int> counts;
    TaskGroup callers(pool.executor(), "callers", 20);
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(callers.spawn(tally(code_of(pool.query(kWait, 0.02)), counts)));
    co_await callers.stop(20s);
    // The first caller's prepare and batch fill the pipeline; five callers may wait; the others are refused at once.
    EXPECT_EQ(counts["ok"], 6);
    EXPECT_EQ(counts["database_busy"], 14);
  });
}

TEST(pg_pool, lends_no_more_than_its_limit_and_serves_callers_in_order) {
  TestDatabase db;
  with_pool(db.dsn(), {.exclusive_connections = 2}, [](Pool& pool) -> awaitable<> {
    {
      // Open both connections first, so that the order is that of the queue and not that of two connects.
      const auto first = co_await pool.acquire();
      const auto second = co_await pool.acquire();
    }
    std::vector<int> order;
    std::size_t lent = 0;
    std::size_t most = 0;
    auto borrower = [&](int number) -> awaitable<> {
      auto borrowed = co_await pool.acquire();
      most = std::max(most, ++lent);
      order.push_back(number);
      Batch batch;
      batch.add(kWait, 0.01);
      co_await borrowed->run(batch);
      --lent;
    };
    TaskGroup borrowers(pool.executor(), "borrowers", 10);
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(borrowers.spawn(borrower(i)));
    co_await borrowers.stop(10s);
    EXPECT_EQ(most, 2U);
    EXPECT_EQ(order.size(), 10U);
    EXPECT_TRUE(std::ranges::is_sorted(order));
  });
}

TEST(pg_pool, waiting_for_a_lease_ends_with_the_timeout) {
  TestDatabase db;
  // The timeout also bounds opening the first session, which takes half a second on a machine under load.
  with_pool(db.dsn(), {.exclusive_connections = 1, .acquire_timeout = 3s}, [](Pool& pool) -> awaitable<> {
    const auto held = co_await pool.acquire();
    EXPECT_EQ(co_await code_of(pool.acquire()), "database_busy");
  });
}

TEST(pg_pool, a_cancelled_waiter_leaves_its_place_to_the_next) {
  TestDatabase db;
  with_pool(db.dsn(), {.exclusive_connections = 1}, [](Pool& pool) -> awaitable<> {
    auto wait_for_connection = [](Pool& p) -> awaitable<> { const auto borrowed = co_await p.acquire(); };
    TaskGroup impatient(pool.executor(), "impatient", 1);
    std::map<std::string, int> counts;
    TaskGroup patient(pool.executor(), "patient", 1);
    {
      const auto held = co_await pool.acquire();
      EXPECT_TRUE(impatient.spawn(wait_for_connection(pool)));
      co_await asio::post(pool.executor(), asio::use_awaitable);
      EXPECT_TRUE(patient.spawn(tally(code_of(pool.acquire()), counts)));
      co_await asio::post(pool.executor(), asio::use_awaitable);
      co_await impatient.stop(0ms);
    }
    co_await patient.stop(5s);
    EXPECT_EQ(counts["ok"], 1);
  });
}

TEST(pg_pool, reads_survive_the_loss_of_every_connection) {
  TestDatabase db;
  with_pool(db.dsn(), {}, [&](Pool& pool) -> awaitable<> {
    for (std::int64_t round = 0; round < 5; ++round) {
      co_await pool.query(kEcho, round);
      db.exec(
          "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = "
          "current_database()");
      const auto result = co_await pool.query(kEcho, round);
      EXPECT_EQ(result.one().get<std::int64_t>(0), round);
    }
  });
}

TEST(pg_pool, a_write_whose_answer_is_lost_is_never_sent_again) {
  TestDatabase db;
  db.exec("CREATE TABLE t (id int)");
  with_pool(db.dsn(), {}, [&](Pool& pool) -> awaitable<> {
    co_await pool.query(kEcho, 0);
    Batch batch;
    batch.add(kInsert, 1).add(kWait, 30.0);
    std::map<std::string, int> counts;
    TaskGroup caller(pool.executor(), "caller", 1);
    EXPECT_TRUE(caller.spawn(tally(code_of(pool.run(std::move(batch))), counts)));
    auto assassin = co_await pool.acquire();
    Batch kill;
    kill.add(kKillOthers);
    Batch look;
    look.add(kSleepers);
    while ((co_await assassin->run(look))[0].one().get<int>(0) == 0) {
    }
    co_await assassin->run(kill);
    co_await caller.stop(5s);
    EXPECT_EQ(counts["outcome_unknown"], 1);
    EXPECT_EQ(db.exec("SELECT count(*) FROM t"), "0");
  });
}

TEST(pg_pool, a_restart_under_load_fails_or_serves_but_never_hangs) {
  TestCluster cluster;
  std::map<std::string, int> counts;
  const auto before = std::chrono::steady_clock::now();
  with_pool(cluster.dsn(), {.acquire_timeout = 10s}, [&](Pool& pool) -> awaitable<> {
    bool over = false;
    auto caller = [&](std::int64_t id) -> awaitable<> {
      while (!over) {
        const auto code = co_await code_of(id % 2 == 0 ? pool.query(kEcho, id) : pool.execute(kEcho, id));
        ++counts[code];
      }
    };
    TaskGroup callers(pool.executor(), "callers", 16);
    for (std::int64_t i = 0; i < 16; ++i) EXPECT_TRUE(callers.spawn(caller(i)));
    co_await pool.query(kEcho, 0);
    cluster->kill();
    EXPECT_TRUE(cluster->restart().has_value());
    // The pool reconnects by itself.
    EXPECT_EQ(co_await code_of(pool.query(kEcho, 1)), "ok");
    over = true;
    co_await callers.stop(20s);
  });
  EXPECT_LT(std::chrono::steady_clock::now() - before, 60s);
  EXPECT_GT(counts["ok"], 0);
  for (const auto& [code, count] : counts) {
    EXPECT_TRUE(code == "ok" || code == "outcome_unknown" || code == "database_unavailable" ||
                code == "database_error" || code == "database_busy")
        << code << " " << count;
  }
}

TEST(pg_pool, without_a_server_callers_get_an_error_within_the_timeout) {
  with_pool("postgresql://nobody@127.0.0.1:1/none", {.acquire_timeout = 100ms}, [](Pool& pool) -> awaitable<> {
    EXPECT_FALSE(pool.connected());
    EXPECT_EQ(co_await code_of(pool.query(kEcho, 1)), "database_busy");
    EXPECT_EQ(co_await code_of(pool.acquire()), "database_unavailable");
  });
}

TEST(pg_transaction, commits_what_the_body_did_and_returns_its_value) {
  TestDatabase db;
  db.exec("CREATE TABLE t (id int PRIMARY KEY)");
  with_pool(db.dsn(), {}, [&](Pool& pool) -> awaitable<> {
    const auto value = co_await transaction(pool, [](Transaction& tx) -> awaitable<int> {
      const auto row = co_await tx.query(kEcho, 5);
      co_await tx.query(kInsert, row.one().get<int>(0));
      co_return row.one().get<int>(0) + 1;
    });
    EXPECT_EQ(value, 6);
    EXPECT_EQ(db.exec("SELECT id FROM t"), "5");
  });
}

TEST(pg_transaction, a_body_that_throws_leaves_nothing_and_a_clean_session) {
  TestDatabase db;
  db.exec("CREATE TABLE t (id int PRIMARY KEY)");
  with_pool(db.dsn(), {.exclusive_connections = 1}, [&](Pool& pool) -> awaitable<> {
    auto refuse = [](Transaction& tx) -> awaitable<> {
      co_await tx.query(kInsert, 1);
      throw Exception(conflict("changed_my_mind", "no"));
    };
    EXPECT_EQ(co_await code_of(transaction(pool, refuse)), "changed_my_mind");
    auto violate = [](Transaction& tx) -> awaitable<> {
      co_await tx.query(kInsert, 1);
      co_await tx.query(kInsert, 1);
    };
    EXPECT_EQ(co_await code_of(transaction(pool, violate)), "database_error");
    EXPECT_EQ(db.exec("SELECT count(*) FROM t"), "0");
    auto insert = [](Transaction& tx) -> awaitable<> { co_await tx.query(kInsert, 1); };
    EXPECT_EQ(co_await code_of(transaction(pool, insert)), "ok");
    EXPECT_EQ(db.exec("SELECT count(*) FROM t"), "1");
  });
}

TEST(pg_transaction, a_body_that_swallows_an_error_throws_instead_of_committing) {
  TestDatabase db;
  db.exec("CREATE TABLE t (id int PRIMARY KEY)");
  with_pool(db.dsn(), {}, [&](Pool& pool) -> awaitable<> {
    auto swallow = [](Transaction& tx) -> awaitable<> {
      co_await tx.query(kInsert, 1);
      try {
        co_await tx.query(kInsert, 1);
      } catch (const QueryError& e) {
        EXPECT_EQ(e.sqlstate(), "23505");
      }
    };
    EXPECT_EQ(co_await code_of(transaction(pool, swallow)), "transaction_aborted");
    EXPECT_EQ(db.exec("SELECT count(*) FROM t"), "0");
  });
}

TEST(pg_transaction, a_cancelled_transaction_leaves_nothing_for_the_next_borrower_to_commit) {
  TestDatabase db;
  db.exec("CREATE TABLE t (id int PRIMARY KEY)");
  with_pool(db.dsn(), {.exclusive_connections = 1}, [&](Pool& pool) -> awaitable<> {
    const auto inserted = std::make_shared<Completion<bool>>(pool.executor());
    auto insert_and_dawdle = [&](Transaction& tx) -> awaitable<> {
      co_await tx.query(kInsert, 1);
      inserted->complete(true);
      asio::steady_timer never(pool.executor(), std::chrono::steady_clock::time_point::max());
      co_await never.async_wait(asio::use_awaitable);
    };
    TaskGroup group(pool.executor(), "cancelled", 1);
    EXPECT_TRUE(group.spawn(transaction(pool, insert_and_dawdle)));
    EXPECT_TRUE(co_await inserted->wait(std::chrono::steady_clock::now() + 10s));
    co_await group.stop(0ms);
    auto insert_another = [](Transaction& tx) -> awaitable<> { co_await tx.query(kInsert, 2); };
    EXPECT_EQ(co_await code_of(transaction(pool, insert_another)), "ok");
    EXPECT_EQ(db.exec("SELECT string_agg(id::text, ',') FROM t"), "2");
  });
}

TEST(pg_transaction, timeouts_of_the_first_batch_and_the_isolation_hold_for_the_transaction) {
  constexpr Statement kSettings{"show_settings", R"(
    SELECT current_setting('lock_timeout'), current_setting('transaction_isolation'))"};
  TestDatabase db;
  with_pool(db.dsn(), {}, [&](Pool& pool) -> awaitable<> {
    auto body = [&](Transaction& tx) -> awaitable<> {
      Batch batch;
      batch.add(kSettings).lock_timeout(1234ms);
      const auto results = co_await tx.run(std::move(batch));
      EXPECT_EQ(results.size(), 1U);
      EXPECT_EQ(results[0].one().get<std::string>(0), "1234ms");
      EXPECT_EQ(results[0].one().get<std::string>(1), "serializable");
    };
    co_await transaction(pool, body, Isolation::kSerializable);
    EXPECT_EQ((co_await pool.query(kSettings)).one().get<std::string>(0), "0");
  });
}

TEST(pg_transaction, serialization_failures_are_retried_until_all_commit) {
  constexpr Statement kRead{"read_counter", "SELECT value FROM counter"};
  constexpr Statement kWrite{"write_counter", "UPDATE counter SET value = $1"};
  TestDatabase db;
  db.exec("CREATE TABLE counter (value int); INSERT INTO counter VALUES (0)");
  with_pool(db.dsn(), {.exclusive_connections = 4, .max_attempts = 100}, [&](Pool& pool) -> awaitable<> {
    auto add_one = [&](Transaction& tx) -> awaitable<> {
      const auto row = co_await tx.query(kRead);
      const auto next = row.one().get<int>(0) + 1;
      co_await tx.query(kWrite, next);
    };
    std::map<std::string, int> counts;
    TaskGroup callers(pool.executor(), "callers", 20);
    for (int i = 0; i < 20; ++i) {
      EXPECT_TRUE(callers.spawn(tally(code_of(transaction(pool, add_one, Isolation::kSerializable)), counts)));
    }
    co_await callers.stop(30s);
    EXPECT_EQ(counts["ok"], 20);
    EXPECT_EQ(db.exec("SELECT value FROM counter"), "20");
  });
}

TEST(pg_transaction, a_batch_that_deadlocks_is_retried) {
  constexpr Statement kUpdate{"update_t", "UPDATE t SET n = n + 1 WHERE id = $1"};
  TestDatabase db;
  db.exec("CREATE TABLE t (id int PRIMARY KEY, n int DEFAULT 0); INSERT INTO t VALUES (1), (2)");
  db.exec("ALTER DATABASE " + db.name() + " SET deadlock_timeout = '20ms'");
  with_pool(db.dsn(), {.shared_connections = 2, .max_in_flight = 2, .max_attempts = 50},
            [&](Pool& pool) -> awaitable<> {
              std::map<std::string, int> counts;
              TaskGroup callers(pool.executor(), "callers", 40);
              for (int i = 0; i < 40; ++i) {
                Batch batch;
                batch.add(kUpdate, 1 + i % 2).add(kWait, 0.005).add(kUpdate, 2 - i % 2);
                EXPECT_TRUE(callers.spawn(tally(code_of(pool.run(std::move(batch))), counts)));
              }
              co_await callers.stop(30s);
              EXPECT_EQ(counts["ok"], 40);
              EXPECT_EQ(db.exec("SELECT min(n) FROM t"), "40");
            });
}

}  // namespace
}  // namespace fencepost::pg

// The database layer with a bad network between it and PostgreSQL.
#include <gtest/gtest.h>

#include "pg/error.hpp"
#include "pg/listener.hpp"
#include "pg/pool.hpp"
#include "pg/transaction.hpp"
#include "tests/support/postgres.hpp"
#include "tests/support/tcp_proxy.hpp"
#include "tests/support/with_pool.hpp"

namespace fencepost::pg {
namespace {

using namespace std::chrono_literals;
using test::code_of;
using test::Direction;
using test::TcpProxy;
using test::TestDatabase;

constexpr Statement kEcho{"echo", "SELECT $1::bigint"};
constexpr Statement kInsert{"insert_t", "INSERT INTO t (batch, item) VALUES ($1, $2)"};

struct Net {
  TestDatabase db;
  TcpProxy proxy{test::server_socket()};
  std::string dsn = test::through_port(db.dsn(), proxy.port());
};

Batch insert_batch(std::int64_t number) {
  Batch batch;
  for (std::int64_t item = 0; item < 20; ++item) batch.add(kInsert, number, item);
  return batch;
}

TEST(pg_faults, a_connection_loss_at_any_point_leaves_each_batch_whole_or_absent) {
  Net net;
  net.db.exec("CREATE TABLE t (batch bigint, item bigint)");
  std::map<std::int64_t, std::string> outcomes;
  test::with_pool(net.dsn, {.acquire_timeout = 10s}, [&](Pool& pool) -> awaitable<> {
    std::int64_t number = 0;
    for (std::size_t offset = 1; offset < 6000; offset += 271) {
      for (const auto direction : {Direction::kToServer, Direction::kToClient}) {
        co_await pool.query(kEcho, 0);
        net.proxy.cut_after(direction, offset);
        for (int i = 0; i < 3; ++i) {
          const auto mine = ++number;
          outcomes[mine] = co_await code_of(pool.run(insert_batch(mine)));
        }
      }
    }
    co_await pool.query(kEcho, 0);
  });
  int unknown = 0;
  for (const auto& [number, outcome] : outcomes) {
    const auto rows = net.db.exec("SELECT count(*) FROM t WHERE batch = " + std::to_string(number));
    if (outcome == "ok") EXPECT_EQ(rows, "20") << number;
    if (outcome == "database_unavailable") EXPECT_EQ(rows, "0") << number;
    if (outcome == "outcome_unknown") EXPECT_TRUE(rows == "0" || rows == "20") << number << " has " << rows;
    unknown += outcome == "outcome_unknown" ? 1 : 0;
    EXPECT_TRUE(outcome == "ok" || outcome == "database_unavailable" || outcome == "outcome_unknown") << outcome;
  }
  EXPECT_GT(unknown, 0) << "no cut came during a batch, so the test did not cover one";
}

TEST(pg_faults, a_batch_of_a_hundred_costs_one_round_trip) {
  Net net;
  test::with_pool(net.dsn, {}, [&](Pool& pool) -> awaitable<> {
    co_await pool.query(kEcho, 0);
    net.proxy.delay(100ms, 100ms);
    Batch batch;
    for (int i = 0; i < 100; ++i) batch.add(kEcho, i);
    const auto start = std::chrono::steady_clock::now();
    co_await pool.run(std::move(batch));
    const auto took = std::chrono::steady_clock::now() - start;
    EXPECT_GE(took, 200ms);
    EXPECT_LT(took, 390ms);  // two round trips would be 400
    net.proxy.pass();
  });
}

TEST(pg_faults, a_connection_to_a_silent_server_is_closed_and_replaced) {
  Net net;
  Metrics metrics;
  auto options = test::connect_options(net.dsn);
  options.statement_timeout = 100ms;
  Connector connector(options);
  auto scenario = [&](Pool& pool) -> awaitable<> {
    // A large batch may take long; later batches may not.
    Batch big;
    for (int i = 0; i < 1000; ++i) big.add(kEcho, i);
    co_await pool.run(std::move(big));
    net.proxy.half_open();
    // First with the caller's own timeout, then with only the connection's.
    Batch batch;
    batch.add(kEcho, 1);
    EXPECT_EQ(co_await code_of(pool.run(batch, {.access = Access::kWrite, .timeout = 50ms})), "outcome_unknown");
    EXPECT_EQ(co_await code_of(pool.run(batch, {.access = Access::kWrite})), "outcome_unknown");
    net.proxy.pass();
    EXPECT_EQ(co_await code_of(pool.query(kEcho, 2)), "ok");
  };
  run_blocking(test::run_with_pool(connector, {.acquire_timeout = 20s}, metrics, scenario));
}

TEST(pg_faults, a_server_that_accepts_and_never_answers_costs_no_more_than_the_timeout) {
  Net net;
  net.proxy.blackhole();
  Metrics metrics;
  auto options = test::connect_options(net.dsn);
  options.connect_timeout = 1s;
  Connector connector(options);
  auto scenario = [&](Pool& pool) -> awaitable<> {
    EXPECT_EQ(co_await code_of(pool.query(kEcho, 0)), "database_busy");
    EXPECT_EQ(co_await code_of(pool.acquire()), "database_unavailable");
    net.proxy.pass();
    EXPECT_EQ(co_await code_of(pool.acquire()), "ok");
  };
  const auto start = std::chrono::steady_clock::now();
  run_blocking(test::run_with_pool(connector, {.acquire_timeout = 300ms}, metrics, scenario));
  EXPECT_LT(std::chrono::steady_clock::now() - start, 20s);
}

TEST(pg_faults, cancelled_callers_and_lost_connections_leave_the_pool_usable) {
  Net net;
  test::with_pool(net.dsn, {.exclusive_connections = 2, .acquire_timeout = 10s}, [&](Pool& pool) -> awaitable<> {
    auto hurried = [](Pool& p, std::int64_t id) -> awaitable<> { co_await p.query(kEcho, id); };
    auto dealing = [](Pool& p, std::int64_t id) -> awaitable<> {
      co_await transaction(p, [id](Transaction& tx) -> awaitable<> {
        co_await tx.query(kEcho, id);
        co_await tx.query(kEcho, id);
      });
    };
    for (int round = 0; round < 20; ++round) {
      TaskGroup group(pool.executor(), "callers", 30);
      for (std::int64_t i = 0; i < 20; ++i) EXPECT_TRUE(group.spawn(hurried(pool, i)));
      for (std::int64_t i = 0; i < 6; ++i) EXPECT_TRUE(group.spawn(dealing(pool, i)));
      for (int turn = 0; turn < round; ++turn) co_await asio::post(pool.executor(), asio::use_awaitable);
      if (round % 3 == 0) net.proxy.cut();
      co_await group.stop(0ms);
    }
    EXPECT_EQ(co_await code_of(pool.query(kEcho, 1)), "ok");
    EXPECT_EQ(co_await code_of(pool.acquire()), "ok");
  });
}

TEST(pg_faults, a_listener_without_an_answer_retries) {
  Net net;
  Metrics metrics;
  auto options = test::connect_options(net.dsn);
  Connector connector(options);
  auto scenario = [&]() -> awaitable<> {
    const auto executor = co_await this_executor();
    const auto swept = std::make_shared<Completion<bool>>(executor);
    Listener listener(executor, connector, {.answer_timeout = 300ms}, metrics);
    listener.subscribe("work", {}, [&] { swept->complete(true); });
    // Slow enough that the session opens within its timeout, but the answer to LISTEN exceeds its timeout.
    net.proxy.delay(0ms, 400ms);
    listener.start();
    EXPECT_FALSE(co_await swept->wait(std::chrono::steady_clock::now() + 2s));
    net.proxy.pass();
    EXPECT_TRUE(co_await swept->wait(std::chrono::steady_clock::now() + 30s));
    co_await listener.stop();
  };
  run_blocking(scenario());
}

TEST(pg_faults, a_listener_notices_silence_and_sweeps_after_it_reconnects) {
  Net net;
  Metrics metrics;
  Connector connector(test::connect_options(net.dsn));
  auto scenario = [&]() -> awaitable<> {
    const auto executor = co_await this_executor();
    const auto swept = std::make_shared<asio::steady_timer>(executor);
    int sweeps = 0;
    Listener listener(executor, connector, {.heartbeat = 50ms, .answer_timeout = 300ms}, metrics);
    listener.subscribe("work", {}, [&] {
      ++sweeps;
      swept->cancel();
    });
    auto until = [&](int wanted) -> awaitable<bool> {
      const auto deadline = std::chrono::steady_clock::now() + 20s;
      while (sweeps < wanted && std::chrono::steady_clock::now() < deadline) {
        swept->expires_at(deadline);
        co_await swept->async_wait(use_tuple);
      }
      co_return sweeps >= wanted;
    };
    listener.start();
    EXPECT_TRUE(co_await until(1));
    net.proxy.half_open();
    while (listener.mode() == Listener::Mode::kListening) {
      swept->expires_after(5ms);
      co_await swept->async_wait(use_tuple);
    }
    net.proxy.pass();
    EXPECT_TRUE(co_await until(2));
    co_await listener.stop();
  };
  run_blocking(scenario());
}

}  // namespace
}  // namespace fencepost::pg

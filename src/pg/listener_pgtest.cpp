#include <gtest/gtest.h>

#include "pg/listener.hpp"
#include "tests/support/postgres.hpp"
#include "tests/support/with_pool.hpp"

namespace fencepost::pg {
namespace {

using namespace std::chrono_literals;
using test::TestDatabase;

// A subscriber as workers write them: a notification is a hint, the table is the truth.
struct Heard {
  explicit Heard(Executor executor) : changed(executor) {}

  asio::steady_timer changed;
  std::vector<std::string> payloads;
  int sweeps = 0;

  // Waits until `met` holds; false when `limit` passes first.
  awaitable<bool> until(std::function<bool()> met, std::chrono::milliseconds limit = 10s) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    while (!met() && std::chrono::steady_clock::now() < deadline) {
      changed.expires_at(deadline);
      co_await changed.async_wait(use_tuple);
    }
    co_return met();
  }
};

template <class Body>
void with_listener(const std::string& dsn, Listener::Options options, Body body) {
  Metrics metrics;
  Connector connector(test::connect_options(dsn));
  auto scenario = [&]() -> awaitable<> {
    const auto executor = co_await this_executor();
    Heard heard(executor);
    Listener listener(executor, connector, options, metrics);
    listener.subscribe(
        "Odd \"channel\"",
        [&](std::string_view payload) {
          heard.payloads.emplace_back(payload);
          heard.changed.cancel();
        },
        [&] {
          ++heard.sweeps;
          heard.changed.cancel();
        });
    listener.start();
    co_await body(listener, heard);
    co_await listener.stop();
  };
  run_blocking(scenario());
}

void notify(const TestDatabase& db, const std::string& payload) {
  db.exec("SELECT pg_notify('Odd \"channel\"', '" + payload + "')");
}

void cut_everybody(const TestDatabase& db) {
  db.exec(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = "
      "current_database()");
}

TEST(pg_listener, sweeps_first_then_hears) {
  TestDatabase db;
  with_listener(db.dsn(), {}, [&](Listener& listener, Heard& heard) -> awaitable<> {
    EXPECT_TRUE(co_await heard.until([&] { return heard.sweeps == 1; }));
    EXPECT_EQ(listener.mode(), Listener::Mode::kListening);
    notify(db, "one");
    EXPECT_TRUE(co_await heard.until([&] { return heard.payloads.size() == 1; }));
    EXPECT_EQ(heard.payloads[0], "one");
    EXPECT_EQ(db.exec("SELECT application_name FROM pg_stat_activity WHERE datname = current_database() AND "
                      "application_name LIKE 'fencepost hears %'"),
              "fencepost hears Odd \"channel\"");
  });
}

TEST(pg_listener, after_a_cut_it_sweeps_so_that_nothing_is_missed) {
  TestDatabase db;
  with_listener(db.dsn(), {}, [&](Listener&, Heard& heard) -> awaitable<> {
    for (int round = 1; round <= 3; ++round) {
      EXPECT_TRUE(co_await heard.until([&] { return heard.sweeps == round; }));
      cut_everybody(db);
      notify(db, "lost on the way");
    }
    EXPECT_TRUE(co_await heard.until([&] { return heard.sweeps == 4; }));
    const auto before = heard.payloads.size();
    notify(db, "heard again");
    EXPECT_TRUE(co_await heard.until([&] { return heard.payloads.size() > before; }));
    EXPECT_EQ(heard.payloads.back(), "heard again");
  });
}

TEST(pg_listener, sweeps_on_a_slow_beat_although_nothing_happened) {
  TestDatabase db;
  with_listener(db.dsn(), {.sweep_interval = 20ms}, [&](Listener&, Heard& heard) -> awaitable<> {
    EXPECT_TRUE(co_await heard.until([&] { return heard.sweeps >= 5; }));
  });
}

TEST(pg_listener, told_to_poll_it_only_sweeps) {
  with_listener("postgresql://nobody@127.0.0.1:1/none", {.poll_only = true, .poll_interval = 10ms},
                [&](Listener& listener, Heard& heard) -> awaitable<> {
                  EXPECT_TRUE(co_await heard.until([&] { return heard.sweeps >= 3; }));
                  EXPECT_EQ(listener.mode(), Listener::Mode::kPolling);
                });
}

}  // namespace
}  // namespace fencepost::pg

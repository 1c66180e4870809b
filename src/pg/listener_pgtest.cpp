#include <fstream>

#include <gtest/gtest.h>

#include "pg/listener.hpp"
#include "runtime/child_process.hpp"
#include "runtime/read_file.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/fencepost.hpp"
#include "tests/support/postgres.hpp"
#include "tests/support/with_pool.hpp"

namespace fencepost::pg {
namespace {

using namespace std::chrono_literals;
using test::TestDatabase;

// A subscriber like those of the workers: a notification is only a hint to look at the table.
struct Heard {
  explicit Heard(Executor executor) : changed(executor) {}

  asio::steady_timer changed;
  std::vector<std::string> payloads;
  int sweeps = 0;

  // Waits until `met` holds; returns false when `limit` passes first.
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

TEST(pg_listener, sweeps_first_then_receives_notifications) {
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

TEST(pg_listener, sweeps_after_a_connection_loss_so_that_nothing_is_missed) {
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

TEST(pg_listener, sweeps_at_its_interval_without_notifications) {
  TestDatabase db;
  with_listener(db.dsn(), {.sweep_interval = 20ms}, [&](Listener&, Heard& heard) -> awaitable<> {
    EXPECT_TRUE(co_await heard.until([&] { return heard.sweeps >= 5; }));
  });
}

TEST(pg_listener, with_poll_only_it_only_sweeps) {
  with_listener("postgresql://nobody@127.0.0.1:1/none", {.poll_only = true, .poll_interval = 10ms},
                [&](Listener& listener, Heard& heard) -> awaitable<> {
                  EXPECT_TRUE(co_await heard.until([&] { return heard.sweeps >= 3; }));
                  EXPECT_EQ(listener.mode(), Listener::Mode::kPolling);
                });
}

// PgBouncer in transaction mode: a client's LISTEN stays on the server connection that ran it.
class Pooler {
 public:
  Pooler() {
    const auto socket = test::server_socket();
    std::ofstream(dir_ / "pgbouncer.ini") << fmt::format(
        "[databases]\n"
        "* = host={} port={} user=fencepost\n"
        "[pgbouncer]\n"
        "pool_mode = transaction\n"
        "listen_addr = 127.0.0.1\n"
        "listen_port = {}\n"
        "unix_socket_dir =\n"
        "auth_type = any\n"
        "ignore_startup_parameters = options,extra_float_digits\n",
        socket.parent_path().string(), pg::kClusterPort, port_);
    // PgBouncer refuses to run as root, and the server accepts only its own user.
    auto child = ChildProcess::start({.argv = {"/usr/sbin/pgbouncer", (dir_ / "pgbouncer.ini").string()},
                                      .out = Output::file(log_),
                                      .err = Output::same_as_out(),
                                      .run_as = ::geteuid() == 0 ? Credentials::of_user("postgres") : std::nullopt});
    if (!child) throw Exception(child.error());
    child_ = std::move(*child);
  }

  std::string dsn(const TestDatabase& db) const { return test::through_port(db.dsn(), port_); }
  std::string log() const { return read_file(log_); }

 private:
  test::TempDir dir_{"pgbouncer"};
  std::filesystem::path log_ = dir_ / "log";
  std::uint16_t port_ = test::free_port();
  std::optional<ChildProcess> child_;
};

TEST(pg_listener, behind_a_pooler_that_loses_listen_it_notices_and_polls) {
  TestDatabase db;
  const Pooler pooler;
  const auto dsn = pooler.dsn(db);
  ASSERT_TRUE(test::eventually([&] {
    try {
      return test::exec_sql(dsn, "SELECT 1") == "1";
    } catch (const Exception&) {
      return false;
    }
  })) << pooler.log();
  with_listener(dsn, {.answer_timeout = 500ms, .poll_interval = 10ms},
                [&](Listener& listener, Heard& heard) -> awaitable<> {
                  EXPECT_TRUE(co_await heard.until([&] { return heard.sweeps >= 3; }));
                  EXPECT_EQ(listener.mode(), Listener::Mode::kPolling) << pooler.log();
                });
}

}  // namespace
}  // namespace fencepost::pg

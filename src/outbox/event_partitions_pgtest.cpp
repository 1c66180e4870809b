#include <atomic>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "outbox/event_log_keeper.hpp"
#include "outbox/event_partitions.hpp"
#include "pg/error.hpp"
#include "runtime/runtime.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/postgres.hpp"
#include "tests/support/with_pool.hpp"

namespace fencepost::outbox {
namespace {

using namespace std::chrono_literals;
using State = EventPartition::State;

constexpr auto kYear = std::chrono::days(365);
constexpr auto kOld = "event_2001_02";

// A session whose statements fail with their message.
class Session {
 public:
  explicit Session(const std::string& dsn) : connection_(PQconnectdb(dsn.c_str())) {}

  void run(const std::string& sql) {
    const pg::ResultSet rows(PQexec(connection_.get(), sql.c_str()));
    const std::string failure = PQerrorMessage(connection_.get());
    if (!failure.empty()) throw Exception(internal("test_session", failure));
  }
  // Reads every partition in a transaction that stays open.
  void begin_to_read() { run("BEGIN; SELECT count(*) FROM event"); }

 private:
  pg::PgConn connection_;
};

class EventPartitions : public ::testing::Test {
 protected:
  EventPartitionReport add_months(std::chrono::milliseconds patience = 20s) {
    return add_months_as(db_.dsn(), patience);
  }
  EventPartitionReport add_months_as(const std::string& dsn, std::chrono::milliseconds patience = 20s) {
    pg::Connector connector(test::connect_options(dsn));
    return run_blocking(add_event_months(connector, {.retention = kYear, .patience = patience}));
  }
  EventPartitionReport remove_expired(std::chrono::milliseconds retention = kYear,
                                      std::chrono::milliseconds patience = 20s) {
    pg::Connector connector(test::connect_options(db_.dsn()));
    return run_blocking(remove_expired_events(connector, {.retention = retention, .patience = patience}));
  }
  std::vector<EventPartition> partitions() {
    std::vector<EventPartition> out;
    test::with_pool(db_.dsn(), {},
                    [&](pg::Pool& pool) -> awaitable<> { out = co_await list_event_partitions(pool, kYear); });
    return out;
  }
  std::optional<TimePoint> since() {
    std::optional<TimePoint> out;
    test::with_pool(db_.dsn(), {}, [&](pg::Pool& pool) -> awaitable<> { out = co_await event_log_since(pool); });
    return out;
  }

  // The name of the partition of the month that is `months` from now.
  std::string name_of(int months) {
    return db_.exec(
        fmt::format("SELECT 'event_' || to_char(date_trunc('month', now() AT TIME ZONE 'UTC') + {} * interval '1 "
                    "month', 'YYYY_MM')",
                    months));
  }
  void drop_month(int months) { db_.exec("DROP TABLE " + name_of(months)); }
  bool exists(const std::string& table) {
    return db_.exec(fmt::format("SELECT to_regclass('{}') IS NOT NULL", table)) == "t";
  }
  // A month with a row, long expired.
  void add_old_month() {
    db_.exec(
        "SELECT event_add_month('2001-02-28 23:59:59Z');"
        "INSERT INTO event (at, subject, type, data) VALUES ('2001-02-28 23:59:59Z', 'old', 'T', '{}')");
  }

  test::TestDatabase db_{test::Template::kMigrated};
};

constexpr auto kInsert = "INSERT INTO event (subject, type, data) VALUES ('a', 'T', '{}')";

TEST_F(EventPartitions, missing_months_are_added) {
  drop_month(0);
  drop_month(2);
  drop_month(3);
  EXPECT_THROW(db_.exec(kInsert), Exception);
  const auto report = add_months();
  EXPECT_TRUE(report.has_current_month);
  EXPECT_EQ(report.months_ahead, 3);
  EXPECT_EQ(report.expired, 0U);
  for (int month = 0; month <= 3; ++month) EXPECT_TRUE(exists(name_of(month))) << month;
  EXPECT_FALSE(exists(name_of(4)));
  db_.exec(kInsert);
  EXPECT_EQ(db_.exec("SELECT tableoid::regclass FROM event"), name_of(0));
}

TEST_F(EventPartitions, months_have_the_indexes_and_constraints_of_the_log) {
  drop_month(3);
  add_months();
  const auto indexes = [&](int month) {
    return db_.exec(
        fmt::format("SELECT string_agg(i.inhparent::regclass::text, ' ' ORDER BY 1) FROM pg_index AS x "
                    "JOIN pg_inherits AS i ON i.inhrelid = x.indexrelid WHERE x.indrelid = '{}'::regclass",
                    name_of(month)));
  };
  EXPECT_EQ(indexes(3), "event_pkey idx_event_subject");
  EXPECT_THROW(db_.exec("INSERT INTO event (at, subject) VALUES (now() + interval '3 months', 'a')"), Exception);
}

TEST_F(EventPartitions, ten_nodes_may_add_months_at_once) {
  for (int month = 0; month <= 3; ++month) drop_month(month);
  std::atomic<int> complete = 0;
  {
    std::vector<std::jthread> nodes;
    nodes.reserve(10);
    for (int i = 0; i < 10; ++i) {
      nodes.emplace_back([&] { EXPECT_NO_THROW(complete += add_months().months_ahead == 3 ? 1 : 0); });
    }
  }
  EXPECT_EQ(complete, 10);
  EXPECT_EQ(partitions().size(), 4U);
}

TEST_F(EventPartitions, a_writer_whose_transaction_is_open_does_not_delay_a_new_month) {
  drop_month(3);
  Session writer(db_.dsn());
  writer.run(fmt::format("BEGIN; {}", kInsert));
  EXPECT_EQ(add_months(2s).months_ahead, 3);
  writer.run(fmt::format("{}; COMMIT", kInsert));
  EXPECT_EQ(db_.exec("SELECT count(*) FROM event"), "2");
}

TEST_F(EventPartitions, a_row_of_a_month_that_does_not_exist_is_refused) {
  try {
    db_.exec("INSERT INTO event (at, subject, type, data) VALUES ('2001-02-03Z', 'a', 'T', '{}')");
    ADD_FAILURE() << "accepted";
  } catch (const Exception& refused) {
    EXPECT_NE(refused.error().message.find("no partition of relation \"event\" found for row"), std::string::npos)
        << refused.error().message;
  }
}

TEST_F(EventPartitions, a_gap_ends_the_months_ahead) {
  drop_month(2);
  const auto report = report_on(partitions());
  EXPECT_TRUE(report.has_current_month);
  EXPECT_EQ(report.months_ahead, 1);
}

TEST_F(EventPartitions, the_log_is_complete_since_its_oldest_month) {
  add_old_month();
  EXPECT_EQ(since(), TimePoint(std::chrono::sys_days{std::chrono::year{2001} / 2 / 1}));
  EXPECT_EQ(report_on(partitions()).since, since());
  db_.exec(
      "DO $$ DECLARE p regclass; BEGIN FOR p IN SELECT inhrelid FROM pg_inherits WHERE inhparent = "
      "'event'::regclass LOOP EXECUTE 'DROP TABLE ' || p; END LOOP; END $$");
  EXPECT_EQ(since(), std::nullopt);
  EXPECT_EQ(report_on(partitions()).since, std::nullopt);
}

TEST_F(EventPartitions, an_expired_month_is_removed_while_a_writer_keeps_writing) {
  add_old_month();
  std::atomic<int> written = 0;
  std::atomic<bool> stop = false;
  std::string failure;
  std::jthread writer([&] {
    try {
      Session session(db_.dsn());
      session.run("SET lock_timeout = '2s'");
      while (!stop) {
        session.run(kInsert);
        ++written;
      }
    } catch (const Exception& e) {
      failure = e.error().message;
    }
  });
  EXPECT_TRUE(test::eventually([&] { return written > 10; }));
  EXPECT_EQ(remove_expired().expired, 0U);
  const int then = written;
  EXPECT_TRUE(test::eventually([&] { return written > then + 10; })) << failure;
  stop = true;
  writer.join();
  EXPECT_EQ(failure, "");
  EXPECT_FALSE(exists(kOld));
  EXPECT_EQ(db_.exec("SELECT count(*) FROM event"), std::to_string(written));
}

TEST_F(EventPartitions, a_month_is_expired_when_its_last_moment_is_older_than_the_retention) {
  const auto name = name_of(-3);
  db_.exec("SELECT event_add_month(date_trunc('month', now(), 'UTC') - interval '3 months' + interval '1 day')");
  const auto age_ms = std::stoll(db_.exec(
      "SELECT (extract(epoch FROM now() - (date_trunc('month', now() AT TIME ZONE 'UTC') - interval '2 months') "
      "AT TIME ZONE 'UTC') * 1000)::bigint"));
  remove_expired(std::chrono::milliseconds(age_ms) + 1h);
  EXPECT_TRUE(exists(name));
  remove_expired(std::chrono::milliseconds(age_ms) - 1h);
  EXPECT_FALSE(exists(name));
}

TEST_F(EventPartitions, a_transaction_that_reads_the_log_delays_the_removal_and_nothing_else) {
  add_old_month();
  Session reader(db_.dsn());
  reader.begin_to_read();
  EXPECT_EQ(remove_expired(kYear, 300ms).expired, 1U);
  EXPECT_EQ(partitions().front().state, State::kDetaching);
  EXPECT_NE(since(), partitions().front().begins) << "its rows are no longer visible";
  db_.exec(fmt::format("SET lock_timeout = '2s'; {}", kInsert));
  EXPECT_EQ(add_months(2s).months_ahead, 3);
  reader.run("SELECT count(*) FROM event; COMMIT");
  EXPECT_EQ(remove_expired().expired, 0U);
  EXPECT_FALSE(exists(kOld));
}

TEST_F(EventPartitions, a_detach_that_was_interrupted_is_completed_before_the_next_one) {
  db_.exec("SELECT event_add_month('2001-01-15Z')");
  add_old_month();
  Session reader(db_.dsn()), killed(db_.dsn());
  reader.begin_to_read();
  killed.run("SET statement_timeout = '300ms'");
  EXPECT_THROW(killed.run(fmt::format("ALTER TABLE event DETACH PARTITION {} CONCURRENTLY", kOld)), Exception);
  reader.run("COMMIT");
  ASSERT_EQ(partitions().at(1).state, State::kDetaching);
  // PostgreSQL refuses to detach another partition until this one is finished.
  EXPECT_THROW(db_.exec("ALTER TABLE event DETACH PARTITION event_2001_01 CONCURRENTLY"), Exception);
  EXPECT_EQ(remove_expired().expired, 0U);
  EXPECT_FALSE(exists(kOld));
  EXPECT_FALSE(exists("event_2001_01"));
}

TEST_F(EventPartitions, a_detached_month_is_dropped_when_it_is_expired) {
  add_old_month();
  db_.exec(fmt::format("ALTER TABLE event DETACH PARTITION {}", kOld));
  const auto kept = name_of(3);
  db_.exec(fmt::format("ALTER TABLE event DETACH PARTITION {}", kept));
  EXPECT_EQ(report_on(partitions()).expired, 1U);
  EXPECT_EQ(remove_expired().expired, 0U);
  EXPECT_FALSE(exists(kOld));
  EXPECT_TRUE(exists(kept)) << "an operator detached a month that is not expired";
}

TEST_F(EventPartitions, a_table_of_another_program_with_such_a_name_is_left_alone) {
  db_.exec("CREATE TABLE event_2001_02 (id int PRIMARY KEY CHECK (id > 0))");
  EXPECT_EQ(remove_expired().expired, 0U);
  EXPECT_TRUE(exists("event_2001_02"));
}

TEST_F(EventPartitions, a_month_that_an_operator_began_to_detach_is_not_dropped_before_it_expires) {
  const auto name = name_of(3);
  Session reader(db_.dsn()), killed(db_.dsn());
  reader.begin_to_read();
  killed.run("SET statement_timeout = '300ms'");
  EXPECT_THROW(killed.run(fmt::format("ALTER TABLE event DETACH PARTITION {} CONCURRENTLY", name)), Exception);
  reader.run("COMMIT");
  remove_expired();
  EXPECT_TRUE(exists(name));
  EXPECT_EQ(partitions().back().state, State::kDetached);
}

// Each round is a race: mostly all nodes see the month, and one of them takes each step first.
TEST_F(EventPartitions, nodes_that_remove_the_same_month_at_once_do_not_fail) {
  for (int round = 0; round < 5; ++round) {
    add_old_month();
    {
      std::vector<std::jthread> nodes;
      nodes.reserve(6);
      for (int i = 0; i < 6; ++i) nodes.emplace_back([&] { EXPECT_NO_THROW(remove_expired()); });
    }
    EXPECT_EQ(remove_expired().expired, 0U);
    EXPECT_FALSE(exists(kOld));
  }
}

// A role of one test.
class EventPartitionsByRole : public EventPartitions {
 protected:
  EventPartitionsByRole() { db_.exec("CREATE ROLE " + role_); }
  ~EventPartitionsByRole() override { db_.exec(fmt::format("DROP OWNED BY {0}; DROP ROLE {0}", role_)); }
  std::string role_dsn() const { return db_.dsn() + "&options=-crole%3D" + role_; }

  const std::string role_ = "role_of_" + db_.name();
};

TEST_F(EventPartitionsByRole, a_role_that_does_not_own_the_log_changes_nothing_and_reports) {
  drop_month(3);
  add_old_month();
  const auto report = add_months_as(role_dsn());
  EXPECT_EQ(report.months_ahead, 2);
  EXPECT_EQ(report.expired, 1U);
  pg::Connector connector(test::connect_options(role_dsn()));
  EXPECT_EQ(run_blocking(remove_expired_events(connector, {.retention = kYear})).expired, 1U);
  EXPECT_TRUE(exists(kOld));
}

// Otherwise another member of the owner's role could not remove it.
TEST_F(EventPartitionsByRole, a_month_that_a_member_of_the_owners_role_adds_belongs_to_the_owner) {
  const auto owner = "owner_of_" + db_.name();
  db_.exec(
      fmt::format("CREATE ROLE {0}; GRANT CREATE ON SCHEMA public TO {0}, {1}; GRANT {0} TO {1};"
                  "ALTER TABLE event OWNER TO {0}",
                  owner, role_));
  drop_month(3);
  EXPECT_EQ(add_months_as(role_dsn()).months_ahead, 3);
  EXPECT_EQ(db_.exec(fmt::format("SELECT relowner::regrole FROM pg_class WHERE oid = '{}'::regclass", name_of(3))),
            owner);
  db_.exec(fmt::format("DROP OWNED BY {0} CASCADE; DROP ROLE {0}", owner));
}

// A keeper on a loop with a database, as a node has it.
struct KeptLog {
  KeptLog(const std::string& dsn, std::chrono::milliseconds retention)
      : database(runtime, test::connect_options(dsn), {}, metrics),
        keeper(runtime.executor(0), database, retention, metrics) {
    runtime.start();
    runtime.run_on(0, database.start());
  }
  ~KeptLog() {
    runtime.run_on(0, keeper.stop());
    runtime.run_on(0, database.stop(1s));
    runtime.stop();
  }
  bool shows(const std::string& line) { return metrics.scrape().find(line + "\n") != std::string::npos; }

  Runtime runtime{{.threads = 1}};
  Metrics metrics;
  pg::Database database;
  EventLogKeeper keeper;
};

awaitable<> start(EventLogKeeper& keeper) {
  keeper.start();
  co_return;
}

TEST_F(EventPartitions, the_keeper_adds_and_removes_months_when_it_starts) {
  drop_month(3);
  add_old_month();
  KeptLog log(db_.dsn(), kYear);
  EXPECT_TRUE(log.runtime.run_on(0, log.keeper.prepare()));
  EXPECT_TRUE(log.shows("fencepost_event_partitions_ahead 3"));
  EXPECT_TRUE(log.shows("fencepost_event_partitions_expired 1"));
  log.runtime.run_on(0, start(log.keeper));
  EXPECT_TRUE(test::eventually([&] { return log.shows("fencepost_event_partitions_expired 0"); }));
  EXPECT_FALSE(exists(kOld));
}

TEST_F(EventPartitionsByRole, a_node_that_cannot_add_the_current_month_does_not_start) {
  drop_month(0);
  KeptLog log(role_dsn(), kYear);
  const auto prepared = log.runtime.run_on(0, log.keeper.prepare());
  ASSERT_FALSE(prepared);
  EXPECT_EQ(prepared.error().code, "no_event_partition");
}

// An owner that may not create tables any more.
TEST_F(EventPartitionsByRole, a_node_starts_while_the_current_month_is_there) {
  db_.exec(fmt::format("REVOKE CREATE ON SCHEMA public FROM PUBLIC; ALTER TABLE event OWNER TO {}", role_));
  drop_month(3);
  {
    KeptLog log(role_dsn(), kYear);
    EXPECT_TRUE(log.runtime.run_on(0, log.keeper.prepare()));
    EXPECT_TRUE(log.shows("fencepost_event_partitions_ahead 2"));
    drop_month(0);
    EXPECT_THROW(EXPECT_TRUE(log.runtime.run_on(0, log.keeper.prepare())), pg::QueryError);
  }
  db_.exec("ALTER TABLE event OWNER TO CURRENT_USER");
}

// The worker reports before it tries to add months, so that an alert sees the truth when adding fails.
TEST_F(EventPartitions, the_metrics_are_true_also_when_no_month_can_be_added) {
  drop_month(3);
  db_.exec(fmt::format("CREATE TABLE {} (id int)", name_of(3)));
  KeptLog log(db_.dsn(), kYear);
  log.runtime.run_on(0, start(log.keeper));
  EXPECT_TRUE(test::eventually([&] { return log.shows("fencepost_event_partitions_ahead 2"); }));
}

}  // namespace
}  // namespace fencepost::outbox

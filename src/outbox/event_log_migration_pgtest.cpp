// Migration 0009 on a database that has history and events in the tables of before.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/migrate_to.hpp"
#include "tests/support/postgres.hpp"

namespace fencepost::outbox {
namespace {

constexpr auto kId = "01900000-0000-7000-8000-000000000001";

class EventLogMigration : public ::testing::Test {
 protected:
  EventLogMigration() { test::migrate_to(db_.dsn(), 8); }

  void migrate_to_the_log() { test::migrate_to(db_.dsn(), 9); }

  void step(const std::string& at, const std::string& to, const std::string& why) {
    db_.exec(
        fmt::format("INSERT INTO step_history (subject_id, at, from_state, to_state, sub_state, node, fencing_token, "
                    "why) VALUES ('{}', '{}', 'W', '{}', 's', 'n', 7, '{}')",
                    kId, at, to, why));
  }
  void event(const std::string& subject, const std::string& at, const std::string& type) {
    db_.exec(
        fmt::format("INSERT INTO outbox_event (type, subject, data, created_at) VALUES ('{}', '{}', "
                    "'{{\"n\": 1}}', '{}')",
                    type, subject, at));
  }

  test::TestDatabase db_;
};

TEST_F(EventLogMigration, keeps_every_row_and_the_order_of_each_subject) {
  const auto subject = fmt::format("tx/{}", kId);
  step("2026-01-31 23:59:59.9Z", "A", "first");
  event(subject, "2026-01-31 23:59:59.9Z", "TA");
  event("transfer/1", "2026-01-31 23:59:59.95Z", "Other");
  step("2026-02-01 00:00:00Z", "B", "second");
  event(subject, "2026-02-01 00:00:00Z", "TB");
  event(subject, "2026-02-01 00:00:01Z", "TB2");
  step("2026-03-05 00:00:00Z", "C", "third");
  migrate_to_the_log();
  EXPECT_EQ(db_.exec("SELECT string_agg(coalesce(why, type), ' ' ORDER BY seq) FROM event"),
            "first TA Other second TB TB2 third");
  EXPECT_EQ(db_.exec("SELECT string_agg(concat_ws('/', at, subject, from_state, to_state, sub_state, node, "
                     "fencing_token, why), ' ' ORDER BY seq) FROM history WHERE why = 'second'"),
            fmt::format("2026-02-01 00:00:00+00/{}/W/B/s/n/7/second", subject));
  EXPECT_EQ(db_.exec("SELECT concat_ws('/', at, subject, type, data) FROM outbox WHERE type = 'TB2'"),
            fmt::format("2026-02-01 00:00:01+00/{}/TB2/{{\"n\": 1}}", subject));
  EXPECT_EQ(db_.exec("SELECT count(*) FROM history"), "3");
  EXPECT_EQ(db_.exec("SELECT count(*) FROM outbox"), "4");
}

TEST_F(EventLogMigration, a_clock_that_was_set_back_changes_no_order) {
  const auto subject = fmt::format("tx/{}", kId);
  step("2026-03-05 12:00:10Z", "A", "first");
  step("2026-03-05 12:00:05Z", "B", "second");
  event(subject, "2026-03-05 12:00:10Z", "TA");
  event(subject, "2026-03-05 12:00:05Z", "TB");
  migrate_to_the_log();
  EXPECT_EQ(db_.exec("SELECT string_agg(why, ' ' ORDER BY seq) FROM history"), "first second");
  EXPECT_EQ(db_.exec("SELECT string_agg(type, ' ' ORDER BY seq) FROM outbox"), "TA TB");
  EXPECT_EQ(db_.exec("SELECT at FROM history WHERE why = 'second'"), "2026-03-05 12:00:05+00");
}

TEST_F(EventLogMigration, makes_the_months_of_old_rows_and_those_to_come_and_no_others) {
  step("2025-12-31 23:59:59Z", "A", "old");
  event("transfer/1", "2026-03-01 00:00:00Z", "T");
  migrate_to_the_log();
  EXPECT_EQ(db_.exec("SELECT string_agg(DISTINCT tableoid::regclass::text, ' ') FROM event"),
            "event_2025_12 event_2026_03");
  EXPECT_EQ(db_.exec("SELECT count(*) FROM pg_inherits WHERE inhparent = 'event'::regclass"), "6");
  EXPECT_EQ(db_.exec("SELECT string_agg(inhrelid::regclass::text, ' ' ORDER BY inhrelid::regclass::text) = "
                     "(SELECT string_agg('event_' || to_char(now() AT TIME ZONE 'UTC' + n * interval '1 month', "
                     "'YYYY_MM'), ' ' ORDER BY n) FROM generate_series(0, 3) AS n) FROM pg_inherits "
                     "WHERE inhparent = 'event'::regclass AND inhrelid::regclass::text > 'event_2026_03'"),
            "t");
}

// A client that continues with a cursor of before reads rows again, and skips none.
TEST_F(EventLogMigration, new_numbers_are_above_every_old_one) {
  event("transfer/1", "2026-03-01 00:00:00Z", "T");
  db_.exec("SELECT setval(pg_get_serial_sequence('outbox_event', 'seq'), 4711)");
  event("transfer/1", "2026-03-02 00:00:00Z", "T");
  migrate_to_the_log();
  EXPECT_EQ(db_.exec("SELECT string_agg(seq::text, ' ' ORDER BY seq) FROM event"), "4713 4714");
  EXPECT_EQ(db_.exec("INSERT INTO event (subject, type, data) VALUES ('a', 'T', '{}') RETURNING seq"), "4715");
}

TEST_F(EventLogMigration, an_empty_database_counts_from_one) {
  migrate_to_the_log();
  EXPECT_EQ(db_.exec("INSERT INTO event (subject, type, data) VALUES ('a', 'T', '{}') RETURNING seq"), "1");
}

// The grants of the old tables, for a node that does not own the tables, a consumer and an auditor.
TEST_F(EventLogMigration, roles_keep_what_they_were_granted) {
  const auto node = "node_" + db_.name(), consumer = "consumer_" + db_.name(), auditor = "auditor_" + db_.name();
  db_.exec(fmt::format("CREATE ROLE {}; CREATE ROLE {}; CREATE ROLE {}", node, consumer, auditor));
  db_.exec(fmt::format("GRANT SELECT, INSERT, UPDATE, DELETE ON step_history, outbox_event TO {}", node));
  db_.exec(fmt::format("GRANT INSERT ON economy.outbox TO {0}; GRANT USAGE ON SCHEMA economy TO {0}", node));
  db_.exec(fmt::format("GRANT SELECT ON outbox_event TO {}; GRANT SELECT ON step_history TO {}", consumer, auditor));
  migrate_to_the_log();
  const auto may = [&](const std::string& role, const std::string& sql) {
    try {
      db_.exec(fmt::format("SET ROLE {}; {}", role, sql));
      return true;
    } catch (const Exception& refused) {
      EXPECT_NE(refused.error().message.find("permission denied"), std::string::npos) << refused.error().message;
      return false;
    }
  };
  EXPECT_TRUE(may(node, "INSERT INTO event (subject, type, data) VALUES ('tx/1', 'T', '{}')"));
  EXPECT_TRUE(may(node, "INSERT INTO economy.outbox (subject, type, data) VALUES ('transfer/1', 'T', '{}')"));
  EXPECT_TRUE(may(node, "SELECT FROM event; SELECT FROM history; SELECT FROM outbox; SELECT FROM event_seq"));
  EXPECT_FALSE(may(node, "DELETE FROM event"));
  EXPECT_TRUE(may(consumer, "SELECT FROM outbox"));
  EXPECT_FALSE(may(consumer, "SELECT FROM event"));
  EXPECT_FALSE(may(consumer, "SELECT FROM history"));
  EXPECT_TRUE(may(auditor, "SELECT FROM history"));
  EXPECT_FALSE(may(auditor, "SELECT FROM outbox"));
  for (const auto& role : {node, consumer, auditor}) db_.exec(fmt::format("DROP OWNED BY {0}; DROP ROLE {0}", role));
}

}  // namespace
}  // namespace fencepost::outbox

#include "doctor/database.hpp"

#include <functional>

#include <gtest/gtest.h>

#include "doctor/database_probe.hpp"

namespace fencepost::doctor {
namespace {

using namespace std::chrono_literals;

DatabaseFacts healthy() {
  return {.version_num = 150020,
          .version = "15.20",
          .role = "app",
          .schema = "public",
          .may_create = true,
          .tables = {{"schema_migration", {}}, {"api_key", {}}},
          .newest_migration = "0001_api_key",
          .clock_ahead = 2400us,
          .clock_uncertainty = 100us,
          .connection_limit = 97};
}

Error pending() {
  return unavailable("migrations_pending", "1 of 1 migrations are not applied; run 'fencepost migrate'");
}

TEST(doctor_database, a_healthy_database_is_one_finding) {
  const Findings expected{
      passed("database", "PostgreSQL 15.20, primary, schema current (0001_api_key), clock 2 ms off")};
  EXPECT_EQ(assess_database(healthy(), 12), expected);
}

struct Case {
  std::string_view name;
  std::function<void(DatabaseFacts&)> spoil;
  Status status;
  std::string_view detail;
  std::string_view in_fix;
};

const std::vector<Case> kCases{
    {"old", [](auto& f) { f.version_num = 130014, f.version = "13.14"; }, Status::kFail, "PostgreSQL 13.14 is too old",
     "14 or newer"},
    {"standby", [](auto& f) { f.standby = f.read_only = true; }, Status::kFail,
     "this server is a standby, which does not accept writes", "target_session_attrs=read-write"},
    {"read-only", [](auto& f) { f.read_only = true; }, Status::kFail, "sessions are read-only",
     "default_transaction_read_only"},
    {"no schema", [](auto& f) { f.schema.reset(), f.may_create = false; }, Status::kFail,
     "role \"app\" can use no schema of its search_path", "GRANT USAGE, CREATE ON SCHEMA public TO \"app\""},
    {"pending", [](auto& f) { f.migrations = pending(); }, Status::kWarn, "1 of 1 migrations are not applied",
     "fencepost migrate"},
    {"pending without rights", [](auto& f) { f.migrations = pending(), f.may_create = false; }, Status::kFail,
     "1 of 1 migrations are not applied, and role \"app\" may not create tables in schema \"public\"",
     "GRANT CREATE ON SCHEMA \"public\" TO \"app\""},
    {"edited", [](auto& f) { f.migrations = conflict("migration_edited", "0001 was changed"); }, Status::kFail,
     "0001 was changed", "build"},
    {"newer", [](auto& f) { f.migrations = conflict("database_newer", "the database has 0002"); }, Status::kFail,
     "the database has 0002", "upgrade"},
    {"gap", [](auto& f) { f.migrations = conflict("migration_missing", "the database has 0003"); }, Status::kFail,
     "the database has 0003", "another installation"},
    {"foreign history", [](auto& f) { f.migrations = internal("database_error", "no column \"checksum\""); },
     Status::kFail, "the schema cannot be checked: no column \"checksum\"", "schema_migration"},
    {"table rights", [](auto& f) { f.tables[1].missing = {"INSERT", "DELETE"}; }, Status::kFail,
     "role \"app\" may not INSERT, DELETE on table api_key", "GRANT INSERT, DELETE ON api_key TO \"app\""},
    {"unreadable history",
     [](auto& f) {
       f.migrations = internal("database_error", "permission denied");
       f.tables[0].missing = {"SELECT"};
     },
     Status::kFail, "role \"app\" may not SELECT on table schema_migration", "GRANT SELECT ON schema_migration"},
    {"economy", [](auto& f) { f.economy.usable = false; }, Status::kFail,
     "role \"app\" may not use all of schema economy", "GRANT fencepost_economy_node TO \"app\""},
    {"who writes balances", [](auto& f) { f.economy.writers = {"old"}; }, Status::kWarn,
     "role \"old\" may change balances in schema economy by hand",
     "REVOKE ALL ON ALL TABLES IN SCHEMA economy FROM \"old\""},
    {"everyone writes balances", [](auto& f) { f.economy.writers = {""}; }, Status::kWarn,
     "every role (PUBLIC) may change balances in schema economy by hand",
     "REVOKE ALL ON ALL TABLES IN SCHEMA economy FROM PUBLIC"},
    {"clock ahead", [](auto& f) { f.clock_ahead = 3200ms; }, Status::kWarn,
     "the database's clock is 3.2 s ahead of this machine's", "time service"},
    {"clock behind", [](auto& f) { f.clock_ahead = -90s; }, Status::kWarn,
     "the database's clock is 90.0 s behind this machine's", "time service"},
    {"connections", [](auto& f) { f.connection_limit = 11; }, Status::kWarn,
     "one node opens up to 12 connections, 11 are allowed", "max_connections"},
    {"queue", [](auto& f) { f.notification_queue = 0.75; }, Status::kWarn, "the notification queue is 75 % full",
     "long transaction"},
    {"fsync", [](auto& f) { f.fsync = false; }, Status::kWarn, "fsync is off: a crash can lose committed changes",
     "on"},
    {"synchronous_commit", [](auto& f) { f.synchronous_commit = false; }, Status::kWarn,
     "synchronous_commit is off: a crash can lose committed changes", "on"},
};

TEST(doctor_database, each_flaw_has_its_finding) {
  for (const auto& [name, spoil, status, detail, in_fix] : kCases) {
    auto facts = healthy();
    spoil(facts);
    const auto findings = assess_database(facts, 12);
    const auto& last = findings.back();
    EXPECT_EQ(last.status, status) << name;
    EXPECT_EQ(last.detail, detail) << name;
    EXPECT_NE(last.fix.find(in_fix), std::string::npos) << name << ": " << last.fix;
    // A failure replaces the "ok" finding; a warning follows it.
    EXPECT_EQ(findings.size(), status == Status::kFail ? 1U : 2U) << name;
    EXPECT_EQ(any_failed(findings), status == Status::kFail) << name;
  }
}

TEST(doctor_database, values_just_below_the_limits_give_no_warning) {
  auto facts = healthy();
  facts.clock_ahead = -1300ms;
  facts.clock_uncertainty = 400ms;  // the difference may be less than a second
  facts.connection_limit = 12;
  facts.notification_queue = 0.5;
  EXPECT_EQ(assess_database(facts, 12).size(), 1U);
}

TEST(doctor_database, several_flaws_are_all_reported) {
  auto facts = healthy();
  facts.version_num = 120000;
  facts.standby = true;
  facts.migrations = conflict("database_newer", "newer");
  facts.tables[1].missing = {"SELECT"};
  facts.fsync = false;
  EXPECT_EQ(assess_database(facts, 12).size(), 5U);
}

TEST(doctor_database, names_with_quotes_do_not_break_the_sql_of_a_fix) {
  auto facts = healthy();
  facts.role = "a\"b";
  facts.tables[1].missing = {"SELECT"};
  EXPECT_EQ(assess_database(facts, 1).front().fix, "GRANT SELECT ON api_key TO \"a\"\"b\"");
}

TEST(doctor_database, a_node_needs_connections_for_each_loop_and_to_listen) {
  Config config;
  config.runtime.threads = 3;
  config.database.shared_connections = 2;
  config.database.pool_size = 8;
  EXPECT_EQ(connections_needed(config, 16), 34U);
  config.runtime.threads = 0;
  EXPECT_EQ(connections_needed(config, 16), 164U);
  EXPECT_EQ(connections_needed(config, 0), 14U);
}

TEST(doctor_database, a_failed_connection_comes_with_advice) {
  const std::vector<std::pair<std::string_view, std::string_view>> cases{
      {"connection to server at \"127.0.0.1\", port 1 failed: Connection refused\n\tIs the server running on that host "
       "and accepting TCP/IP connections?",
       "check that PostgreSQL is running there"},
      {"could not translate host name \"nowhere.invalid\" to address: Name or service not known", "check the host"},
      {"failed: FATAL:  password authentication failed for user \"x\"", "user and password"},
      {"failed: fe_sendauth: no password supplied", "user and password"},
      {"failed: FATAL:  database \"x\" does not exist", "createdb"},
      {"failed: FATAL:  role \"x\" does not exist", "createuser"},
      {"failed: timeout expired", "firewall"},
      {"the server accepted the connection and then did not answer in time", "pooler"},
      {"connection to server on socket \"/x/.s.PGSQL.5432\" failed: No such file or directory", "socket"},
      {"failed: FATAL:  sorry, too many clients already", "max_connections"},
      {"failed: session is read-only", "primary"},
      {"failed: FATAL:  the database system is starting up", "wait"},
      {"failed: SSL error: certificate verify failed", "sslrootcert"},
      {"something else", "database.dsn"},
  };
  for (const auto& [reason, in_fix] : cases) {
    const auto finding = assess_unreachable(reason);
    EXPECT_EQ(finding.status, Status::kFail);
    EXPECT_NE(finding.fix.find(in_fix), std::string::npos) << reason << " → " << finding.fix;
    EXPECT_EQ(finding.detail.find('\n'), std::string::npos);
  }
}

TEST(doctor_database, missing_notifications_are_a_failure_unless_poll_only) {
  using Mode = pg::Listener::Mode;
  EXPECT_EQ(assess_listen(ListenMode::kEnabled, Mode::kListening).status, Status::kOk);
  const auto polling = assess_listen(ListenMode::kEnabled, Mode::kPolling);
  EXPECT_EQ(polling.status, Status::kFail);
  EXPECT_NE(polling.detail.find("pooler in transaction mode"), std::string::npos);
  EXPECT_NE(polling.fix.find("database.listen: poll_only"), std::string::npos);
  EXPECT_EQ(assess_listen(ListenMode::kEnabled, Mode::kConnecting).status, Status::kFail);
  EXPECT_EQ(assess_listen(ListenMode::kPollOnly, Mode::kConnecting).status, Status::kOk);
}

TEST(doctor_database, the_log_of_events_needs_its_months) {
  const outbox::EventPartitionReport healthy{
      .has_current_month = true, .months_ahead = 3, .since = std::chrono::sys_days{std::chrono::year{2026} / 11 / 1}};
  EXPECT_EQ(assess_event_log(healthy), passed("events", "the log is complete since 2026-11, and has 3 months ahead"));
  auto report = healthy;
  report.months_ahead = 2;
  EXPECT_EQ(assess_event_log(report).status, Status::kWarn);
  EXPECT_EQ(assess_event_log(report).detail, "the table event has 2 of 3 months ahead");
  report = healthy;
  report.expired = 2;
  EXPECT_EQ(assess_event_log(report).status, Status::kWarn);
  EXPECT_EQ(assess_event_log(report).detail, "2 months are older than events.retention");
  report.has_current_month = false;
  EXPECT_EQ(assess_event_log(report).status, Status::kFail);
  EXPECT_NE(assess_event_log(report).fix.find("fencepost migrate"), std::string::npos);
}

TEST(doctor_database, finds_the_tables_of_a_migration) {
  EXPECT_EQ(tables_created_by("-- CREATE TABLE not_this\nCREATE TABLE a (id int);\n"
                              "create  table if not exists B_2(x text);\nCREATE UNLOGGED TABLE c ();\n"
                              "CREATE INDEX d ON a (id); CREATE TYPE e AS ENUM ('create');"),
            (std::vector<std::string>{"a", "b_2", "c"}));
  EXPECT_TRUE(tables_created_by("").empty());
  EXPECT_TRUE(tables_created_by("CREATE TABLE").empty());
}

TEST(doctor_database, an_invalid_connection_string_is_not_quoted) {
  for (const auto dsn : {"postgresql://u:geheim@[half/d", "user=u password='geheim", "postgresql://u:p@geheim@h/d"}) {
    const auto problem = dsn_problem(dsn);
    EXPECT_NE(problem, "") << dsn;
    EXPECT_EQ(problem.find("geheim"), std::string::npos) << problem;
  }
  EXPECT_EQ(dsn_problem("postgresql://u:p%40ss@h1,h2:5433/d?target_session_attrs=read-write"), "");
  EXPECT_EQ(dsn_problem("host=/run/x user=u password='a b'"), "");
}

TEST(doctor_database, names_the_transaction_that_holds_up_events) {
  using namespace std::chrono_literals;
  EXPECT_EQ(assess_horizon(std::nullopt).status, Status::kOk);
  EXPECT_EQ(assess_horizon(outbox::HorizonHolder{.age = 4999ms, .who = "process 7"}).status, Status::kOk);
  const auto held = assess_horizon(outbox::HorizonHolder{.age = 61s, .who = "process 7 of ann@ledger (psql, idle)"});
  EXPECT_EQ(held.status, Status::kWarn);
  EXPECT_EQ(held.detail, "events wait for process 7 of ann@ledger (psql, idle), open for 61 s");
}

}  // namespace
}  // namespace fencepost::doctor

#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include "pg/migrations.hpp"
#include "runtime/async.hpp"
#include "runtime/runtime.hpp"
#include "tests/support/postgres.hpp"
#include "tests/support/role.hpp"
#include "tests/support/tcp_proxy.hpp"

#include "doctor/database_probe.hpp"

namespace fencepost::doctor {
namespace {

using namespace std::chrono_literals;
using asio::ip::tcp;
using test::Role;
using test::Template;
using test::TestDatabase;

Config config_for(const std::string& dsn) {
  Config config;
  config.database.dsn = Secret(dsn);
  config.database.connect_timeout = 2s;
  config.runtime.threads = 1;
  return config;
}

Findings check(const std::string& dsn) {
  return check_database(config_for(dsn));
}

std::string text_of(const Findings& findings) {
  std::string out;
  for (const auto& finding : findings) out += render_line(finding, 8) + "\n";
  return out;
}

// The only flaw of the test server: it runs without fsync.
Finding no_fsync() {
  return warned("database", "fsync is off: a crash can lose committed changes",
                "turn it on before value moves through this database");
}

// What docs/transfers.md asks for a node that does not own schema economy.
void grant_economy(const TestDatabase& db, const Role& role) {
  db.exec("GRANT fencepost_economy_node TO " + role.name());
}

TEST(doctor_database, a_migrated_database_passes) {
  const TestDatabase db(Template::kMigrated);
  const auto findings = check(db.dsn());
  ASSERT_EQ(findings.size(), 5U) << text_of(findings);
  EXPECT_EQ(findings[0].status, Status::kOk);
  EXPECT_TRUE(findings[0].detail.starts_with("PostgreSQL 1")) << findings[0].detail;
  EXPECT_NE(findings[0].detail.find(", primary, schema current (0"), std::string::npos) << findings[0].detail;
  EXPECT_EQ(findings[1], no_fsync());
  EXPECT_EQ(findings[2].check, "events");
  EXPECT_EQ(findings[2].status, Status::kOk) << text_of(findings);
  EXPECT_EQ(findings[3].check, "delivery");  // its status depends on the other tests of this server
  EXPECT_EQ(findings[4], passed("listen", "notifications arrive"));
}

TEST(doctor_database, a_log_without_this_month_fails) {
  const TestDatabase db(Template::kMigrated);
  db.exec("DO $$ BEGIN EXECUTE 'DROP TABLE event_' || to_char(now() AT TIME ZONE 'UTC', 'YYYY_MM'); END $$");
  const auto findings = check(db.dsn());
  EXPECT_EQ(findings[2].status, Status::kFail) << text_of(findings);
  EXPECT_NE(findings[2].detail.find("no partition for this month"), std::string::npos);
}

TEST(doctor_database, a_month_that_is_older_than_the_retention_is_a_warning) {
  const TestDatabase db(Template::kMigrated);
  db.exec("SELECT event_add_month('2001-02-03Z')");
  const auto findings = check(db.dsn());
  EXPECT_EQ(findings[2].status, Status::kWarn) << text_of(findings);
  EXPECT_EQ(findings[2].detail, "1 months are older than events.retention");
}

// Rows of the log are never changed, so a node does not need these rights.
TEST(doctor_database, a_role_that_cannot_change_the_log_passes) {
  const TestDatabase db(Template::kMigrated);
  const Role role(db);
  grant_economy(db, role);
  db.exec("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO " + role.name());
  db.exec("REVOKE UPDATE, DELETE ON event FROM " + role.name());
  const auto findings = check(role.dsn_as());
  EXPECT_FALSE(any_failed(findings)) << text_of(findings);
}

TEST(doctor_database, the_check_changes_nothing_in_the_database) {
  const TestDatabase db;
  check(db.dsn());
  EXPECT_EQ(db.exec("SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace"), "0");
}

TEST(doctor_database, an_empty_database_is_a_warning_to_migrate) {
  const TestDatabase db;
  const auto findings = check(db.dsn());
  ASSERT_EQ(findings.size(), 4U) << text_of(findings);
  EXPECT_NE(findings[0].detail.find("schema not current"), std::string::npos);
  EXPECT_EQ(findings[1].status, Status::kWarn);
  EXPECT_NE(findings[1].detail.find("migrations are not applied"), std::string::npos);
  EXPECT_FALSE(any_failed(findings));
}

TEST(doctor_database, an_edited_migration_fails) {
  const TestDatabase db(Template::kMigrated);
  db.exec("UPDATE schema_migration SET checksum = 'other' WHERE version = 1");
  const auto findings = check(db.dsn());
  EXPECT_EQ(findings[0].status, Status::kFail);
  EXPECT_NE(findings[0].detail.find("was changed after it was applied"), std::string::npos) << text_of(findings);
}

TEST(doctor_database, a_database_of_a_later_version_fails) {
  const TestDatabase db(Template::kMigrated);
  db.exec("INSERT INTO schema_migration (version, name, checksum) VALUES (9999, '9999_future', 'x')");
  const auto findings = check(db.dsn());
  EXPECT_EQ(findings[0].status, Status::kFail);
  EXPECT_NE(findings[0].detail.find("9999_future"), std::string::npos) << text_of(findings);
}

TEST(doctor_database, a_foreign_table_named_schema_migration_fails) {
  const TestDatabase db;
  db.exec("CREATE TABLE schema_migration (something int)");
  const auto findings = check(db.dsn());
  EXPECT_EQ(findings[0].status, Status::kFail);
  EXPECT_NE(findings[0].detail.find("the schema cannot be checked"), std::string::npos) << text_of(findings);
}

TEST(doctor_database, a_role_that_may_only_read_fails_with_the_table_and_the_grant) {
  const TestDatabase db(Template::kMigrated);
  const Role role(db);
  db.exec("GRANT SELECT ON ALL TABLES IN SCHEMA public TO " + role.name());
  const auto findings = check(role.dsn_as());
  EXPECT_EQ(findings[0],
            failed("database", fmt::format("role \"{}\" may not INSERT, UPDATE, DELETE on table api_key", role.name()),
                   fmt::format("GRANT INSERT, UPDATE, DELETE ON api_key TO \"{}\"", role.name())))
      << text_of(findings);
  EXPECT_EQ(findings.back(), passed("listen", "notifications arrive"));
}

TEST(doctor_database, a_role_with_just_the_rights_of_a_node_passes) {
  const TestDatabase db(Template::kMigrated);
  const Role role(db);
  grant_economy(db, role);
  db.exec("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO " + role.name());
  db.exec("REVOKE INSERT, UPDATE, DELETE ON schema_migration FROM " + role.name());
  const auto findings = check(role.dsn_as());
  EXPECT_FALSE(any_failed(findings)) << text_of(findings);

  // Every node runs this when it starts.
  pg::Connector connector({.dsn = Secret(role.dsn_as()), .application_name = "test"});
  const auto applied = run_blocking(pg::migrate(connector, pg::embedded_migrations()));
  ASSERT_TRUE(applied) << applied.error().to_string();
  EXPECT_TRUE(applied->empty());
}

TEST(doctor_database, a_node_needs_the_functions_of_the_economy) {
  const TestDatabase db(Template::kMigrated);
  const Role role(db);
  db.exec("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO " + role.name());
  grant_economy(db, role);
  for (const auto* right :
       {"EXECUTE ON FUNCTION economy.fn_process_due", "SELECT ON economy.transfer_work", "USAGE ON SCHEMA economy"}) {
    db.exec(fmt::format("REVOKE {} FROM fencepost_economy_node", right));
    const auto findings = check(role.dsn_as());
    EXPECT_EQ(findings[0].detail, fmt::format("role \"{}\" may not use all of schema economy", role.name())) << right;
    db.exec(findings[0].fix.substr(findings[0].fix.find("SELECT")));
    EXPECT_FALSE(any_failed(check(role.dsn_as()))) << right;
  }
}

TEST(doctor_database, names_roles_that_may_write_balances) {
  const TestDatabase db(Template::kMigrated);
  const Role role(db);
  db.exec("GRANT INSERT ON economy.pending_transfers TO " + role.name());
  EXPECT_EQ(text_of(check(db.dsn())).find(role.name()), std::string::npos);
  db.exec("GRANT UPDATE ON economy.accounts TO " + role.name());
  const auto findings = check(db.dsn());
  EXPECT_NE(text_of(findings).find(fmt::format("role \"{}\" may change balances", role.name())), std::string::npos)
      << text_of(findings);
  // What a role with the grants of earlier versions has after the migration.
  db.exec("GRANT USAGE ON SCHEMA economy TO " + role.name());
  db.exec(fmt::format("SELECT economy._grant_calls('{}', 'fencepost_economy_node')", role.name()));
  db.exec("GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA economy TO " + role.name());
  const auto finding = std::ranges::find_if(findings, [&](const auto& f) { return f.detail.contains(role.name()); });
  db.exec(finding->fix);
  EXPECT_EQ(text_of(check(db.dsn())).find(role.name()), std::string::npos);
  constexpr auto kMay =
      "SELECT has_function_privilege('{}', p.oid, 'EXECUTE') FROM pg_proc AS p WHERE p.proname = '{}'";
  EXPECT_EQ(db.exec(fmt::format(kMay, role.name(), "fn_mint")), "f");
  EXPECT_EQ(db.exec(fmt::format(kMay, role.name(), "fn_create_pending_transfer")), "t");

  db.exec("GRANT EXECUTE ON FUNCTION economy._issue TO " + role.name());
  EXPECT_NE(text_of(check(db.dsn())).find(role.name()), std::string::npos);
}

TEST(doctor_database, names_writers_by_column_and_every_role) {
  const TestDatabase db(Template::kMigrated);
  const Role role(db);
  for (const auto& [right, who] : {std::pair<std::string, std::string>{"UPDATE (balance)", role.name()},
                                   {"UPDATE (balance)", "PUBLIC"},
                                   {"UPDATE", "PUBLIC"}}) {
    SCOPED_TRACE(right + " " + who);
    db.exec(fmt::format("GRANT {} ON economy.accounts TO {}", right, who));
    const auto findings = check(db.dsn());
    const auto finding = std::ranges::find_if(
        findings, [&](const auto& f) { return f.detail.contains("may change balances") && f.detail.contains(who); });
    ASSERT_NE(finding, findings.end()) << text_of(findings);
    db.exec(finding->fix);
    EXPECT_EQ(text_of(check(db.dsn())).find("may change balances"), std::string::npos);
  }
}

TEST(doctor_database, a_role_without_rights_gets_a_finding_for_every_table) {
  const TestDatabase db(Template::kMigrated);
  const Role role(db);
  const auto findings = check(role.dsn_as());
  EXPECT_NE(text_of(findings).find("may not SELECT on table schema_migration"), std::string::npos) << text_of(findings);
  EXPECT_NE(text_of(findings).find("may not SELECT, INSERT, UPDATE, DELETE on table api_key"), std::string::npos);
}

TEST(doctor_database, a_role_that_cannot_migrate_fails_while_migrations_are_pending) {
  const TestDatabase db;
  db.exec("REVOKE CREATE ON SCHEMA public FROM PUBLIC");
  const Role role(db);
  const auto findings = check(role.dsn_as());
  EXPECT_EQ(findings[0].status, Status::kFail);
  EXPECT_NE(findings[0].detail.find("may not create tables in schema \"public\""), std::string::npos)
      << text_of(findings);
}

TEST(doctor_database, a_role_without_any_schema_fails) {
  const TestDatabase db;
  db.exec("REVOKE ALL ON SCHEMA public FROM PUBLIC");
  const Role role(db);
  const auto findings = check(role.dsn_as());
  EXPECT_NE(findings[0].detail.find("can use no schema of its search_path"), std::string::npos) << text_of(findings);
}

TEST(doctor_database, read_only_sessions_fail) {
  const TestDatabase db(Template::kMigrated);
  db.exec(fmt::format("ALTER DATABASE {} SET default_transaction_read_only = on", db.name()));
  const auto findings = check(db.dsn());
  EXPECT_EQ(findings[0].detail, "sessions are read-only") << text_of(findings);
}

TEST(doctor_database, fewer_connections_than_a_node_opens_are_a_warning) {
  const TestDatabase db(Template::kMigrated);
  db.exec(fmt::format("ALTER DATABASE {} CONNECTION LIMIT 6", db.name()));
  const auto findings = check(db.dsn());
  EXPECT_EQ(findings[1].detail, "one node opens up to 9 connections, 6 are allowed") << text_of(findings);
  EXPECT_FALSE(any_failed(findings));
}

TEST(doctor_database, with_poll_only_it_does_not_try_to_listen) {
  const TestDatabase db(Template::kMigrated);
  auto config = config_for(db.dsn());
  config.database.listen = ListenMode::kPollOnly;
  const auto findings = check_database(config);
  EXPECT_EQ(findings.back().status, Status::kOk);
  EXPECT_NE(findings.back().detail.find("poll_only"), std::string::npos);
}

// A port of this machine without a listening process.
std::uint16_t closed_port() {
  asio::io_context context;
  return tcp::acceptor(context, {asio::ip::make_address("127.0.0.1"), 0}).local_endpoint().port();
}

TEST(doctor_database, a_closed_port_is_refused_without_showing_the_password) {
  const auto findings = check(fmt::format("postgresql://me:geheim@127.0.0.1:{}/x", closed_port()));
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_EQ(findings[0].status, Status::kFail);
  EXPECT_NE(findings[0].detail.find("Connection refused"), std::string::npos);
  EXPECT_NE(findings[0].fix.find("check that PostgreSQL is running there"), std::string::npos);
  EXPECT_EQ(text_of(findings).find("geheim"), std::string::npos);
  EXPECT_EQ(findings[1].status, Status::kWarn);  // listening could not be tried
}

TEST(doctor_database, a_database_that_does_not_exist_is_named) {
  const TestDatabase db;
  db.exec("CREATE TABLE x ()");
  const auto findings = check(db.dsn() + "&dbname=no_such_database");
  EXPECT_EQ(findings[0].status, Status::kFail);
  EXPECT_NE(findings[0].detail.find("database \"no_such_database\" does not exist"), std::string::npos)
      << findings[0].detail;
  EXPECT_NE(findings[0].fix.find("createdb"), std::string::npos);
}

TEST(doctor_database, a_silent_host_costs_the_connect_timeout) {
  const TestDatabase db;
  test::TcpProxy proxy(test::server_socket());
  proxy.blackhole();
  const auto started = std::chrono::steady_clock::now();
  const auto findings = check(test::through_port(db.dsn(), proxy.port()));
  EXPECT_LT(std::chrono::steady_clock::now() - started, 10s);
  EXPECT_EQ(findings[0].status, Status::kFail);
  EXPECT_NE(findings[0].detail.find("timeout expired"), std::string::npos) << findings[0].detail;
}

// Accepts every login and never answers a query, like a pooler whose server is down.
class LoginOnlyServer {
 public:
  LoginOnlyServer() : acceptor_(context_, {asio::ip::make_address("127.0.0.1"), 0}) {
    asio::co_spawn(context_, accept(), asio::detached);
    thread_ = std::thread([this] { context_.run(); });
  }
  ~LoginOnlyServer() {
    context_.stop();
    thread_.join();
  }

  std::string dsn() const {
    return fmt::format("postgresql://u@127.0.0.1:{}/d?sslmode=disable&gssencmode=disable",
                       acceptor_.local_endpoint().port());
  }

 private:
  awaitable<> accept() {
    while (true) {
      auto socket = co_await acceptor_.async_accept(asio::use_awaitable);
      asio::co_spawn(context_, serve(std::move(socket)), asio::detached);
    }
  }
  static awaitable<> serve(tcp::socket socket) {
    std::array<char, 4096> buffer;
    const auto [ec, size] = co_await socket.async_read_some(asio::buffer(buffer), use_tuple);  // the startup packet
    if (ec || size == 0) co_return;
    const std::string welcome("R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I", 15);  // AuthenticationOk, ReadyForQuery
    co_await asio::async_write(socket, asio::buffer(welcome), use_tuple);
    while (true) {
      const auto [error, more] = co_await socket.async_read_some(asio::buffer(buffer), use_tuple);
      if (error || more == 0) co_return;
    }
  }

  asio::io_context context_;
  tcp::acceptor acceptor_;
  std::thread thread_;
};

TEST(doctor_database, a_server_that_goes_silent_after_login_costs_the_connect_timeout) {
  const LoginOnlyServer server;
  const auto started = std::chrono::steady_clock::now();
  const auto findings = check(server.dsn());
  EXPECT_LT(std::chrono::steady_clock::now() - started, 10s);
  EXPECT_EQ(findings[0].status, Status::kFail);
  EXPECT_NE(findings[0].detail.find("did not answer in time"), std::string::npos) << findings[0].detail;
  EXPECT_NE(findings[0].fix.find("pooler"), std::string::npos);
}

TEST(doctor_database, an_invalid_connection_string_fails_at_once) {
  const auto findings = check("postgresql://u:geheim@ss@127.0.0.1/d");
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].status, Status::kFail);
  EXPECT_NE(findings[0].fix.find("%40"), std::string::npos);
  EXPECT_EQ(text_of(findings).find("geheim"), std::string::npos);
}

}  // namespace
}  // namespace fencepost::doctor

// `fencepost serve`, `migrate`, `apikey` and `doctor` against a real database.
#include <fstream>
#include <regex>
#include <thread>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <boost/json/parse.hpp>

#include "tests/support/eventually.hpp"
#include "tests/support/fencepost.hpp"
#include "tests/support/interleaving.hpp"
#include "tests/support/postgres.hpp"
#include "tests/support/tcp_proxy.hpp"

namespace fencepost::test {
namespace {

using namespace std::chrono_literals;

// A node as in production: a configuration file, an external database, no child processes.
class Serve : public testing::Test {
 protected:
  void write_config(const std::string& dsn, const std::string& more = {}) {
    std::ofstream(config_) << "database:\n  dsn: \"" << dsn << "\"\nhttp:\n  port: " << port_ << "\n" << more;
  }
  RunningFencepost start() { return {{"serve", "--config", config_.string()}, dir_ / "output"}; }
  std::string url(const std::string& path) const { return "http://127.0.0.1:" + std::to_string(port_) + path; }
  bool becomes_ready() {
    return eventually([&] { return ask({.url = url("/readyz")}).status == 200; }, 30s);
  }
  // Makes a key with the command and returns (key, id).
  std::pair<std::string, std::string> create_key(const std::vector<std::string>& arguments) {
    std::vector<std::string> all{"apikey", "create", "--config", config_.string(), "--json", "--label", "test"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const auto made = fencepost(all);
    EXPECT_EQ(made.status.code, 0) << made.err;
    const auto key = boost::json::parse(made.out);
    return {std::string(key.at("key").as_string()), std::string(key.at("keyId").as_string())};
  }

  TestDatabase db_;
  TempDir dir_{"serve"};
  std::filesystem::path config_ = dir_ / "fencepost.yaml";
  std::uint16_t port_ = free_port();
};

TEST_F(Serve, migrates_becomes_ready_and_stops_on_sigint) {
  write_config(db_.dsn());
  auto node = start();
  ASSERT_TRUE(becomes_ready()) << node.output();
  EXPECT_EQ(ask({.url = url("/livez")}).status, 200U);
  const auto version = ask({.url = url("/api/v1/version")}).json();
  EXPECT_EQ(version.at("name").as_string(), "fencepost");
  const auto metrics = ask({.url = url("/metrics")}).body;
  for (const auto* name :
       {"http_requests_total", "pg_connections_total", "pg_pool_wait_seconds", "worker_runs_total"}) {
    EXPECT_NE(metrics.find(name), std::string::npos) << name;
  }
  const auto ended = node.interrupt();
  EXPECT_TRUE(ended.success()) << ended.to_string() << "\n" << node.output();
  // A backend ends a moment after its client has closed the connection.
  EXPECT_TRUE(eventually([&] {
    return db_.exec(
               "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> "
               "pg_backend_pid()") == "0";
  }));
}

TEST_F(Serve, a_key_may_do_what_its_scopes_allow_until_it_is_revoked) {
  write_config(db_.dsn());
  ASSERT_EQ(fencepost({"migrate", "--config", config_.string()}).status.code, 0);
  auto node = start();
  ASSERT_TRUE(becomes_ready()) << node.output();
  EXPECT_EQ(ask({.url = url("/api/v1/whoami")}).code(), "no_api_key");
  EXPECT_EQ(ask({.url = url("/api/v1/whoami")}).status, 401U);

  const auto [reader, reader_id] = create_key({"--scope", "tx:read"});
  EXPECT_EQ(ask({.url = url("/api/v1/whoami"), .key = reader}).json().at("keyId").as_string(), reader_id);
  const auto refused = ask({.url = url("/api/v1/log-level"), .key = reader});
  EXPECT_EQ(refused.status, 403U);
  EXPECT_EQ(refused.code(), "insufficient_scope");

  const auto [admin, admin_id] = create_key({"--scope", "admin"});
  EXPECT_EQ(ask({.url = url("/api/v1/log-level"), .key = admin}).json().at("level").as_string(), "info");
  const auto raised = ask({"PUT", url("/api/v1/log-level"), admin, R"({"level":"debug"})"});
  EXPECT_EQ(raised.json().at("level").as_string(), "debug");
  EXPECT_EQ(ask({"PUT", url("/api/v1/log-level"), admin, R"({"level":"loud"})"}).status, 400U);
  EXPECT_EQ(ask({"PUT", url("/api/v1/log-level"), admin, R"({"levle":"info"})"}).status, 400U);

  const auto listed = fencepost({"apikey", "list", "--config", config_.string()});
  EXPECT_NE(listed.out.find(reader_id), std::string::npos);
  EXPECT_EQ(listed.out.find(reader), std::string::npos);
  const auto for_scripts =
      boost::json::parse(fencepost({"apikey", "list", "--config", config_.string(), "--json"}).out);
  EXPECT_TRUE(for_scripts.at("nextCursor").is_null());
  const std::string created(for_scripts.at("items").at(0).at("createdAt").as_string());
  EXPECT_TRUE(std::regex_match(created, std::regex(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z)"))) << created;
  EXPECT_EQ(fencepost({"apikey", "revoke", "--config", config_.string(), reader_id}).status.code, 0);
  EXPECT_EQ(fencepost({"apikey", "revoke", "--config", config_.string(), reader_id}).status.code, 5);
  // The node caches keys for five seconds, but a notification of the revocation must end that earlier.
  EXPECT_TRUE(
      eventually([&] { return ask({.url = url("/api/v1/whoami"), .key = reader}).code() == "api_key_revoked"; }, 3s));
}

TEST_F(Serve, waits_for_an_unreachable_database_and_reports_not_ready) {
  TcpProxy proxy(server_socket());
  proxy.refuse();
  write_config(through_port(db_.dsn(), proxy.port()));
  auto node = start();
  ASSERT_TRUE(eventually([&] { return ask({.url = url("/livez")}).status == 200; })) << node.output();
  EXPECT_EQ(ask({.url = url("/readyz")}).status, 503U);
  proxy.pass();
  EXPECT_TRUE(becomes_ready()) << node.output();
  proxy.refuse();
  proxy.cut();
  EXPECT_TRUE(eventually([&] { return ask({.url = url("/readyz")}).status == 503; }));
  EXPECT_EQ(ask({.url = url("/livez")}).status, 200U);
  proxy.pass();
  EXPECT_TRUE(becomes_ready()) << node.output();
}

TEST_F(Serve, a_host_list_with_target_session_attrs_finds_the_writable_server) {
  const auto socket_dir = server_socket().parent_path().string();
  write_config("host=/nonexistent," + socket_dir + " port=5432,5432 user=fencepost dbname=" + db_.name() +
               " target_session_attrs=read-write");
  auto node = start();
  EXPECT_TRUE(becomes_ready()) << node.output();
}

TEST_F(Serve, a_session_lost_while_the_node_waits_to_migrate_is_retried) {
  write_config(db_.dsn());
  const auto waiting = "FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory'";
  std::jthread other_node([&] { db_.exec("SELECT pg_advisory_lock(x'66656e6365706f73'::bigint), pg_sleep(4)"); });
  ASSERT_TRUE(eventually([&] { return db_.exec("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") != "0"; }));
  auto node = start();
  ASSERT_TRUE(eventually([&] { return db_.exec(std::string("SELECT count(*) ") + waiting) == "1"; })) << node.output();
  db_.exec(std::string("SELECT pg_terminate_backend(pid) ") + waiting);
  EXPECT_TRUE(becomes_ready()) << node.output();
}

TEST_F(Serve, a_session_lost_while_the_node_registers_is_retried) {
  TcpProxy proxy(server_socket());
  write_config(through_port(db_.dsn(), proxy.port()));
  ASSERT_EQ(fencepost({"migrate", "--config", config_.string()}).status.code, 0);
  interleaving::Session psql(db_.dsn(), "psql");
  psql.must("BEGIN");
  psql.must("LOCK TABLE cluster_node");
  auto node = start();
  ASSERT_TRUE(eventually([&] {
    return db_.exec(
               "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = "
               "'Lock'") == "1";
  })) << node.output();
  EXPECT_EQ(ask({.url = url("/readyz")}).status, 503U) << "the node must not be ready before it is registered";
  proxy.cut();
  psql.must("COMMIT");
  EXPECT_TRUE(becomes_ready()) << node.output();
}

TEST_F(Serve, stops_within_stop_timeout_although_the_database_does_not_answer) {
  write_config(db_.dsn(), "runtime:\n  stop_timeout: 4s\n");
  ASSERT_EQ(fencepost({"migrate", "--config", config_.string()}).status.code, 0);
  const auto key = create_key({"--scope", "admin"}).first;
  auto node = start();
  ASSERT_TRUE(becomes_ready()) << node.output();
  std::jthread locker([&] {
    EXPECT_THROW(db_.exec("BEGIN; LOCK TABLE api_key; SELECT pg_sleep(60)"), Exception);  // ended below
  });
  ASSERT_TRUE(eventually([&] {
    return db_.exec(
               "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()") !=
           "0";
  }));
  std::jthread client([&] { ask({.url = url("/api/v1/whoami"), .key = key}); });
  ASSERT_TRUE(eventually([&] {
    return db_.exec(
               "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = "
               "'Lock'") != "0";
  }));
  const auto before = std::chrono::steady_clock::now();
  const auto ended = node.interrupt();
  EXPECT_LT(std::chrono::steady_clock::now() - before, 6s);
  EXPECT_TRUE(ended.success()) << ended.to_string() << "\n" << node.output();
  db_.exec(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = "
      "current_database()");
}

TEST_F(Serve, a_migration_edited_after_it_was_applied_fails_the_start_with_its_name) {
  write_config(db_.dsn());
  ASSERT_EQ(fencepost({"migrate", "--config", config_.string()}).status.code, 0);
  db_.exec("UPDATE schema_migration SET checksum = 'something else' WHERE version = 1");
  const auto ended = fencepost({"serve", "--config", config_.string()});
  EXPECT_EQ(ended.status.code, 1);
  EXPECT_NE(ended.err.find("0001_api_key was changed after it was applied"), std::string::npos) << ended.err;
}

TEST_F(Serve, a_taken_port_fails_the_start_with_the_port_in_the_message) {
  write_config(db_.dsn());
  auto first = start();
  ASSERT_TRUE(becomes_ready()) << first.output();
  const auto second = fencepost({"serve", "--config", config_.string()});
  EXPECT_EQ(second.status.code, 1);
  EXPECT_NE(second.err.find(std::to_string(port_)), std::string::npos) << second.err;
}

TEST_F(Serve, all_mistakes_in_the_configuration_are_reported_at_once) {
  std::ofstream(config_) << "database:\n  dsn: x\n  pool_sise: 3\nhttp:\n  port: 99999\n";
  const auto ended = fencepost({"serve", "--config", config_.string()});
  EXPECT_EQ(ended.status.code, 2);
  EXPECT_NE(ended.err.find("fencepost.yaml:3"), std::string::npos) << ended.err;
  EXPECT_NE(ended.err.find("pool_size"), std::string::npos) << ended.err;
  EXPECT_NE(ended.err.find("fencepost.yaml:5"), std::string::npos) << ended.err;
}

TEST_F(Serve, the_exit_code_of_doctor_says_whether_a_check_failed) {
  write_config(db_.dsn());
  ASSERT_EQ(fencepost({"migrate", "--config", config_.string()}).status.code, 0);
  const auto well = fencepost({"doctor", "--config", config_.string(), "--json"});
  EXPECT_EQ(well.status.code, 0) << well.out;
  const auto findings = boost::json::parse(well.out);
  for (const auto& finding : findings.at("items").as_array()) {
    EXPECT_NE(finding.at("status").as_string(), "fail") << well.out;
  }
  write_config("postgresql://nobody:secret@127.0.0.1:1/none");
  const auto ill = fencepost({"doctor", "--config", config_.string()});
  EXPECT_EQ(ill.status.code, 1);
  EXPECT_NE(ill.out.find("FAIL  database"), std::string::npos) << ill.out;
  EXPECT_EQ(ill.out.find("secret"), std::string::npos);
}

TEST_F(Serve, help_versions_and_mistyped_commands_are_answered) {
  EXPECT_EQ(fencepost({"--help"}).status.code, 0);
  EXPECT_EQ(fencepost({}).status.code, 2);
  const auto mistyped = fencepost({"sevre"});
  EXPECT_EQ(mistyped.status.code, 2);
  EXPECT_NE(mistyped.err.find("there is no command \"fencepost sevre\"; did you mean \"serve\"?"), std::string::npos)
      << mistyped.err;
  const auto verb = fencepost({"tx", "sned", "--signer", "0x1"});
  EXPECT_EQ(verb.status.code, 2);
  EXPECT_NE(verb.err.find("there is no command \"fencepost tx sned\"; did you mean \"send\"?"), std::string::npos)
      << verb.err;
  EXPECT_EQ(fencepost({"--version"}).out, fencepost({"version"}).out);
  EXPECT_TRUE(fencepost({"--version"}).out.starts_with("fencepost 0."));
  EXPECT_EQ(fencepost({"serve"}).status.code, 2) << "serve requires a database";
  EXPECT_EQ(fencepost({"apikey", "create", "--dsn", db_.dsn(), "--label", "x", "--scope", "everything"}).status.code,
            2);
}

}  // namespace
}  // namespace fencepost::test

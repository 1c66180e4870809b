#include "tests/support/postgres.hpp"

#include <cstdlib>
#include <mutex>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <libpq-fe.h>
#include <sys/random.h>

#include "base/digest.hpp"
#include "pg/migrations.hpp"
#include "runtime/runtime.hpp"

namespace fencepost::test {
namespace {

using Connection = std::unique_ptr<PGconn, decltype([](PGconn* c) { PQfinish(c); })>;
using Reply = std::unique_ptr<PGresult, decltype([](PGresult* r) { PQclear(r); })>;
using Fields = std::unique_ptr<PQconninfoOption, decltype([](PQconninfoOption* o) { PQconninfoFree(o); })>;

// Any number works if all test processes use the same.
constexpr auto kTemplateLock = 0x66656e6365;

Connection connect(const std::string& dsn) {
  Connection connection(PQconnectdb(dsn.c_str()));
  if (PQstatus(connection.get()) != CONNECTION_OK) {
    throw Exception(
        unavailable("test_database", fmt::format("cannot connect to {}: {}", dsn, PQerrorMessage(connection.get()))));
  }
  return connection;
}

std::string exec_on(const Connection& connection, const std::string& sql) {
  const Reply reply(PQexec(connection.get(), sql.c_str()));
  const auto status = PQresultStatus(reply.get());
  if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
    throw Exception(internal("test_database", fmt::format("{}: {}", sql, PQerrorMessage(connection.get()))));
  }
  if (PQntuples(reply.get()) == 0 || PQnfields(reply.get()) == 0) return "";
  return PQgetvalue(reply.get(), 0, 0);
}

std::unique_ptr<pg::EmbeddedCluster> start_cluster(const TempDir& dir, std::map<std::string, std::string> settings) {
  auto cluster =
      pg::EmbeddedCluster::start({.data_dir = dir / "pg", .durable = false, .settings = std::move(settings)});
  if (!cluster) throw Exception(cluster.error());
  return std::move(*cluster);
}

// The server of this process alone. Destructors stop and remove it at exit.
struct OwnServer {
  TempDir dir{"postgres"};
  std::unique_ptr<pg::EmbeddedCluster> cluster = start_cluster(dir, {});
};

const std::string& server_dsn() {
  static const std::string dsn = [] {
    if (const char* given = std::getenv("FENCEPOST_TEST_CLUSTER")) return std::string(given);
    static const OwnServer server;
    return server.cluster->dsn();
  }();
  return dsn;
}

std::string field_of(const std::string& dsn, std::string_view keyword) {
  const Fields fields(PQconninfoParse(dsn.c_str(), nullptr));
  for (const auto* field = fields.get(); field != nullptr && field->keyword != nullptr; ++field) {
    if (field->keyword == keyword && field->val != nullptr) return field->val;
  }
  return "";
}

// The part of "postgresql://user@/name?host=…" between the slash and the question mark.
std::string with_database(const std::string& dsn, const std::string& name) {
  const auto slash = dsn.find('/', dsn.find("://") + 3);
  const auto question = dsn.find('?');
  if (slash == std::string::npos) throw Exception(internal("test_database", "not a libpq URI: " + dsn));
  return dsn.substr(0, slash + 1) + name + (question == std::string::npos ? "" : dsn.substr(question));
}

std::string random_name() {
  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != sizeof number) throw Exception(internal("test_database", "getrandom"));
  return fmt::format("t_{:016x}", number);
}

// The name changes with every migration, so that a server that outlives a build never serves an old schema.
std::string migrated_template_name() {
  std::string checksums;
  for (const auto& migration : pg::embedded_migrations()) checksums += migration.checksum;
  return "template_" + sha256_hex(checksums).substr(0, 16);
}

void migrate(const std::string& dsn) {
  pg::Connector connector({.dsn = Secret(dsn), .application_name = "test"});
  const auto applied = run_blocking(pg::migrate(connector, pg::embedded_migrations()));
  if (!applied) throw Exception(applied.error());
}

// The first test process makes the template while the others wait. IS_TEMPLATE marks a finished one, so a template that
// a killed process left unfinished is made again.
std::string make_migrated_template() {
  const auto name = migrated_template_name();
  const auto admin = connect(server_dsn());
  exec_on(admin, fmt::format("SELECT pg_advisory_lock({})", kTemplateLock));
  const auto finished = exec_on(admin, fmt::format("SELECT datistemplate FROM pg_database WHERE datname = '{}'", name));
  if (finished == "t") return name;
  if (!finished.empty()) exec_on(admin, fmt::format("DROP DATABASE {} WITH (FORCE)", name));
  exec_on(admin, fmt::format("CREATE DATABASE {} TEMPLATE template0", name));
  migrate(with_database(server_dsn(), name));
  // PostgreSQL copies only from a database without connections.
  exec_on(admin, fmt::format("ALTER DATABASE {} IS_TEMPLATE true ALLOW_CONNECTIONS false", name));
  return name;
}

const std::string& template_name(Template from) {
  static const std::string empty = "template0";
  if (from == Template::kEmpty) return empty;
  static const std::string migrated = make_migrated_template();
  return migrated;
}

}  // namespace

std::string exec_sql(const std::string& dsn, const std::string& sql) {
  return exec_on(connect(dsn), sql);
}

TestDatabase::TestDatabase(Template from) : name_(random_name()), dsn_(with_database(server_dsn(), name_)) {
  exec_sql(server_dsn(), fmt::format("CREATE DATABASE {} TEMPLATE {}", name_, template_name(from)));
}

TestDatabase::~TestDatabase() {
  const Connection connection(PQconnectdb(server_dsn().c_str()));
  const Reply dropped(PQexec(connection.get(), fmt::format("DROP DATABASE {} WITH (FORCE)", name_).c_str()));
  if (PQresultStatus(dropped.get()) != PGRES_COMMAND_OK) {
    ADD_FAILURE() << "the test's database could not be dropped: " << PQerrorMessage(connection.get());
  }
}

std::string TestDatabase::exec(const std::string& sql) const {
  return exec_sql(dsn_, sql);
}

TestCluster::TestCluster(std::map<std::string, std::string> settings)
    : cluster_(start_cluster(dir_, std::move(settings))) {}

std::filesystem::path TestCluster::socket() const {
  return cluster_->socket_dir() / fmt::format(".s.PGSQL.{}", pg::kClusterPort);
}

std::filesystem::path server_socket() {
  return std::filesystem::path(field_of(server_dsn(), "host")) /
         fmt::format(".s.PGSQL.{}", field_of(server_dsn(), "port"));
}

std::string through_port(const std::string& dsn, std::uint16_t port) {
  return fmt::format("postgresql://{}@127.0.0.1:{}/{}?sslmode=disable&gssencmode=disable", field_of(dsn, "user"), port,
                     field_of(dsn, "dbname"));
}

}  // namespace fencepost::test

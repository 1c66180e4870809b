// A real PostgreSQL for tests.
//
//   TEST(pool, gives_back_what_it_lent) {
//     test::TestDatabase db;                       // a database of this test's own, dropped at the end
//     auto pool = pg::Pool(db.dsn(), …);
//
// The server is the one that `with_postgres` started for the whole run (FENCEPOST_TEST_CLUSTER). A test binary
// that is run by hand starts a server of its own and stops it at exit.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "pg/embedded_cluster.hpp"
#include "tests/support/temp_dir.hpp"

namespace fencepost::test {

enum class Template {
  kEmpty,     // as PostgreSQL creates it
  kMigrated,  // with our schema: a copy of a database that is migrated once per server
};

class TestDatabase {
 public:
  explicit TestDatabase(Template from = Template::kEmpty);
  ~TestDatabase();  // ends all remaining connections
  TestDatabase(const TestDatabase&) = delete;
  TestDatabase& operator=(const TestDatabase&) = delete;

  // Parameters such as "&application_name=x" can be appended.
  const std::string& dsn() const { return dsn_; }
  const std::string& name() const { return name_; }
  // Runs SQL on a connection of its own and returns the first column of the first row, or "" if there is no row. Throws
  // if the SQL fails. For setup and checks, independent of the code under test.
  std::string exec(const std::string& sql) const;

 private:
  std::string name_;
  std::string dsn_;
};

// A server of the test's own, which the test can stop, kill and restart.
class TestCluster {
 public:
  explicit TestCluster(std::map<std::string, std::string> settings = {});

  std::string dsn() const { return cluster_->dsn(); }
  pg::EmbeddedCluster& operator*() { return *cluster_; }
  pg::EmbeddedCluster* operator->() { return cluster_.get(); }
  std::filesystem::path socket() const;

 private:
  TempDir dir_{"cluster"};
  std::unique_ptr<pg::EmbeddedCluster> cluster_;
};

// The Unix socket of the server that TestDatabase uses. A TcpProxy connects to it.
std::filesystem::path server_socket();
// The DSN of the same database through a TCP port of this machine, for example a proxy's.
std::string through_port(const std::string& dsn, std::uint16_t port);

// Like TestDatabase::exec, for any DSN.
std::string exec_sql(const std::string& dsn, const std::string& sql);

}  // namespace fencepost::test

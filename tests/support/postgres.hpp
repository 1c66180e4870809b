// A real PostgreSQL for tests.
//
//   TEST(pool, gives_back_what_it_lent) {
//     test::TestDatabase db;                       // a database of this test's own, gone at its end
//     auto pool = pg::Pool(db.dsn(), …);
//
// The server is the one that `with_postgres` started for the whole run (FENCEPOST_TEST_CLUSTER), or, when a
// test binary is run by hand, one of this process's own that stops with it.
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
  kEmpty,     // nothing but what PostgreSQL brings
  kMigrated,  // with our schema: copied from a database that is migrated once per server
};

class TestDatabase {
 public:
  explicit TestDatabase(Template from = Template::kEmpty);
  ~TestDatabase();  // cuts whoever is still connected
  TestDatabase(const TestDatabase&) = delete;
  TestDatabase& operator=(const TestDatabase&) = delete;

  // "&application_name=x" and the like may be appended as they are.
  const std::string& dsn() const { return dsn_; }
  const std::string& name() const { return name_; }
  // Runs SQL at once on a connection of its own and returns the first column of the first row, or "" when there
  // is none. Throws when it fails. For arranging and checking, beside the code under test.
  std::string exec(const std::string& sql) const;

 private:
  std::string name_;
  std::string dsn_;
};

// A server of the test's own, to be stopped, killed and started again.
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

// The Unix socket of the server that TestDatabase uses: what a TcpProxy in front of it connects to.
std::filesystem::path server_socket();
// The same database through a TCP port of this machine, e.g. a proxy's.
std::string through_port(const std::string& dsn, std::uint16_t port);

// Like TestDatabase::exec, anywhere.
std::string exec_sql(const std::string& dsn, const std::string& sql);

}  // namespace fencepost::test

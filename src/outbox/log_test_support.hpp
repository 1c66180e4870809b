// For tests on a real log.
#pragma once

#include <cstdlib>
#include <string>

#include <fmt/format.h>

#include "base/error.hpp"
#include "pg/connection.hpp"
#include "pg/result.hpp"

namespace fencepost::outbox::testing {

// A session that holds a transaction open between calls.
class Writer {
 public:
  explicit Writer(const std::string& dsn) : connection_(PQconnectdb(dsn.c_str())) {}

  // The first column of the first row, or "".
  std::string run(const std::string& sql) {
    const pg::ResultSet rows(PQexec(connection_.get(), sql.c_str()));
    const std::string failure = PQerrorMessage(connection_.get());
    if (!failure.empty()) throw Exception(internal("test_session", failure));
    return rows.empty() ? "" : rows[0].get<std::string>(0);
  }
  // Opens a transaction and assigns its id, as in a transaction that is waiting for a lock.
  void begin() { run("BEGIN; SELECT pg_current_xact_id()"); }
  std::int64_t append(const std::string& subject) {
    return std::stoll(
        run(fmt::format("INSERT INTO event (type, subject, data) VALUES ('T', '{}', '{{}}') RETURNING seq", subject)));
  }
  // A step, announced as an event of `type` unless that is "NULL".
  std::int64_t append_step(const std::string& subject, const std::string& to_state, const std::string& type) {
    return std::stoll(run(fmt::format(
        "INSERT INTO event (subject, type, to_state, node, why, data) VALUES ('{0}', {2}, '{1}', 'n', 'test', "
        "CASE WHEN {2} IS NOT NULL THEN jsonb '{{}}' END) RETURNING seq",
        subject, to_state, type)));
  }

 private:
  pg::PgConn connection_;
};

// The settled seq depends on every transaction of the server, so these tests run on a server of their own.
struct OwnServer {
  OwnServer() { ::unsetenv("FENCEPOST_TEST_CLUSTER"); }
};

}  // namespace fencepost::outbox::testing

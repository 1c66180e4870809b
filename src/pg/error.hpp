// The errors of the database layer, by what the caller may do about them.
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"

namespace fencepost::pg {

// PostgreSQL answered with an error: the statement, and the whole implicit transaction around it, was rolled back.
// `sqlstate()` is the reason.
class QueryError : public Exception {
 public:
  QueryError(std::string statement, std::string sqlstate, std::string message, std::string constraint,
             bool plan_lost = false);

  const std::string& sqlstate() const { return sqlstate_; }
  const std::string& constraint() const { return constraint_; }  // empty unless one was violated

  // Whether a retry of the same transaction may succeed: serialization failure, deadlock, or a prepared statement that
  // the session has lost and the retry prepares again.
  bool is_retryable() const { return plan_lost_ || sqlstate_ == "40001" || is_deadlock(); }
  bool is_deadlock() const { return sqlstate_ == "40P01"; }
  bool is_lock_timeout() const { return sqlstate_ == "55P03"; }
  bool is_timeout() const { return sqlstate_ == "57014" || is_lock_timeout(); }
  // Whether the data caused the error (a value out of range, a violated constraint); in a batch, the data of one item.
  bool is_about_data() const { return sqlstate_.starts_with("22") || sqlstate_.starts_with("23"); }

 private:
  std::string sqlstate_;
  std::string constraint_;
  bool plan_lost_;
};

// There is no connection, or it was lost before anything was sent or during a read. Nothing was written: retry safely.
class ConnectionLost : public Exception {
 public:
  explicit ConnectionLost(const std::string& reason);
};

// The connection was lost, or the deadline passed, after a writing transaction was sent: it may or may not have been
// committed. Check the state before a retry. A client gets 503 `outcome_unknown`.
class CommitUnknown : public Exception {
 public:
  CommitUnknown(const std::string& statement, const std::string& reason);
};

// Too many callers are waiting for a connection, or this caller waited too long (503 `database_busy`).
class PoolExhausted : public Exception {
 public:
  explicit PoolExhausted(const std::string& reason);
};

// Whether a SQLSTATE means that the environment failed (connection, resources, operator), not the statement or its
// data: the same statement may succeed later.
bool is_transient(std::string_view sqlstate);

}  // namespace fencepost::pg

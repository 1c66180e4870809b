// What can go wrong with a statement, split by what a caller may do about it.
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"

namespace fencepost::pg {

// PostgreSQL answered with an error: the statement, and the whole implicit transaction around it, did not
// happen. `sqlstate()` says why.
class QueryError : public Exception {
 public:
  QueryError(std::string statement, std::string sqlstate, std::string message, std::string constraint,
             bool plan_lost = false);

  const std::string& sqlstate() const { return sqlstate_; }
  const std::string& constraint() const { return constraint_; }  // empty unless one was violated

  // Another try of the same transaction may succeed: serialization failure, deadlock, or a prepared statement
  // that the session has lost and the next try prepares anew.
  bool is_retryable() const { return plan_lost_ || sqlstate_ == "40001" || sqlstate_ == "40P01"; }
  bool is_lock_timeout() const { return sqlstate_ == "55P03"; }
  bool is_timeout() const { return sqlstate_ == "57014" || is_lock_timeout(); }
  // The data is at fault (a value that PostgreSQL cannot hold, a constraint): in a batch, one item's.
  bool is_about_data() const { return sqlstate_.starts_with("22") || sqlstate_.starts_with("23"); }

 private:
  std::string sqlstate_;
  std::string constraint_;
  bool plan_lost_;
};

// There is no connection, or it went away before anything was sent or while only reading: nothing was written,
// and trying again is safe.
class ConnectionLost : public Exception {
 public:
  explicit ConnectionLost(const std::string& reason);
};

// The connection went away, or the deadline passed, after a writing transaction was sent: it may or may not
// have been committed. Look, never blindly retry. To a client this is 503 `outcome_unknown`.
class CommitUnknown : public Exception {
 public:
  CommitUnknown(const std::string& statement, const std::string& reason);
};

// Too many callers wait for the database already (503 `database_busy`), or waited too long.
class PoolExhausted : public Exception {
 public:
  explicit PoolExhausted(const std::string& reason);
};

// Whether a SQLSTATE means the world failed (connection, resources, operator), not the statement or its data:
// worth another try later, unchanged.
bool is_transient(std::string_view sqlstate);

}  // namespace fencepost::pg

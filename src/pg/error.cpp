#include "pg/error.hpp"

#include <array>

namespace fencepost::pg {
namespace {

ErrorKind kind_of(std::string_view sqlstate) {
  return is_transient(sqlstate) ? ErrorKind::kUnavailable : ErrorKind::kInternal;
}

Error query_error(std::string statement, const std::string& sqlstate, std::string message,
                  const std::string& constraint) {
  Error error{kind_of(sqlstate), "database_error", std::move(message), {}, {}};
  error.with("statement", std::move(statement)).with("sqlstate", sqlstate);
  if (!constraint.empty()) error.with("constraint", constraint);
  return error;
}

}  // namespace

QueryError::QueryError(std::string statement, std::string sqlstate, std::string message, std::string constraint,
                       bool plan_lost)
    : Exception(query_error(std::move(statement), sqlstate, std::move(message), constraint)),
      sqlstate_(std::move(sqlstate)),
      constraint_(std::move(constraint)),
      plan_lost_(plan_lost) {}

ConnectionLost::ConnectionLost(const std::string& reason)
    : Exception(unavailable("database_unavailable", "the database cannot be reached")
                    .because(reason)
                    .after(std::chrono::seconds(1))) {}

CommitUnknown::CommitUnknown(const std::string& statement, const std::string& reason)
    : Exception(
          unavailable("outcome_unknown",
                      "the database did not confirm the commit: check whether the change was stored before you retry")
              .because(statement + ": " + reason)) {}

PoolExhausted::PoolExhausted(const std::string& reason)
    : Exception(unavailable("database_busy", reason).after(std::chrono::seconds(1))) {}

bool is_transient(std::string_view sqlstate) {
  // 08 connection, 40 rollback, 53 resources, 57 operator intervention, 58 system; 55P03 lock not available.
  static constexpr std::array<std::string_view, 5> kClasses{"08", "40", "53", "57", "58"};
  for (const auto prefix : kClasses) {
    if (sqlstate.starts_with(prefix)) return true;
  }
  return sqlstate == "55P03";
}

}  // namespace fencepost::pg

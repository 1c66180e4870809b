#include "transfer/execution_failure.hpp"

#include <string_view>

#include "pg/error.hpp"

namespace fencepost::transfer {
namespace {

// A check violation without a constraint: no partition takes the row.
bool is_missing_partition(const pg::QueryError& error) {
  return error.sqlstate() == "23514" && error.constraint().empty();
}

// The primary keys that executing writes and that come from a sequence. Each attempt takes the next number, so the
// sequence catches up.
bool is_lagging_sequence(const pg::QueryError& error) {
  const std::string_view key = error.constraint();
  return error.sqlstate() == "23505" && (key == "transactions_pkey" || key == "transfer_reminders_pkey");
}

}  // namespace

bool counts_as_try(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const pg::QueryError& error) {
    return error.sqlstate().starts_with("23") && !is_missing_partition(error) && !is_lagging_sequence(error);
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace fencepost::transfer

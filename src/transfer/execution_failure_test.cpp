#include "transfer/execution_failure.hpp"

#include <gtest/gtest.h>

#include "pg/error.hpp"

namespace fencepost::transfer {
namespace {

bool counts(const std::string& sqlstate, const std::string& constraint = "") {
  return counts_as_try(std::make_exception_ptr(pg::QueryError("transfer_process", sqlstate, "refused", constraint)));
}

TEST(execution_failure, what_the_data_causes_counts_as_a_try) {
  EXPECT_TRUE(counts("23000"));  // a trigger
  EXPECT_TRUE(counts("23502"));
  EXPECT_TRUE(counts("23503", "some_fkey"));
  EXPECT_TRUE(counts("23505", "transactions_transfer_id_key"));
  EXPECT_TRUE(counts("23514", "transactions_are_sound"));
}

TEST(execution_failure, what_a_retry_or_an_operator_cures_does_not) {
  for (const auto* sqlstate : {"08006", "22003", "25006", "40001", "40P01", "42501", "53100", "53200", "53300", "55P03",
                               "57014", "57P01", "57P03", "58030", "P0001", "XX000"}) {
    EXPECT_FALSE(counts(sqlstate)) << sqlstate;
  }
  EXPECT_FALSE(counts("23514")) << "a missing partition of the log";
  for (const auto* key : {"transactions_pkey", "transfer_reminders_pkey"}) {
    EXPECT_FALSE(counts("23505", key)) << "a lagging sequence: " << key;
  }
  EXPECT_FALSE(counts_as_try(std::make_exception_ptr(pg::ConnectionLost("gone"))));
  EXPECT_FALSE(counts_as_try(std::make_exception_ptr(pg::CommitUnknown("transfer_process", "gone"))));
  EXPECT_FALSE(counts_as_try(std::make_exception_ptr(pg::PoolExhausted("busy"))));
  EXPECT_FALSE(counts_as_try(std::make_exception_ptr(std::runtime_error("a bug"))));
}

}  // namespace
}  // namespace fencepost::transfer

#include "doctor/transfer.hpp"

#include <gtest/gtest.h>

namespace fencepost::doctor {
namespace {

using namespace std::chrono_literals;

Status status_of(const TransferFacts& facts) {
  return assess_transfers(facts, {}).status;
}

TEST(doctor_transfer, transfers_that_wait_for_their_checks_are_ok) {
  EXPECT_EQ(status_of({.nodes = 0}), Status::kOk);
  EXPECT_EQ(status_of({.pool = {.waiting = 5, .oldest_waiting = 20h}, .nodes = 1, .listeners = 1}), Status::kOk);
  EXPECT_EQ(status_of({.pool = {.approved = 5, .due = 5, .oldest_due = 2s}, .nodes = 1, .listeners = 1}), Status::kOk);
}

TEST(doctor_transfer, an_overdue_transfer_is_a_failure) {
  EXPECT_EQ(status_of({.pool = {.approved = 1, .due = 1, .oldest_due = 1s}, .nodes = 0}), Status::kFail);
  const auto late = assess_transfers({.pool = {.approved = 1, .due = 1, .oldest_due = 11s}, .nodes = 2}, {});
  EXPECT_EQ(late.status, Status::kFail);
  EXPECT_NE(late.detail.find("due for 11 s"), std::string::npos) << late.detail;
  EXPECT_NE(late.fix.find("2 node(s)"), std::string::npos) << late.fix;
  // A transfer that is deferred again and again is never due for long, so the age of the approval counts.
  const Uuid id = Uuid::parse("01890a5d-ac96-774b-bcce-b302099a8057").value();
  const auto stuck = assess_transfers(
      {.pool = {.approved = 1, .oldest_approved = 3min, .oldest_approved_id = id}, .nodes = 1, .listeners = 1}, {});
  EXPECT_EQ(stuck.status, Status::kFail);
  EXPECT_NE(stuck.detail.find(id.to_string() + " has been approved for 3 min"), std::string::npos) << stuck.detail;
}

TEST(doctor_transfer, waiting_transfers_without_a_running_node_are_a_failure) {
  EXPECT_EQ(status_of({.pool = {.waiting = 1, .oldest_waiting = 1s}, .nodes = 0}), Status::kFail);
}

TEST(doctor_transfer, a_node_that_does_not_listen_is_a_warning) {
  const TransferFacts deaf{.nodes = 2, .listeners = 1};
  EXPECT_EQ(status_of(deaf), Status::kWarn);
  EXPECT_NE(assess_transfers(deaf, {}).detail.find("of 2 node(s) 1 listen on economy_work"), std::string::npos);
  Config polling;
  polling.database.listen = ListenMode::kPollOnly;
  EXPECT_EQ(assess_transfers(deaf, polling).status, Status::kOk);
}

TEST(doctor_transfer, says_which_mode_is_the_default) {
  Config config;
  config.transfer.event_pool_enabled = true;
  EXPECT_NE(assess_transfers({}, config).detail.find("is pool"), std::string::npos);
}

}  // namespace
}  // namespace fencepost::doctor

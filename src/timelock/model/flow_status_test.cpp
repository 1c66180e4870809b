#include "timelock/model/flow_status.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "timelock/model/standard.hpp"

namespace fencepost::timelock {
namespace {

using testing::ElementsAre;

TEST(flow_status, goes_where_the_table_says) {
  EXPECT_THAT(kFlow.names(), ElementsAre("waiting", "ready", "executed", "cancelled", "expired"));
  EXPECT_THAT(kFlow.from_states(FlowStatus::kWaiting), ElementsAre());
  EXPECT_THAT(kFlow.from_states(FlowStatus::kReady), ElementsAre("waiting"));
  EXPECT_THAT(kFlow.from_states(FlowStatus::kExecuted), ElementsAre("waiting", "ready", "expired"));
  EXPECT_THAT(kFlow.from_states(FlowStatus::kCancelled), ElementsAre("waiting", "ready", "expired"));
  EXPECT_THAT(kFlow.from_states(FlowStatus::kExpired), ElementsAre("waiting", "ready"));
  EXPECT_THAT(kFlow.terminal_states(), ElementsAre("executed", "cancelled"));
}

TEST(standard, has_the_names_that_are_stored) {
  EXPECT_EQ(kStandards.name(Standard::kCompound), "compound");
  EXPECT_EQ(kStandards.find("openzeppelin"), Standard::kOpenZeppelin);
}

}  // namespace
}  // namespace fencepost::timelock

#include "tx/model/state.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fencepost::tx {
namespace {

using testing::ElementsAre;

TEST(tx_state, goes_where_the_table_says) {
  EXPECT_THAT(kManagedTx.names(),
              ElementsAre("CREATED", "ALLOCATED", "TRACKING", "CONFIRMED", "FAILED_FINAL", "STUCK"));
  EXPECT_THAT(kManagedTx.from_states(TxState::kAllocated), ElementsAre("CREATED", "STUCK"));
  EXPECT_THAT(kManagedTx.from_states(TxState::kTracking), ElementsAre("ALLOCATED", "STUCK"));
  EXPECT_THAT(kManagedTx.from_states(TxState::kStuck), ElementsAre("ALLOCATED", "TRACKING"));
  EXPECT_THAT(kManagedTx.from_states(TxState::kConfirmed), ElementsAre("TRACKING", "STUCK"));
  EXPECT_THAT(kManagedTx.from_states(TxState::kFailedFinal), ElementsAre("CREATED", "ALLOCATED", "TRACKING", "STUCK"));
  EXPECT_THAT(kManagedTx.terminal_states(), ElementsAre("CONFIRMED", "FAILED_FINAL"));
}

TEST(tx_state, what_has_ended_is_taken_back_only_explicitly) {
  for (const auto ended : {TxState::kConfirmed, TxState::kFailedFinal}) {
    EXPECT_TRUE(kManagedTx.terminal(ended));
    EXPECT_FALSE(kManagedTx.allowed(ended, TxState::kTracking));
    EXPECT_TRUE(kManagedTx.reopens(ended, TxState::kTracking));
    EXPECT_FALSE(kManagedTx.reopens(ended, TxState::kAllocated));
  }
}

}  // namespace
}  // namespace fencepost::tx

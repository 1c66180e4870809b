#include "tx/model/state.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fencepost::tx {
namespace {

using testing::ElementsAre;

TEST(tx_state, goes_where_the_table_says) {
  EXPECT_THAT(kManagedTx.names(),
              ElementsAre("CREATED", "ALLOCATED", "TRACKING", "CONFIRMED", "FAILED_FINAL", "STUCK"));
  EXPECT_THAT(kManagedTx.from_states(TxState::kAllocated), ElementsAre("CREATED"));
  EXPECT_THAT(kManagedTx.from_states(TxState::kTracking), ElementsAre("ALLOCATED", "STUCK"));
  EXPECT_THAT(kManagedTx.from_states(TxState::kStuck), ElementsAre("ALLOCATED", "TRACKING"));
  EXPECT_THAT(kManagedTx.from_states(TxState::kConfirmed), ElementsAre("TRACKING", "STUCK"));
  EXPECT_THAT(kManagedTx.from_states(TxState::kFailedFinal), ElementsAre("TRACKING", "STUCK"));
  EXPECT_THAT(kManagedTx.terminal_states(), ElementsAre("CONFIRMED", "FAILED_FINAL"));
}

}  // namespace
}  // namespace fencepost::tx

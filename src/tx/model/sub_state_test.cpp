#include "tx/model/sub_state.hpp"

#include <gtest/gtest.h>

namespace fencepost::tx {
namespace {

using evm::SubmitClass;

TEST(sub_state, an_endpoints_answer_has_the_same_name_as_its_sub_state) {
  for (int i = 0; i <= static_cast<int>(SubmitClass::kUnknown); ++i) {
    const auto answer = static_cast<SubmitClass>(i);
    const bool taken = answer == SubmitClass::kAccepted || answer == SubmitClass::kKnownTransaction;
    EXPECT_EQ(kSubStates.name(sub_state_of(answer)), taken ? "" : evm::to_string(answer));
  }
}

TEST(sub_state, every_sub_state_has_a_meaning) {
  for (const auto& row : kSubStates) EXPECT_TRUE(row.meaning.ends_with(".")) << row.name;
}

}  // namespace
}  // namespace fencepost::tx

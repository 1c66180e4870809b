#include "evm/broadcast.hpp"

#include <gtest/gtest.h>

namespace fencepost::evm {
namespace {

SendResult accepted() {
  return {.outcome = SubmitClass::kAccepted, .message = {}, .reach = Reach::kAnswered};
}
SendResult refused(SubmitClass why) {
  return {.outcome = why, .message = std::string(to_string(why)), .reach = Reach::kAnswered};
}
SendResult in_doubt(SubmitClass why) {
  return {.outcome = why, .message = "?", .reach = Reach::kUnknown};
}
SendResult timed_out() {
  return {.outcome = SubmitClass::kTransient, .message = "timeout", .reach = Reach::kUnknown, .no_answer = true};
}
SendResult unreachable() {
  return {.outcome = SubmitClass::kTransient, .message = "refused", .reach = Reach::kNowhere, .no_answer = true};
}

TEST(broadcast, the_answers_of_all_endpoints_become_one) {
  struct Case {
    std::vector<SendResult> answers;
    SubmitClass outcome;
    Reach reach;
    bool no_answer = false;
  };
  using enum SubmitClass;
  const std::vector<Case> cases{
      {{}, kUnknown, Reach::kUnknown},
      {{refused(kInvalid), timed_out(), accepted()}, kAccepted, Reach::kAnswered},
      {{in_doubt(kNonceTooLow), accepted()}, kAccepted, Reach::kAnswered},
      {{refused(kFeeTooLow), in_doubt(kKnownTransaction)}, kKnownTransaction, Reach::kUnknown},
      {{refused(kFeeTooLow), in_doubt(kNonceTooLow)}, kNonceTooLow, Reach::kUnknown},
      {{refused(kInvalid), refused(kInvalid)}, kInvalid, Reach::kAnswered},
      {{refused(kInvalid), refused(kInsufficientFunds)}, kInsufficientFunds, Reach::kAnswered},
      {{refused(kInvalid), refused(kTransient)}, kTransient, Reach::kAnswered},
      {{refused(kInvalid), timed_out()}, kTransient, Reach::kUnknown},
      {{refused(kInsufficientFunds), in_doubt(kUnknown)}, kUnknown, Reach::kUnknown},
      {{refused(kInvalid), unreachable()}, kInvalid, Reach::kAnswered},
      {{unreachable(), refused(kReverted)}, kReverted, Reach::kAnswered},
      {{unreachable(), unreachable()}, kTransient, Reach::kNowhere, true},
      {{unreachable(), timed_out()}, kTransient, Reach::kUnknown, true},
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto& [answers, outcome, reach, no_answer] = cases[i];
    const auto merged = merge_answers(answers);
    EXPECT_EQ(to_string(merged.outcome), to_string(outcome)) << i;
    EXPECT_EQ(merged.reach, reach) << i;
    EXPECT_EQ(merged.no_answer, no_answer) << i;
  }
}

}  // namespace
}  // namespace fencepost::evm

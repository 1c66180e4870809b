#include "evm/broadcast.hpp"

#include <algorithm>

namespace fencepost::evm {
namespace {

bool has_it(const SendResult& answer) {
  return answer.outcome == SubmitClass::kAccepted || answer.outcome == SubmitClass::kKnownTransaction;
}

// The lowest decides. Refusals that a retry cannot cure are last, since another endpoint's answer may.
int rank(const SendResult& answer) {
  if (answer.reach == Reach::kNowhere) return 8;
  switch (answer.outcome) {
    case SubmitClass::kAccepted:
      return 0;
    case SubmitClass::kKnownTransaction:
      return 1;
    case SubmitClass::kNonceTooLow:
      return 2;
    case SubmitClass::kUnknown:
      return 3;
    case SubmitClass::kTransient:
      return 4;
    case SubmitClass::kNonceTooHigh:
      return 5;
    case SubmitClass::kUnderpriced:
    case SubmitClass::kFeeCapExceeded:
    case SubmitClass::kFeeTooLow:
    case SubmitClass::kInsufficientFunds:
      return 6;
    case SubmitClass::kIntrinsicGas:
    case SubmitClass::kReverted:
    case SubmitClass::kInvalid:
      return 7;
  }
  return 3;
}

}  // namespace

bool is_accepted(const std::vector<SendResult>& answers) {
  return std::ranges::any_of(answers, has_it);
}

bool is_refused_for_good(SubmitClass outcome) {
  switch (outcome) {
    case SubmitClass::kFeeCapExceeded:
    case SubmitClass::kIntrinsicGas:
    case SubmitClass::kReverted:
    case SubmitClass::kInvalid:
      return true;
    default:
      return false;
  }
}

SendResult merge_answers(const std::vector<SendResult>& answers) {
  if (answers.empty()) return {};
  auto merged = *std::ranges::min_element(answers, {}, rank);
  merged.no_answer = std::ranges::all_of(answers, &SendResult::no_answer);
  merged.answers = 0;
  for (const auto& answer : answers) merged.answers += answer.answers;
  if (merged.outcome == SubmitClass::kAccepted) return merged;
  const auto any = [&](Reach reach) {
    return std::ranges::any_of(answers, [reach](const SendResult& answer) { return answer.reach == reach; });
  };
  merged.reach = any(Reach::kUnknown) ? Reach::kUnknown : any(Reach::kAnswered) ? Reach::kAnswered : Reach::kNowhere;
  return merged;
}

}  // namespace fencepost::evm

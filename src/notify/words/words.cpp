#include "notify/words/words.hpp"

#include <utility>

namespace fencepost::notify {

const Words& words_of(Language language) {
  switch (language) {
    case Language::kEnglish:
      return kEnglishWords;
    case Language::kChinese:
      return kChineseWords;
  }
  std::unreachable();
}

const StatusWords& words_of(const FlowWords& words, FlowStatus status) {
  switch (status) {
    case FlowStatus::kWaiting:
      return words.waiting;
    case FlowStatus::kReady:
      return words.ready;
    case FlowStatus::kExecuted:
      return words.executed;
    case FlowStatus::kCancelled:
      return words.cancelled;
    case FlowStatus::kExpired:
      return words.expired;
  }
  std::unreachable();
}

}  // namespace fencepost::notify

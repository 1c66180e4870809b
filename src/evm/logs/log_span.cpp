#include "evm/logs/log_span.hpp"

#include <algorithm>

namespace fencepost::evm {

LogSpan::LogSpan(LogSpanOptions options) : options_(options) {
  options_.max = std::max<std::int64_t>(1, options_.max);
  blocks_ = std::clamp<std::int64_t>(options_.initial, 1, options_.max);
}

void LogSpan::count_request() {
  if (refused_ && --remember_refused_ <= 0) refused_.reset();
}

void LogSpan::succeeded(std::int64_t asked, std::size_t logs) {
  count_request();
  if (asked < blocks_) return;
  followed_suggestion_ = false;
  successes_ = logs <= options_.few_logs ? std::min(successes_ + 1, options_.successes_to_grow) : 0;
  if (successes_ < options_.successes_to_grow) return;
  // Compared by division: the maximum may be any number.
  const auto larger = blocks_ > options_.max / 2 ? options_.max : blocks_ * 2;
  if (refused_ && larger >= *refused_) return;
  blocks_ = larger;
  successes_ = 0;
}

Result<void> LogSpan::refused(std::int64_t asked, std::optional<std::int64_t> suggested) {
  count_request();
  successes_ = 0;
  if (asked <= 1) {
    return fail(unavailable("logs_refused",
                            "the endpoint refuses the logs of a single block as too many: use another endpoint, or "
                            "follow fewer contracts"));
  }
  refused_ = refused_ ? std::min(*refused_, asked) : asked;
  remember_refused_ = options_.requests_below_refused;
  const bool believe = suggested && *suggested >= 1 && *suggested < asked && !followed_suggestion_;
  followed_suggestion_ = believe;
  // Half, rounded up: twice the half is then not below the refused span, and the next growth does not come back to it.
  blocks_ = std::min(blocks_, believe ? *suggested : asked - asked / 2);
  return {};
}

}  // namespace fencepost::evm

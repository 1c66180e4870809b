#include "notify/service/send_decision.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/duration_text.hpp"

namespace fencepost::notify {
namespace {

constexpr std::chrono::milliseconds kNotTriedDelay{1000};

}  // namespace

std::chrono::milliseconds retry_delay(std::int64_t failures, const EmailOptions& options, Random& random) {
  constexpr std::int64_t kDoublings = 40;  // more would leave the range of a double's whole numbers
  const auto doubled = static_cast<double>(options.retry_initial.count()) *
                       std::exp2(static_cast<double>(std::min(failures, kDoublings)));
  const auto longest = std::min(doubled, static_cast<double>(options.retry_cap.count()));
  return std::chrono::milliseconds(static_cast<std::int64_t>(longest * (1 - random.uniform() / 2)));
}

SendDecision decide(const SendOutcome& outcome, std::int64_t failures, std::chrono::milliseconds age,
                    const EmailOptions& options, Random& random) {
  switch (outcome.result) {
    case SendResult::kSent:
      return {.status = SendStatus::kSuccess, .error = ""};
    case SendResult::kRefused:
      return {.status = SendStatus::kDead, .error = outcome.detail};
    case SendResult::kUnknownAddress:
      return {.status = SendStatus::kDead, .unknown_address = true, .error = outcome.detail};
    case SendResult::kNotTried:
      return {.status = SendStatus::kPending, .delay = kNotTriedDelay, .error = ""};
    case SendResult::kNotSent:
    case SendResult::kMaybeSent:
      break;
  }
  const bool maybe = outcome.result == SendResult::kMaybeSent;
  const auto delay = retry_delay(failures, options, random);
  if (age + delay > options.retry_for) {
    return {.status = SendStatus::kDead,
            .maybe_sent = maybe,
            .error = fmt::format("given up after {}: {}", duration_text(options.retry_for), outcome.detail)};
  }
  return {.status = SendStatus::kFailed, .delay = delay, .maybe_sent = maybe, .error = outcome.detail};
}

}  // namespace fencepost::notify

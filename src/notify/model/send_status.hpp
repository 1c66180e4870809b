// The life of a mail's row: of a code, of a change of a flow, of a report to operators.
#pragma once

#include "base/lifecycle.hpp"

namespace fencepost::notify {

enum class SendStatus { kPending, kSuccess, kFailed, kDead, kSuppressed };

inline constexpr auto kSendStatus =
    lifecycle<SendStatus>("mail", {
                                      {SendStatus::kPending,
                                       "pending",
                                       {{SendStatus::kSuccess, "the mail server took it"},
                                        {SendStatus::kFailed, "it will be tried again"},
                                        {SendStatus::kDead, "refused for good"},
                                        {SendStatus::kSuppressed, "not wanted any more"}}},
                                      {SendStatus::kSuccess, "success", {}},
                                      {SendStatus::kFailed,
                                       "failed",
                                       {{SendStatus::kSuccess, "the mail server took it"},
                                        {SendStatus::kDead, "refused for good, or tried for too long"},
                                        {SendStatus::kSuppressed, "not wanted any more"}}},
                                      {SendStatus::kDead, "dead", {}},
                                      {SendStatus::kSuppressed, "suppressed", {}},
                                  });

}  // namespace fencepost::notify

// What becomes of a mail after an attempt to send it. Pure.
//
//   the attempt                      the row becomes
//   sent                             success
//   not sent, or perhaps sent        failed, and is tried again; dead when it was tried for options.retry_for
//   not tried                        as it was, and is due again soon
//   refused                          dead
//   refused: no such mailbox         dead, and the address is not deliverable
#pragma once

#include <chrono>
#include <string>

#include "base/random.hpp"
#include "notify/model/send_status.hpp"
#include "notify/options.hpp"
#include "notify/transport/mail_transport.hpp"

namespace fencepost::notify {

struct SendDecision {
  SendStatus status = SendStatus::kPending;  // kPending: the attempt does not count, and is made again after `delay`
  std::chrono::milliseconds delay{0};        // until the next attempt
  bool maybe_sent = false;
  bool unknown_address = false;
  std::string error;  // empty: none
};

// `failures`: attempts that failed before. `age`: how long ago the mail was first due.
SendDecision decide(const SendOutcome& outcome, std::int64_t failures, std::chrono::milliseconds age,
                    const EmailOptions& options, Random& random);

// The wait doubles with each failure, up to retry_cap; a random half of it is left out, so that mails that failed
// together are not all retried together.
std::chrono::milliseconds retry_delay(std::int64_t failures, const EmailOptions& options, Random& random);

}  // namespace fencepost::notify

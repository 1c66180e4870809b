// Follows one transfer through the API, a line for each change.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "base/error.hpp"

#include "cli/poll.hpp"

namespace fencepost::cli {

struct TransferFollowOptions {
  std::optional<std::chrono::milliseconds> timeout;  // none: as long as it takes
  bool json = false;                                 // the API's document for each change, in place of the line
};

// How it ended, as the process's exit code: kExitDone when it is completed, kExitFailedForGood when it is rejected,
// kExitNotYet when the time is over. Errors: as poll_until.
Result<int> follow_transfer(const PollWorld& world, const std::string& target, const TransferFollowOptions& options);

}  // namespace fencepost::cli

// Follows one transfer through the API and prints a line for each change.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "base/error.hpp"

#include "cli/poll.hpp"

namespace fencepost::cli {

struct TransferFollowOptions {
  std::optional<std::chrono::milliseconds> timeout;  // none: no limit
  bool json = false;                                 // the API's document for each change, in place of the line
};

// Returns the process's exit code: kExitDone if the transfer is completed, kExitFailedForGood if it is rejected,
// kExitNotYet if the timeout passed first. Errors: as poll_until.
Result<int> follow_transfer(const PollWorld& world, const std::string& target, const TransferFollowOptions& options);

}  // namespace fencepost::cli

// Follows the scan of a contract's history to its end.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "base/error.hpp"

#include "cli/poll.hpp"

namespace fencepost::cli {

struct ImportFollowOptions {
  std::optional<std::chrono::milliseconds> timeout;
  bool json = false;  // print the contract once, at the end
  bool live = false;  // a progress bar; otherwise a line for every tenth and for each new error
};

// Returns the exit code: kExitDone when the history is complete, kExitNotYet when the timeout passes first, kExitFailed
// when the scan was halted at something that cannot be decoded. A scan that fails otherwise is shown and waited for:
// the node retries it. `target`: the contract's path.
Result<int> follow_import(const PollWorld& world, const std::string& target, const ImportFollowOptions& options);

}  // namespace fencepost::cli

// Follows one transfer through the API, a line for each change.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "base/error.hpp"

#include "cli/api_watch.hpp"

namespace fencepost {

struct TransferWatchOptions {
  std::optional<std::chrono::milliseconds> timeout;  // none: as long as it takes
  bool json = false;                                 // the API's document for each change, in place of the line
};

// How it ended, as the process's exit code: kExitDone when it is completed, kExitFailedForGood when it is rejected,
// kExitNotYet when the time is over. Errors: as look_until.
Result<int> watch_transfer(const WatchWorld& world, const std::string& target, const TransferWatchOptions& options);

}  // namespace fencepost

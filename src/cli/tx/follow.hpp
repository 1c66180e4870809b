// Follows one transaction through the API and draws its life as it happens.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "cli/poll.hpp"
#include "cli/tx/progress.hpp"

namespace fencepost::cli {

enum class TxGoal { kSubmitted, kMined, kConfirmed };

struct TxFollowOptions {
  TxGoal goal = TxGoal::kConfirmed;
  std::optional<std::chrono::milliseconds> timeout;  // none: as long as it takes
  bool json = false;                                 // a document per line: {"step": …} each, {"tx": …} at the end
  bool live = false;                                 // a terminal: the progress line is drawn over and over
  Paint paint = Paint::kPlain;
};

// How it ended, as the process's exit code: kExitDone when it got there, kExitFailedForGood when it is FAILED_FINAL,
// kExitNotYet when the time is over. The error when there is no such transaction or it may not be seen; and when the
// server cannot be reached for a minute: a node that restarts meanwhile is only waited for.
Result<int> follow_tx(const PollWorld& world, const std::string& tx_id, const TxFollowOptions& options);

}  // namespace fencepost::cli

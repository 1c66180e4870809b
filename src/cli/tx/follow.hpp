// Follows one transaction through the API and prints its progress.
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
  std::optional<std::chrono::milliseconds> timeout;  // none: no limit
  bool json = false;  // one document per line: {"step": …} for each step, {"tx": …} at the end
  bool live = false;  // a terminal: the progress line is redrawn in place
  Paint paint = Paint::kPlain;
};

// Returns the process's exit code: kExitDone if the goal is reached, kExitFailedForGood if the transaction is
// FAILED_FINAL, or was mined and reverted when that was the goal, kExitNotYet if the timeout passed first. Errors: the
// transaction does not exist or may not be seen; the server was unreachable for a minute (shorter outages are retried).
Result<int> follow_tx(const PollWorld& world, const std::string& tx_id, const TxFollowOptions& options);

}  // namespace fencepost::cli

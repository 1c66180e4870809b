// `fencepost timelock verify`: the pages of POST /api/v1/timelocks/verify, one after the other.
#pragma once

#include <boost/json/object.hpp>

#include "base/error.hpp"

#include "cli/poll.hpp"

namespace fencepost::cli {

// `scope`: the body without the cursor. Prints each difference as it is found and a summary, or one JSON object at the
// end. Returns the exit code: kExitDone; kExitFailed when anything differs; kExitUnavailable when nothing differs but
// not everything could be checked.
Result<int> verify_flows(const PollWorld& world, boost::json::object scope, bool as_json);

}  // namespace fencepost::cli

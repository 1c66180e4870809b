// Named points at which a test can kill or stop the process. With FENCEPOST_TEST_KILL_AT=submitter.claimed the process
// kills itself (as kill -9 would) when it reaches that point, with submitter.claimed:3 the third time.
// FENCEPOST_TEST_STOP_AT stops the process there instead, until SIGCONT.
//
// Put a point after every commit and every external call on a path that must survive a crash, and before a commit that
// must not happen after the process was suspended for too long.
#pragma once

#include <string_view>

namespace fencepost {

void test_point(std::string_view name);

}  // namespace fencepost

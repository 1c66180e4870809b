// Places where a test may end or stop the process, to see what is left: FENCEPOST_TEST_KILL_AT=submitter.claimed kills
// it (as kill -9 would) when it gets there, FENCEPOST_TEST_KILL_AT=submitter.claimed:3 the third time.
// FENCEPOST_TEST_STOP_AT stops it there instead, until SIGCONT.
//
// Put one after every commit and every call to the outside on a path that must survive a crash, and before a commit
// that must not happen when the process has slept too long.
#pragma once

#include <string_view>

namespace fencepost {

void test_point(std::string_view name);

}  // namespace fencepost

// Places where a test may end the process, to see what is left: FENCEPOST_KILL_AT=submitter.claimed kills it (as
// kill -9 would) when it gets there. FENCEPOST_KILL_AT=submitter.claimed:3 the third time.
//
// Put one after every commit and every call to the outside on a path that must survive a crash.
#pragma once

#include <string_view>

namespace fencepost {

void test_point(std::string_view name);

}  // namespace fencepost

#include "tests/support/process.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace fencepost::test {
namespace {

TEST(run_command, gathers_what_a_command_says_and_how_it_ends) {
  const auto done = run_command({"/bin/sh", "-c", "head -c 200000 /dev/zero; echo \"$WORD\" >&2; exit 3"}, {"WORD=oh"});
  EXPECT_EQ(done.status, (ExitStatus{3, 0}));
  EXPECT_EQ(done.out.size(), 200000U);
  EXPECT_EQ(done.err, "oh\n");
}

TEST(run_command, does_not_wait_for_ever) {
  EXPECT_THROW(run_command({"sleep", "1000"}, {}, std::chrono::milliseconds(50)), Exception);
}

TEST(run_command, a_command_that_closes_its_output_is_still_waited_for) {
  const auto done = run_command({"/bin/sh", "-c", "exec >&- 2>&-; sleep 0.1; exit 4"});
  EXPECT_EQ(done.status, (ExitStatus{4, 0}));
}

}  // namespace
}  // namespace fencepost::test

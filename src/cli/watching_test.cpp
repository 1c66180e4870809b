#include "cli/watching.hpp"

#include <gtest/gtest.h>

#include "cli/program_name.hpp"

namespace fencepost::cli {
namespace {

TEST(watching, the_command_that_looks_again_names_the_node_but_not_the_key) {
  EXPECT_EQ(command_again("tx watch t", {}), program_name() + " tx watch t");
  EXPECT_EQ(command_again("tx watch t", {.url = "http://n:1", .api_key = "fp_secret", .data_dir = "my var"}),
            program_name() + " tx watch t --url http://n:1 --data-dir 'my var' --api-key …");
}

}  // namespace
}  // namespace fencepost::cli

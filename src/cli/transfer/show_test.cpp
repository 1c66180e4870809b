#include "cli/transfer/show.hpp"

#include <gtest/gtest.h>

namespace fencepost::cli {
namespace {

TEST(transfer_show, the_query_of_a_list_has_the_given_filters) {
  TransferListFlags flags;
  flags.guild = "7";
  EXPECT_EQ(transfer_list_target(flags, 50, ""), "/api/v1/transfers?guildId=7&limit=50");
  flags.status = "a&b";
  EXPECT_EQ(transfer_list_target(flags, 7, "12"), "/api/v1/transfers?guildId=7&limit=7&status=a%26b&cursor=12");
}

}  // namespace
}  // namespace fencepost::cli

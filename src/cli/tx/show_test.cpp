#include "cli/tx/show.hpp"

#include <gtest/gtest.h>

namespace fencepost::cli {
namespace {

TEST(tx_show, the_query_of_a_list_has_the_given_filters) {
  TxListFlags flags;
  EXPECT_EQ(list_target(flags, 50, ""), "/api/v1/tx?limit=50");
  flags.signer = "0xaa";
  flags.state = "a&B";
  flags.chain_id = 5;
  EXPECT_EQ(list_target(flags, 7, "c/1"), "/api/v1/tx?limit=7&chainId=5&signer=0xaa&state=A%26B&cursor=c%2F1");
}

}  // namespace
}  // namespace fencepost::cli

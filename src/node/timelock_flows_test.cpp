#include "node/timelock_flows.hpp"

#include <gtest/gtest.h>

namespace fencepost {
namespace {

using std::chrono::seconds;

timelock::ScanReport scanned(std::int64_t chain_id, std::int64_t block) {
  timelock::ScanReport out;
  out.chain_id = chain_id;
  out.point.number = block;
  out.point.timestamp = 1000 + block;
  return out;
}

evm::ChainStatus followed(std::int64_t head, bool synced = true) {
  evm::ChainStatus out;
  out.chain_id = 1;
  out.synced = synced;
  out.head.emplace();
  out.head->number = head;
  out.head->timestamp = 1000 + head;
  return out;
}

TEST(newest_head, is_the_highest_block_that_a_node_scanned_or_this_one_sees) {
  const std::vector reports{scanned(1, 50), scanned(2, 90)};
  EXPECT_EQ(newest_head(1, reports, followed(60)).block, 60);
  EXPECT_EQ(newest_head(1, reports, followed(40)).block, 50);
  EXPECT_EQ(newest_head(1, reports, std::nullopt).block, 50) << "only other nodes follow the chain";
  EXPECT_EQ(newest_head(1, reports, followed(60)).timestamp, TimePoint(seconds(1060)));
}

TEST(newest_head, is_not_known_while_this_node_is_behind_the_chain) {
  try {
    newest_head(1, {scanned(1, 50)}, followed(60, false));
    ADD_FAILURE() << "a subscription would begin at an old block";
  } catch (const Exception& e) {
    EXPECT_EQ(e.error().kind, ErrorKind::kUnavailable);
    EXPECT_EQ(e.error().code, "rpc_unavailable");
    EXPECT_EQ(e.error().retry_after, seconds(5));
  }
}

}  // namespace
}  // namespace fencepost

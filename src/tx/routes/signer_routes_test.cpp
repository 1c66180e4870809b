#include "tx/routes/signer_routes.hpp"

#include <gtest/gtest.h>

namespace fencepost::tx {
namespace {

using namespace std::chrono_literals;

ClusterNode heard_at(std::chrono::milliseconds since_start) {
  ClusterNode node;
  node.heartbeat_at = TimePoint(since_start);
  return node;
}

TEST(signer_routes, a_node_is_alive_until_it_misses_more_than_three_heartbeats) {
  const std::vector<ClusterNode> nodes{heard_at(20s), heard_at(17s), heard_at(11s), heard_at(10'999ms), heard_at(0s)};
  EXPECT_EQ(alive_nodes(nodes, 3s), (std::vector<bool>{true, true, true, false, false}));
}

TEST(signer_routes, no_nodes_are_no_nodes) {
  EXPECT_TRUE(alive_nodes({}, 3s).empty());
}

TEST(signer_routes, finality_is_told_as_it_is_configured) {
  EXPECT_EQ(to_string(Finality{Finality::Kind::kDepth, 12}), "12");
  EXPECT_EQ(to_string(Finality{Finality::Kind::kSafe, 12}), "safe");
  EXPECT_EQ(to_string(Finality{Finality::Kind::kFinalized, 12}), "finalized");
}

}  // namespace
}  // namespace fencepost::tx

#include "cluster/node_registry.hpp"

#include <gtest/gtest.h>

namespace fencepost::cluster {
namespace {

using namespace std::chrono_literals;

ClusterNode heard_at(std::chrono::milliseconds since_start) {
  ClusterNode node;
  node.heartbeat_at = TimePoint(since_start);
  return node;
}

TEST(node_registry, a_node_is_alive_until_it_misses_more_than_three_heartbeats) {
  const std::vector<ClusterNode> nodes{heard_at(20s), heard_at(17s), heard_at(11s), heard_at(10'999ms), heard_at(0s)};
  EXPECT_EQ(alive_nodes(nodes, 3s), (std::vector<bool>{true, true, true, false, false}));
}

TEST(node_registry, an_empty_list_has_no_live_node) {
  EXPECT_TRUE(alive_nodes({}, 3s).empty());
}

}  // namespace
}  // namespace fencepost::cluster

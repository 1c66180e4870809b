#include "outbox/delivery/claim_plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fencepost::outbox {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

ConsumerView view(const std::string& consumer, const std::string& owner = "", std::int64_t token = 0) {
  return {.consumer = consumer, .owner_node = owner, .token = token, .claimed = !owner.empty()};
}

std::map<std::string, Claim> mine(const std::vector<std::string>& consumers) {
  std::map<std::string, Claim> out;
  for (const auto& consumer : consumers) out[consumer] = {.consumer = consumer, .node = "me", .token = 1};
  return out;
}

TEST(ClaimPlanTest, a_node_alone_takes_everything_that_is_free) {
  const ConsumerOverview overview{{view("w/1"), view("w/2"), view("w/3")}, {"w"}};
  const auto plan = plan_claims(overview, {"w"}, {}, 100);
  EXPECT_THAT(plan.take, ElementsAre(Pair("w", 3)));
  EXPECT_EQ(plan.unclaimed, 3);
}

TEST(ClaimPlanTest, takes_at_most_its_share) {
  const ConsumerOverview overview{{view("w/1"), view("w/2"), view("w/3")}, {"w", "w"}};
  EXPECT_THAT(plan_claims(overview, {"w"}, {}, 100).take, ElementsAre(Pair("w", 2)));
  EXPECT_THAT(plan_claims(overview, {"w"}, {}, 1).take, ElementsAre(Pair("w", 1)));
}

TEST(ClaimPlanTest, gives_back_what_is_more_than_its_share) {
  const ConsumerOverview overview{{view("w/1", "me", 1), view("w/2", "me", 1), view("w/3", "me", 1)}, {"w", "w"}};
  const auto plan = plan_claims(overview, {"w"}, mine({"w/1", "w/2", "w/3"}), 100);
  EXPECT_THAT(plan.release, ElementsAre("w/3"));
  EXPECT_THAT(plan.take, IsEmpty());
}

// Claims must not move for ever: with every node at or below ceil(consumers / nodes), all plans are empty.
TEST(ClaimPlanTest, claims_rest_once_they_are_spread_and_every_consumer_is_served) {
  for (std::size_t consumers = 1; consumers <= 12; ++consumers) {
    for (std::size_t nodes = 1; nodes <= 5; ++nodes) {
      ConsumerOverview overview;
      for (std::size_t i = 0; i < consumers; ++i) overview.consumers.push_back(view("w/" + std::to_string(100 + i)));
      overview.worker_kinds.assign(nodes, "w");
      std::vector<std::map<std::string, Claim>> claims(nodes);
      bool moved = true;
      for (int round = 0; moved; ++round) {
        ASSERT_LT(round, 4) << consumers << " consumers, " << nodes << " nodes";
        moved = false;
        for (std::size_t n = 0; n < nodes; ++n) {
          const auto node = "node-" + std::to_string(n);
          auto plan = plan_claims(overview, {"w"}, claims[n], 100);
          moved = moved || !plan.release.empty() || !plan.take.empty();
          for (auto& seen : overview.consumers) {
            if (plan.take["w"] == 0 || seen.claimed) continue;
            --plan.take["w"];
            seen = view(seen.consumer, node, 1);
            claims[n][seen.consumer] = {.consumer = seen.consumer, .node = node, .token = 1};
          }
        }
      }
      for (const auto& seen : overview.consumers) EXPECT_TRUE(seen.claimed) << seen.consumer;
    }
  }
}

TEST(ClaimPlanTest, drops_what_another_node_has_what_expired_and_what_is_gone) {
  auto expired = view("w/2", "me", 1);
  expired.claimed = false;
  const ConsumerOverview overview{{view("w/1", "other", 2), expired, view("w/3", "me", 2)}, {"w"}};
  const auto plan = plan_claims(overview, {"w"}, mine({"w/1", "w/2", "w/3", "w/4"}), 100);
  EXPECT_THAT(plan.drop, ElementsAre("w/1", "w/2", "w/3", "w/4"));
  EXPECT_THAT(plan.take, ElementsAre(Pair("w", 1)));  // the expired one
}

TEST(ClaimPlanTest, restarts_what_changed_and_releases_what_is_paused) {
  auto changed = view("w/1", "me", 1);
  changed.revision = 1;
  auto paused = view("w/2", "me", 1);
  paused.active = false;
  const auto plan = plan_claims({{changed, paused}, {"w"}}, {"w"}, mine({"w/1", "w/2"}), 100);
  EXPECT_THAT(plan.restart, ElementsAre("w/1"));
  EXPECT_THAT(plan.release, ElementsAre("w/2"));
}

TEST(ClaimPlanTest, counts_only_nodes_that_know_the_kind) {
  const ConsumerOverview overview{{view("n/1"), view("n/2"), view("w/1")}, {"w", "w", "n"}};
  const auto plan = plan_claims(overview, {"n", "w"}, {}, 100);
  EXPECT_THAT(plan.take, ElementsAre(Pair("n", 2), Pair("w", 1)));
  EXPECT_THAT(plan_claims(overview, {"w"}, {}, 100).take, ElementsAre(Pair("w", 1)));
}

}  // namespace
}  // namespace fencepost::outbox

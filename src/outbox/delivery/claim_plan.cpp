#include "outbox/delivery/claim_plan.hpp"

#include <algorithm>

namespace fencepost::outbox {
namespace {

struct KindCount {
  std::size_t consumers = 0;  // active
  std::size_t nodes = 0;
  std::size_t unclaimed = 0;
  std::vector<std::string> served;  // by this node, and not dropped or released

  std::size_t share() const {
    const auto sharing = std::max<std::size_t>(nodes, 1);
    return (consumers + sharing - 1) / sharing;
  }
};

using KindCounts = std::map<std::string, KindCount, std::less<>>;

// Decides what happens to one claim of this node.
void judge(const ConsumerView& view, const Claim& claim, ClaimPlan& plan, KindCount& count) {
  if (view.owner_node != claim.node || view.token != claim.token || !view.claimed) {
    plan.drop.push_back(view.consumer);
  } else if (!view.active) {
    plan.release.push_back(view.consumer);
  } else {
    if (view.revision != claim.revision) plan.restart.push_back(view.consumer);
    count.served.push_back(view.consumer);
  }
}

}  // namespace

ClaimPlan plan_claims(const ConsumerOverview& overview, const std::set<std::string>& kinds,
                      const std::map<std::string, Claim>& mine, std::size_t most) {
  ClaimPlan plan;
  KindCounts counts;
  for (const auto& kind : kinds) counts.try_emplace(kind);
  for (const auto& kind : overview.worker_kinds) {
    if (const auto found = counts.find(kind); found != counts.end()) ++found->second.nodes;
  }
  std::set<std::string, std::less<>> seen;
  for (const auto& view : overview.consumers) {
    const auto found = counts.find(kind_of(view.consumer));
    if (found == counts.end()) continue;
    auto& count = found->second;
    if (view.active) ++count.consumers;
    if (view.active && !view.claimed) ++count.unclaimed;
    if (const auto claim = mine.find(view.consumer); claim != mine.end()) {
      seen.insert(view.consumer);
      judge(view, claim->second, plan, count);
    }
  }
  for (const auto& [consumer, claim] : mine) {
    if (!seen.contains(consumer)) plan.drop.push_back(consumer);
  }
  std::size_t room = most;
  for (auto& [kind, count] : counts) {
    const auto share = std::min(count.share(), room);
    while (count.served.size() > share) {
      plan.release.push_back(std::move(count.served.back()));
      count.served.pop_back();
    }
    room -= count.served.size();
    const auto wanted = std::min({share - count.served.size(), count.unclaimed, room});
    if (wanted > 0) plan.take.emplace(kind, wanted);
    room -= wanted;
    plan.unclaimed += count.unclaimed;
  }
  std::erase_if(plan.restart,
                [&](const auto& consumer) { return std::ranges::find(plan.release, consumer) != plan.release.end(); });
  return plan;
}

}  // namespace fencepost::outbox

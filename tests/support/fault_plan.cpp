#include "tests/support/fault_plan.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/random.hpp"

namespace fencepost::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr auto kFirstAt = 2000ms;  // the chain needs blocks for a reorg, and the nodes need to start

class Planner {
 public:
  explicit Planner(const FaultPlanOptions& options)
      : options_(options), random_(options.seed), free_at_(options.nodes * options.endpoints), up_at_(options.nodes) {
    for (auto kind = 0; kind <= static_cast<int>(FaultKind::kDroppedPool); ++kind) {
      first_round_.push_back(static_cast<FaultKind>(kind));
    }
    for (auto left = first_round_.size(); left > 1; --left) {  // std::shuffle differs between libraries
      std::swap(first_round_[left - 1], first_round_[random_.next() % left]);
    }
  }

  std::vector<PlannedFault> plan() {
    std::vector<PlannedFault> out;
    for (auto now = kFirstAt; now < options_.lasts; now += between(150, 900)) {
      if (auto fault = next(now)) out.push_back(*fault);
    }
    return out;
  }

 private:
  std::int64_t number(std::int64_t from, std::int64_t to) {
    return from + static_cast<std::int64_t>(random_.next() % static_cast<std::uint64_t>(to - from + 1));
  }
  milliseconds between(std::int64_t from, std::int64_t to) { return milliseconds(number(from, to)); }
  FaultKind one_of(FaultKind first, FaultKind last) {
    return static_cast<FaultKind>(number(static_cast<std::int64_t>(first), static_cast<std::int64_t>(last)));
  }

  std::optional<PlannedFault> next(milliseconds now) {
    if (!first_round_.empty()) return first(now);
    const auto dice = number(0, 99);
    if (dice < 65) return lie(now, one_of(FaultKind::kNullReceipts, FaultKind::kLowNonces));
    if (dice < 80) return of_a_node(now, one_of(FaultKind::kKill, FaultKind::kLostSessions));
    return of_the_chain(now, one_of(FaultKind::kReorg, FaultKind::kDroppedPool));
  }

  // The next kind that has not come yet. A lie is told by the endpoint that a node asks first.
  std::optional<PlannedFault> first(milliseconds now) {
    for (auto kind = first_round_.begin(); kind != first_round_.end(); ++kind) {
      auto fault = is_lie(*kind)         ? lie(now, *kind, 0)
                   : is_of_a_node(*kind) ? of_a_node(now, *kind)
                                         : of_the_chain(now, *kind);
      if (!fault) continue;
      first_round_.erase(kind);
      return fault;
    }
    return std::nullopt;
  }

  PlannedFault of_the_chain(milliseconds now, FaultKind kind) {
    return {.at = now, .kind = kind, .amount = number(1, options_.deepest_reorg)};
  }

  std::optional<PlannedFault> lie(milliseconds now, FaultKind kind, std::optional<std::size_t> endpoint = {}) {
    PlannedFault fault{.at = now, .kind = kind};
    fault.node = static_cast<std::size_t>(number(0, static_cast<std::int64_t>(options_.nodes) - 1));
    fault.endpoint = static_cast<std::size_t>(number(0, static_cast<std::int64_t>(options_.endpoints) - 1));
    if (refuses_for_good(fault.kind)) fault.endpoint = 0;
    if (endpoint) fault.endpoint = *endpoint;
    // Some lies last for minutes.
    const bool is_long = options_.lasts >= 3min && number(0, 19) == 0;
    fault.lasts = is_long ? between(30'000, 150'000) : between(500, 8'000);
    if (endpoint) fault.lasts = between(1'000, 2'500);
    fault.lasts = std::min(fault.lasts, options_.lasts - now);
    fault.amount = number(1, 12);
    auto& free_at = free_at_[fault.node * options_.endpoints + fault.endpoint];
    if (free_at > now) return std::nullopt;
    free_at = now + fault.lasts;
    return fault;
  }

  std::optional<PlannedFault> of_a_node(milliseconds now, FaultKind kind) {
    PlannedFault fault{.at = now, .kind = kind};
    fault.node = static_cast<std::size_t>(number(0, static_cast<std::int64_t>(options_.nodes) - 1));
    if (fault.kind == FaultKind::kKill) fault.lasts = between(200, 4'000);
    if (fault.kind == FaultKind::kPause) fault.lasts = options_.longest_lease + between(500, 4'000);
    const auto down = std::ranges::count_if(up_at_, [&](milliseconds at) { return at > now; });
    if (up_at_[fault.node] > now || down + 1 >= static_cast<std::int64_t>(options_.nodes)) return std::nullopt;
    // A node needs some seconds until it leads again.
    if (fault.kind != FaultKind::kLostSessions) up_at_[fault.node] = now + fault.lasts + 3s;
    return fault;
  }

  const FaultPlanOptions& options_;
  SeededRandom random_;
  std::vector<FaultKind> first_round_;  // the kinds that have not come yet
  std::vector<milliseconds> free_at_;   // by node and endpoint
  std::vector<milliseconds> up_at_;     // by node
};

double seconds_of(milliseconds time) {
  return static_cast<double>(time.count()) / 1000;
}

}  // namespace

std::vector<PlannedFault> plan_faults(const FaultPlanOptions& options) {
  return Planner(options).plan();
}

std::string to_text(const PlannedFault& fault) {
  auto text = fmt::format("{:7.1f} s  ", seconds_of(fault.at));
  if (is_lie(fault.kind)) text += fmt::format("node {} endpoint {}: ", fault.node, fault.endpoint);
  if (is_of_a_node(fault.kind)) text += fmt::format("node {}: ", fault.node);
  text += kFaultKinds.name(fault.kind);
  if (fault.amount > 0) text += fmt::format(" ({})", fault.amount);
  if (fault.lasts > 0ms) text += fmt::format(" for {:.1f} s", seconds_of(fault.lasts));
  return text;
}

}  // namespace fencepost::test

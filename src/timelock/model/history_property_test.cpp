// Tests fold and tell with random histories of a contract: reorganizations, events in any order and more than once,
// views that lag, are on another branch, or have only a part of the history.
#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "timelock/model/changes.hpp"
#include "timelock/model/fold.hpp"
#include "timelock/model/stub_timelock_test_support.hpp"

namespace fencepost::timelock {
namespace {

using stub::Dice;
using stub::Head;
using Path = std::vector<FlowStatus>;

constexpr std::uint64_t kRuns = 200;

// A chain that grows and reorganizes; `heads` has every head that it ever had.
struct History {
  std::vector<Head> heads;
  Head head;
};

History make_history(Dice& dice, const stub::Contract& contract) {
  stub::Timelock timelock(dice, contract);
  History out;
  for (int i = 0; i < 50; ++i) {
    if (out.head && dice.chance(15)) {
      for (auto depth = 1 + dice.below(6); depth > 0 && out.head->parent; --depth) out.head = out.head->parent;
    }
    out.head = timelock.mine(out.head);
    out.heads.push_back(out.head);
  }
  return out;
}

std::vector<RawEvent> shuffled_with_duplicates(Dice& dice, std::vector<RawEvent> events) {
  const auto count = events.size();
  for (std::size_t i = 0; i < count; ++i) {
    if (!dice.chance(30)) continue;
    const auto again = events[i];
    events.push_back(again);
  }
  std::ranges::shuffle(events, dice.engine());
  return events;
}

TEST(history_property, any_order_gives_the_generations_that_the_contract_had) {
  std::size_t most_generations = 0;
  std::map<FlowStatus, std::size_t> ends;
  std::size_t ignored = 0;
  for (std::uint64_t seed = 1; seed <= kRuns; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Dice dice(seed);
    const auto history = make_history(dice, stub::random_contract(dice));
    for (const auto& head : history.heads) {
      const auto events = stub::events_of(head);
      const auto flows = fold(shuffled_with_duplicates(dice, events));
      ASSERT_EQ(flows, fold(events));
      ASSERT_EQ(flows, head->generations);
      if (flows.empty()) ignored += events.size();
    }
    most_generations = std::max(most_generations, history.head->generations.size());
    for (const auto& flow : history.head->generations) {
      if (flow.end) ++ends[flow.end->status];
    }
  }
  // A run without these would prove nothing.
  EXPECT_GE(most_generations, 4U);
  EXPECT_GT(ends[FlowStatus::kExecuted], 50U);
  EXPECT_GT(ends[FlowStatus::kCancelled], 100U);
  EXPECT_GT(ignored, 100U);
}

// A store as the scanner keeps it: events arrive in chunks, a reorganization removes those of its blocks.
TEST(history_property, chunks_and_removals_give_the_generations_of_one_clean_pass) {
  std::size_t removed = 0;
  for (std::uint64_t seed = 1; seed <= kRuns; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Dice dice(seed);
    const auto history = make_history(dice, stub::random_contract(dice));
    std::map<std::pair<std::string, std::int64_t>, RawEvent> stored;
    for (const auto& head : history.heads) {
      if (!dice.chance(60) && head != history.head) continue;  // this head was never seen
      std::map<std::string, bool> branch;
      for (const auto* block = head.get(); block != nullptr; block = block->parent.get()) branch[block->hash] = true;
      removed += std::erase_if(stored, [&](const auto& row) { return !branch.contains(row.second.block_hash); });
      for (const auto& event : shuffled_with_duplicates(dice, stub::events_of(head))) {
        stored.emplace(std::pair(event.block_hash, event.position.log_index), event);
      }
    }
    std::vector<RawEvent> events;
    events.reserve(stored.size());
    for (const auto& [key, event] : stored) events.push_back(event);
    ASSERT_EQ(fold(events), history.head->generations);
  }
  EXPECT_GT(removed, 500U);
}

// A consumer of one generation's changes: applies each, and checks that it can be applied.
class Consumer {
 public:
  void apply(const std::vector<Change>& changes) {
    for (const auto& change : changes) change.retracted ? retract(change) : accept(change);
    facts_ = facts_after(facts_, changes);
  }

  const Path& path() const { return path_; }
  const ToldFacts& facts() const { return facts_; }
  std::size_t retractions() const { return retractions_; }
  // How often the status was told.
  std::size_t times_told(FlowStatus status) { return times_told_[status]; }
  // How often the status was told, less how often that was retracted.
  int net(FlowStatus status) { return net_[status]; }

 private:
  void accept(const Change& change) {
    EXPECT_EQ(change.from, last());
    if (change.from) {
      EXPECT_TRUE(kFlow.allowed(*change.from, change.to))
          << kFlow.name(*change.from) << " to " << kFlow.name(change.to);
    } else {
      EXPECT_EQ(change.to, FlowStatus::kWaiting);
    }
    EXPECT_EQ(++net_[change.to], 1) << "told twice: " << kFlow.name(change.to);
    ++times_told_[change.to];
    path_.push_back(change.to);
    log_.push_back(change);
  }
  void retract(const Change& change) {
    ++retractions_;
    ASSERT_FALSE(log_.empty());
    auto told = log_.back();
    told.retracted = true;
    EXPECT_EQ(change, told) << "a retraction repeats what was told";
    EXPECT_EQ(--net_[change.to], 0);
    path_.pop_back();
    log_.pop_back();
  }
  std::optional<FlowStatus> last() const { return path_.empty() ? std::nullopt : std::optional(path_.back()); }

  Path path_;
  std::vector<Change> log_;
  ToldFacts facts_;
  std::map<FlowStatus, int> net_;
  std::map<FlowStatus, std::size_t> times_told_;
  std::size_t retractions_ = 0;
};

class Teller {
 public:
  explicit Teller(stub::Contract contract) : contract_(contract) {}

  // One pass over a view, as the scanner makes it. Returns whether anything was told.
  bool pass(const std::vector<RawEvent>& events, std::int64_t clock, std::int64_t confirmed) {
    const auto flows = fold(events);
    if (consumers_.size() < flows.size()) consumers_.resize(flows.size());
    bool told = false;
    for (std::size_t i = 0; i < consumers_.size(); ++i) {
      const auto now = i < flows.size() ? std::optional(flows[i]) : std::nullopt;
      auto& consumer = consumers_[i];
      const auto out =
          tell(consumer.path(), now, consumer.facts(), clock, confirmed, contract_.grace, contract_.standard);
      consumer.apply(out.changes);
      EXPECT_EQ(consumer.path(), out.told);
      check(out, now, confirmed);
      told = told || !out.changes.empty();
    }
    return told;
  }

  // What the clock changes, as FlowStatusRefresher makes it.
  void refresh(const std::vector<RawEvent>& events, std::int64_t clock) {
    const auto flows = fold(events);
    for (std::size_t i = 0; i < flows.size() && i < consumers_.size(); ++i) {
      auto& consumer = consumers_[i];
      for (const auto change : {ready_change, expired_change}) {
        if (const auto one = change(consumer.path(), flows[i], clock, contract_.grace, contract_.standard)) {
          consumer.apply({*one});
        }
      }
    }
  }

  std::vector<Consumer>& consumers() { return consumers_; }

 private:
  static void check(const Outcome& out, const std::optional<Generation>& now, std::int64_t confirmed) {
    if (!now) {
      EXPECT_TRUE(out.told.empty());
      EXPECT_FALSE(out.confirmed);
      return;
    }
    if (now->end) EXPECT_EQ(out.status, now->end->status);
    if (out.next_block) EXPECT_GT(*out.next_block, confirmed);
    EXPECT_EQ(out.confirmed, !out.told.empty() && out.told.back() == out.status);
    EXPECT_NE(out.confirmed, out.next_block.has_value());
  }

  stub::Contract contract_;
  std::vector<Consumer> consumers_;
};

Path without_time(Path path) {
  std::erase_if(path, [](FlowStatus s) { return s == FlowStatus::kReady || s == FlowStatus::kExpired; });
  return path;
}

struct Tally {
  std::size_t retractions = 0;
  std::map<FlowStatus, std::size_t> told;
};

void run(std::uint64_t seed, Tally& tally) {
  Dice dice(seed);
  const auto contract = stub::random_contract(dice);
  const auto history = make_history(dice, contract);
  Teller teller(contract);
  for (const auto& head : history.heads) {
    if (!dice.chance(70)) continue;
    // Sometimes the history before some block is not scanned yet, and sometimes the view lags or is on an old branch.
    const auto& view =
        dice.chance(80) ? head : history.heads[static_cast<std::size_t>(dice.below(std::ssize(history.heads)))];
    const auto first = dice.chance(15) ? dice.below(view->number + 1) : 0;
    const auto events = shuffled_with_duplicates(dice, stub::events_of(view, first));
    teller.pass(events, view->timestamp, view->number - dice.below(5));
    if (dice.chance(70)) teller.refresh(events, view->timestamp);
  }

  const auto events = stub::events_of(history.head);
  const auto clock = history.head->timestamp;
  teller.pass(events, clock, history.head->number);
  teller.refresh(events, clock);
  EXPECT_FALSE(teller.pass(events, clock, history.head->number)) << "told again";

  Teller clean(contract);
  clean.pass(events, clock, history.head->number);
  const auto& flows = history.head->generations;
  for (std::size_t i = 0; i < teller.consumers().size(); ++i) {
    auto& consumer = teller.consumers()[i];
    tally.retractions += consumer.retractions();
    for (std::size_t s = 0; s < kFlow.size(); ++s) {
      const auto status = static_cast<FlowStatus>(s);
      tally.told[status] += consumer.times_told(status);
      EXPECT_EQ(consumer.net(status), std::ranges::count(consumer.path(), status)) << kFlow.name(status);
    }
    if (i >= flows.size()) {
      EXPECT_TRUE(consumer.path().empty());
      continue;
    }
    EXPECT_EQ(without_time(consumer.path()), without_time(clean.consumers()[i].path()));
    ASSERT_FALSE(consumer.path().empty());
    EXPECT_EQ(consumer.path().back(), status_at(flows[i], contract.standard, contract.grace, clock));
  }
}

TEST(history_property, every_change_is_told_once_net_of_retractions) {
  Tally tally;
  for (std::uint64_t seed = 1; seed <= kRuns && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    run(seed, tally);
  }
  // A run that rarely got there would prove nothing.
  EXPECT_GT(tally.retractions, 500U);
  for (std::size_t s = 0; s < kFlow.size(); ++s) {
    EXPECT_GT(tally.told[static_cast<FlowStatus>(s)], 30U) << kFlow.name(static_cast<FlowStatus>(s));
  }
}

}  // namespace
}  // namespace fencepost::timelock

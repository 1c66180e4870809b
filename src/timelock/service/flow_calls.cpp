#include "timelock/service/flow_calls.hpp"

#include <algorithm>

#include "timelock/model/fold.hpp"
#include "timelock/service/call_explainer.hpp"

namespace fencepost::timelock {
namespace {

constexpr std::size_t kMaxFolded = 10'000;  // events of one flow

std::optional<Generation> generation_of(const std::vector<StoredEvent>& stored, std::int64_t number, bool orphaned) {
  std::vector<RawEvent> events;
  for (const auto& one : stored) {
    if (orphaned || !one.orphaned) events.push_back(one.event);
  }
  auto generations = fold(events);
  const auto found = std::ranges::find(generations, number, &Generation::number);
  if (found == generations.end()) return std::nullopt;
  return std::move(*found);
}

// A generation that a reorg removed has its calls in orphaned events only.
Generation calls_of(const std::vector<StoredEvent>& stored, std::int64_t number) {
  if (auto found = generation_of(stored, number, false)) return std::move(*found);
  return generation_of(stored, number, true).value_or(Generation{});
}

}  // namespace

awaitable<FlowCalls> read_flow_calls(pg::Pool& pool, FlowKey key, std::int64_t generation) {
  FlowCalls out;
  out.events = co_await list_flow_events(pool, key, kMaxFolded);
  auto folded = calls_of(out.events, generation);
  out.salt = std::move(folded.salt);
  out.calls = std::move(folded.calls);
  out.explained = co_await explain_calls(pool, key.chain_id, out.calls);
  co_return out;
}

}  // namespace fencepost::timelock

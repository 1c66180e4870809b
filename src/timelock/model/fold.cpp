#include "timelock/model/fold.hpp"

#include <algorithm>
#include <limits>
#include <string_view>
#include <tuple>
#include <utility>

namespace fencepost::timelock {
namespace {

// 9224318015999 is 294276-12-31 23:59:59 UTC, the last second of PostgreSQL's timestamptz.
constexpr std::int64_t kLastSecond = 9'224'318'015'999;
constexpr std::string_view kNoPredecessor = "0x0000000000000000000000000000000000000000000000000000000000000000";

Uint256 saturating_sum(const Uint256& a, const Uint256& b) {
  const auto most = std::numeric_limits<Uint256>::max();
  return a > most - b ? most : Uint256(a + b);
}

// Timestamps before 1970 do not exist on a chain; a negative number counts as 0.
Uint256 seconds_of(std::int64_t timestamp) {
  return Uint256(std::max<std::int64_t>(0, timestamp));
}

std::vector<const RawEvent*> in_chain_order(std::span<const RawEvent> events) {
  std::vector<const RawEvent*> sorted;
  sorted.reserve(events.size());
  for (const auto& event : events) sorted.push_back(&event);
  // Two blocks at one height are not on one branch; the hash only makes the order complete.
  std::ranges::sort(sorted, {}, [](const RawEvent* e) { return std::tie(e->position, e->block_hash); });
  const auto twice = std::ranges::unique(sorted, [](const RawEvent* a, const RawEvent* b) {
    return a->position.log_index == b->position.log_index && a->block_hash == b->block_hash;
  });
  sorted.erase(twice.begin(), twice.end());
  return sorted;
}

Generation begin(const RawEvent& event, std::int64_t number) {
  Generation out{.number = number,
                 .queue = {.position = event.position,
                           .block_hash = event.block_hash,
                           .tx_hash = event.tx_hash,
                           .timestamp = event.block_timestamp,
                           .initiator = event.tx_from,
                           .via = event.tx_to},
                 .delay = event.delay,
                 .predecessor = event.predecessor,
                 .calls = {event.call}};
  out.eta = event.delay ? saturating_sum(seconds_of(event.block_timestamp), *event.delay) : event.eta.value_or(0);
  return out;
}

// A batch emits its calls in the order of their indexes. Each index counts once, whatever a contract emits.
void add_call(Generation& flow, const RawEvent& event) {
  if (flow.queue.tx_hash != event.tx_hash || flow.queue.block_hash != event.block_hash) return;
  const auto place = std::ranges::lower_bound(flow.calls, event.call.index, {}, &Call::index);
  if (place != flow.calls.end() && place->index == event.call.index) return;
  flow.calls.insert(place, event.call);
}

void end(Generation& flow, FlowStatus status, const RawEvent& event) {
  flow.end = EndFacts{.status = status,
                      .position = event.position,
                      .block_hash = event.block_hash,
                      .tx_hash = event.tx_hash,
                      .timestamp = event.block_timestamp};
}

void apply(std::vector<Generation>& flows, const RawEvent& event) {
  const bool open = !flows.empty() && !flows.back().end;
  switch (event.type) {
    case EventType::kQueueTransaction:
      if (!open) flows.push_back(begin(event, std::ssize(flows) + 1));
      return;
    case EventType::kCallScheduled:
      if (open) {
        add_call(flows.back(), event);
      } else {
        flows.push_back(begin(event, std::ssize(flows) + 1));
      }
      return;
    case EventType::kCallSalt:
      if (open && flows.back().salt.empty()) flows.back().salt = event.salt;
      return;
    case EventType::kExecuteTransaction:
    case EventType::kCallExecuted:
      if (open) end(flows.back(), FlowStatus::kExecuted, event);
      return;
    case EventType::kCancelTransaction:
    case EventType::kCancelled:
      if (open) end(flows.back(), FlowStatus::kCancelled, event);
      return;
    case EventType::kNewAdmin:
    case EventType::kNewPendingAdmin:
    case EventType::kNewDelay:
    case EventType::kMinDelayChange:
    case EventType::kRoleGranted:
    case EventType::kRoleRevoked:
    case EventType::kRoleAdminChanged:
      return;
  }
}

}  // namespace

std::vector<Generation> fold(std::span<const RawEvent> events) {
  std::vector<Generation> flows;
  for (const auto* event : in_chain_order(events)) apply(flows, *event);
  return flows;
}

std::optional<std::int64_t> due_time(const Uint256& seconds) {
  if (seconds > kLastSecond) return std::nullopt;
  return static_cast<std::int64_t>(seconds);
}

Uint256 expires_after(const Uint256& eta, const Uint256& grace) {
  return saturating_sum(eta, grace);
}

bool is_ready(const Generation& flow, std::int64_t clock) {
  return seconds_of(clock) >= flow.eta;
}

bool is_expired(const Generation& flow, Standard standard, const Uint256& grace, std::int64_t clock) {
  return standard == Standard::kCompound && seconds_of(clock) > expires_after(flow.eta, grace);
}

FlowStatus status_at(const Generation& flow, Standard standard, const Uint256& grace, std::int64_t clock) {
  if (flow.end) return flow.end->status;
  if (is_expired(flow, standard, grace, clock)) return FlowStatus::kExpired;
  return is_ready(flow, clock) ? FlowStatus::kReady : FlowStatus::kWaiting;
}

bool is_blocked(const Generation& flow, std::optional<FlowStatus> predecessor) {
  if (flow.end || flow.predecessor.empty() || flow.predecessor == kNoPredecessor) return false;
  return predecessor != FlowStatus::kExecuted;
}

}  // namespace fencepost::timelock

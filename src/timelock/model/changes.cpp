#include "timelock/model/changes.hpp"

#include <utility>

namespace fencepost::timelock {
namespace {

bool is_end(FlowStatus status) {
  return status == FlowStatus::kExecuted || status == FlowStatus::kCancelled;
}

bool by_time(FlowStatus status) {
  return status == FlowStatus::kReady || status == FlowStatus::kExpired;
}

bool still_true(FlowStatus status, const Generation& now, std::int64_t clock, const Uint256& grace, Standard standard) {
  switch (status) {
    case FlowStatus::kWaiting:
      return true;
    case FlowStatus::kReady:
      return is_ready(now, clock);
    case FlowStatus::kExpired:
      return is_expired(now, standard, grace, clock);
    case FlowStatus::kExecuted:
    case FlowStatus::kCancelled:
      break;
  }
  return now.end && now.end->status == status;
}

std::optional<FlowStatus> last_of(const std::vector<FlowStatus>& told) {
  return told.empty() ? std::nullopt : std::optional(told.back());
}

// Removes the last status from the path; the change that told it, as it was told.
Change take_back(std::vector<FlowStatus>& told, const ToldFacts& before) {
  Change change{.to = told.back(), .retracted = true};
  told.pop_back();
  change.from = last_of(told);
  switch (change.to) {
    case FlowStatus::kWaiting:
      change.tx_hash = before.queue_tx_hash;
      change.changed_at = before.queue_at;
      break;
    case FlowStatus::kReady:
      change.changed_at = before.ready_at;
      break;
    case FlowStatus::kExpired:
      change.changed_at = before.expired_at;
      break;
    case FlowStatus::kExecuted:
    case FlowStatus::kCancelled:
      change.tx_hash = before.end_tx_hash;
      change.changed_at = before.end_at;
      break;
  }
  return change;
}

void tell_one(Outcome& out, FlowStatus to, const std::string& tx_hash, std::int64_t changed_at) {
  out.changes.push_back({.from = last_of(out.told), .to = to, .tx_hash = tx_hash, .changed_at = changed_at});
  out.told.push_back(to);
}

// Tells what the events say, as far as their blocks are confirmed.
void tell_events(Outcome& out, const Generation& now, std::int64_t confirmed_block) {
  if (out.told.empty()) {
    if (now.queue.position.block_number > confirmed_block) {
      out.next_block = now.queue.position.block_number;
      return;
    }
    tell_one(out, FlowStatus::kWaiting, now.queue.tx_hash, now.queue.timestamp);
  }
  if (!now.end || is_end(out.told.back())) return;
  if (now.end->position.block_number > confirmed_block) {
    out.next_block = now.end->position.block_number;
    return;
  }
  tell_one(out, now.end->status, now.end->tx_hash, now.end->timestamp);
}

FlowStatus shown(const std::vector<FlowStatus>& told, const Generation& now) {
  if (now.end) return now.end->status;
  return !told.empty() && by_time(told.back()) ? told.back() : FlowStatus::kWaiting;
}

}  // namespace

Outcome tell(const std::vector<FlowStatus>& told, const std::optional<Generation>& now, const ToldFacts& before,
             std::int64_t clock, std::int64_t confirmed_block, const Uint256& grace, Standard standard) {
  Outcome out{.told = told};
  while (!out.told.empty() && !(now && still_true(out.told.back(), *now, clock, grace, standard))) {
    out.changes.push_back(take_back(out.told, before));
  }
  if (!now) return out;
  tell_events(out, *now, confirmed_block);
  out.status = shown(out.told, *now);
  out.confirmed = last_of(out.told) == out.status;
  return out;
}

std::optional<Change> ready_change(const std::vector<FlowStatus>& told, const Generation& now, std::int64_t clock,
                                   const Uint256& grace, Standard standard) {
  if (last_of(told) != FlowStatus::kWaiting) return std::nullopt;
  if (status_at(now, standard, grace, clock) != FlowStatus::kReady) return std::nullopt;
  // The clock has reached eta, so eta fits.
  return Change{.from = told.back(), .to = FlowStatus::kReady, .changed_at = static_cast<std::int64_t>(now.eta)};
}

std::optional<Change> expired_change(const std::vector<FlowStatus>& told, const Generation& now, std::int64_t clock,
                                     const Uint256& grace, Standard standard) {
  const auto last = last_of(told);
  if (last != FlowStatus::kWaiting && last != FlowStatus::kReady) return std::nullopt;
  if (status_at(now, standard, grace, clock) != FlowStatus::kExpired) return std::nullopt;
  return Change{
      .from = last, .to = FlowStatus::kExpired, .changed_at = static_cast<std::int64_t>(expires_after(now.eta, grace))};
}

ToldFacts facts_after(ToldFacts before, const std::vector<Change>& changes) {
  for (const auto& change : changes) {
    if (change.retracted) continue;
    switch (change.to) {
      case FlowStatus::kWaiting:
        before.queue_tx_hash = change.tx_hash;
        before.queue_at = change.changed_at;
        break;
      case FlowStatus::kReady:
        before.ready_at = change.changed_at;
        break;
      case FlowStatus::kExpired:
        before.expired_at = change.changed_at;
        break;
      case FlowStatus::kExecuted:
      case FlowStatus::kCancelled:
        before.end_tx_hash = change.tx_hash;
        before.end_at = change.changed_at;
        break;
    }
  }
  return before;
}

}  // namespace fencepost::timelock

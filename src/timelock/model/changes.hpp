// What consumers are told about a flow's generation: every change of its status once, and a retraction of each change
// that a reorganization undid.
//
// `told` is the path that was told so far: waiting, then perhaps ready, then perhaps expired, then perhaps executed or
// cancelled. It is stored with the flow. tell() compares it with the generation as it is folded now.
//
// First, from the end of the path, what is no longer true is retracted:
//
//   told        stays told while
//   waiting     the generation exists
//   ready       the generation exists, and clock >= eta; under an end that stays told, always
//   expired     the generation exists, and clock > eta + grace; under an end that stays told, always
//   executed,   the generation has an end of this kind, in whichever block: a transaction that was mined again
//   cancelled   elsewhere is no news
//
// Then what is true and not told yet is told, if the block of its event is confirmed:
//
//   told ends with            the generation now                    told
//   (nothing)                 queued in a confirmed block           waiting
//   waiting, ready, expired   ended in a confirmed block            executed or cancelled
//   executed, cancelled       (anything that was not retracted)     nothing: the path is complete
//
// ready and expired come by time, from ready_change() and expired_change(), and never for a flow with an end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/uint256.hpp"
#include "timelock/model/flow_status.hpp"
#include "timelock/model/fold.hpp"

namespace fencepost::timelock {

struct Change {
  std::optional<FlowStatus> from;  // nullopt: the flow is new
  FlowStatus to = FlowStatus::kWaiting;
  bool retracted = false;  // this change was told and did not happen
  std::string tx_hash;     // empty for a change by time
  // Seconds. By an event: its block's timestamp. ready: eta. expired: eta + grace.
  std::int64_t changed_at = 0;
  friend bool operator==(const Change&, const Change&) = default;
};

// What was told with the changes so far. A retraction repeats it: the events themselves may be gone.
struct ToldFacts {
  std::string queue_tx_hash;
  std::int64_t queue_at = 0;
  std::int64_t ready_at = 0;
  std::int64_t expired_at = 0;
  std::string end_tx_hash;
  std::int64_t end_at = 0;
  friend bool operator==(const ToldFacts&, const ToldFacts&) = default;
};

struct Outcome {
  std::vector<Change> changes;   // in the order in which they are told
  std::vector<FlowStatus> told;  // the path after them
  // What is shown: the end, confirmed or not; else what the clock made of it; else waiting. Without a generation it is
  // waiting, and means nothing.
  FlowStatus status = FlowStatus::kWaiting;
  bool confirmed = false;                  // the path ends with `status`
  std::optional<std::int64_t> next_block;  // once this block is confirmed there is more to tell
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

// `now`: the generation as it is folded now; nullopt: it is gone. `clock`: the timestamp of the newest scanned block.
// `confirmed_block`: the newest block whose events may be told. Requires: `told` is a path as above.
Outcome tell(const std::vector<FlowStatus>& told, const std::optional<Generation>& now, const ToldFacts& before,
             std::int64_t clock, std::int64_t confirmed_block, const Uint256& grace, Standard standard);

// The change that the clock makes, to be appended to the path; nullopt when there is none. A flow that was not looked
// at for long may go from waiting to expired at once.
std::optional<Change> ready_change(const std::vector<FlowStatus>& told, const Generation& now, std::int64_t clock,
                                   const Uint256& grace, Standard standard);
std::optional<Change> expired_change(const std::vector<FlowStatus>& told, const Generation& now, std::int64_t clock,
                                     const Uint256& grace, Standard standard);

// The facts after these changes were told.
ToldFacts facts_after(ToldFacts before, const std::vector<Change>& changes);

}  // namespace fencepost::timelock

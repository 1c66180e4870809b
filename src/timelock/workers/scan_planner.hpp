// Decides which blocks of a chain are scanned next, from the last scanned block and the branch of the chain.
//
//   the last scanned block is     what comes next
//   on the branch                 the blocks after it: by hash in the follower's window, by range below it
//   on another branch             a reorg: the blocks after the last one that both branches share
//   above the head, same branch   nothing: this node's endpoints are behind another node's
//   above the head, another       nothing at first: a stale endpoint looks like this. A reorg after kBelieveLowerAfter,
//                                 if the follower is synced and no endpoint has the scanned block; later if one of
//                                 them does not answer
//
// The shared block is found by the ancestors of the scanned block: their headers are stored by whichever node followed
// that branch. Those in the window are compared with it, and older ones with the chain, so it does not matter for how
// long no node was running. If none of them is on the chain, nothing is believed, neither the endpoint nor what was
// scanned: `deep_reorg`.
//
// Pinned to the chain's loop.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "evm/chain.hpp"
#include "timelock/store/scan_store.hpp"
#include "timelock/workers/scanner_parts.hpp"

namespace fencepost::timelock {

struct ScanPlan {
  // First a range, first … range_last; none if range_last < first. With a fork it is scanned whole, in one transaction,
  // otherwise as much of it as the endpoint gives at once.
  std::int64_t first = 0;
  std::int64_t range_last = -1;
  std::string parent;                     // the hash of the block before `first`
  std::vector<evm::BlockHeader> headers;  // then these, by hash
  std::optional<std::int64_t> fork;       // a reorg: the last block that both branches share

  bool has_range() const { return range_last >= first; }
};

class ScanPlanner {
 public:
  explicit ScanPlanner(ScannerParts parts) : parts_(std::move(parts)) {}

  static constexpr std::chrono::seconds kBelieveLowerAfter{5};
  static constexpr std::chrono::seconds kBelieveLowerUnanswered{60};
  static constexpr std::size_t kMaxReorg = 1'000;  // blocks

  // nullopt: nothing to do now. Throws what the chain or the database refuses, and `deep_reorg`.
  awaitable<std::optional<ScanPlan>> plan(ScanPoint point);

  // Whether the last plan() found that this node does not have the scanned block yet: another node had better scan.
  bool behind() const { return behind_; }

 private:
  struct Place {
    std::int64_t number = 0;
    std::string hash;
  };

  awaitable<std::optional<ScanPlan>> after_reorg(ScanPoint point);
  // The block and its ancestors, newest first.
  awaitable<std::vector<Place>> line_of(ScanPoint point);
  awaitable<bool> is_on_chain(ScanPoint point);
  // The blocks first … first + count - 1, from an endpoint that has all of them and is on the follower's branch: one
  // that is stuck, perhaps on a branch of its own, proves nothing.
  awaitable<std::vector<evm::Block>> old_blocks(std::int64_t first, std::size_t count);
  awaitable<bool> lower_head_is_believed(ScanPoint point);
  // The newest block of the line that is on the chain, below the window.
  awaitable<std::optional<Place>> newest_on_chain(std::vector<Place> line);
  const evm::HeaderWindow& window() const { return parts_.chain.follower().window(); }
  ScanPlan from_fork(const ScanPoint& point, const Place& fork) const;

  ScannerParts parts_;
  bool behind_ = false;
  std::optional<std::chrono::steady_clock::time_point> lower_since_;
};

}  // namespace fencepost::timelock

// A node's own view of a chain: the newest headers of one branch, linked by parent hash, ending at its head.
//
// Which branch is canonical is nowhere stored; whoever decides asks this. Invariant: numbers are consecutive and each
// header's parent_hash is the hash of the one before it. Pure; belongs to one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "evm/chain_connector.hpp"

namespace fencepost::evm {

class HeaderWindow {
 public:
  // At most `capacity` headers are kept (at least 1): the oldest go first.
  explicit HeaderWindow(std::size_t capacity);

  bool empty() const { return headers_.empty(); }
  std::size_t size() const { return headers_.size(); }
  std::size_t capacity() const { return capacity_; }

  // The newest and the oldest; null when empty. Pointers out of here live until the window changes.
  const BlockHeader* head() const { return empty() ? nullptr : &headers_.back(); }
  const BlockHeader* bottom() const { return empty() ? nullptr : &headers_.front(); }
  // Null outside the window.
  const BlockHeader* find(std::int64_t number) const;

  // Whether that block is on this branch; nothing when the number is outside the window: below it nobody here knows
  // any more, above it nobody knows yet.
  std::optional<bool> contains(std::int64_t number, std::string_view hash) const;

  // The headers from that block (inclusive) to the head: as many as it has confirmations. Empty when contains() is
  // not true.
  std::vector<BlockHeader> confirmations(std::int64_t number, std::string_view hash) const;

  struct Applied {
    std::optional<std::int64_t> reorged_to;  // the last block that both branches share; none: simply extended
  };
  // Takes headers of one branch, oldest first. Above the block that the first one names as its parent everything
  // gives way to them; an empty window takes any. Errors, with the window left as it was: `not_linked` when they do
  // not follow each other or the parent is not in the window.
  Result<Applied> apply(std::span<const BlockHeader> headers);

  // Takes older headers in at the bottom as far as there is room. They are sorted by number, lowest first, and may be
  // of several branches: what does not link up is left out.
  void prepend(std::span<const BlockHeader> older);

  void clear() { headers_.clear(); }

 private:
  std::size_t capacity_;
  std::deque<BlockHeader> headers_;
};

// Whether `child` comes right after `parent`.
bool follows(const BlockHeader& child, const BlockHeader& parent);

}  // namespace fencepost::evm

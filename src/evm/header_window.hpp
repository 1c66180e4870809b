// A node's own view of a chain: the newest headers of one branch, linked by parent hash, ending at its head.
//
// The canonical branch is not stored in the database: each node decides by its own window. Invariant: numbers are
// consecutive and each header's parent_hash is the hash of the header before it. Pure; one thread only.
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
  // Holds at most `capacity` headers; drops the oldest first. Requires: capacity >= 1.
  explicit HeaderWindow(std::size_t capacity);

  bool empty() const { return headers_.empty(); }
  std::size_t size() const { return headers_.size(); }
  std::size_t capacity() const { return capacity_; }

  // The newest and the oldest header; null when empty. The pointers are valid until the window changes.
  const BlockHeader* head() const { return empty() ? nullptr : &headers_.back(); }
  const BlockHeader* bottom() const { return empty() ? nullptr : &headers_.front(); }
  // Null when the number is outside the window. The pointer is valid until the window changes.
  const BlockHeader* find(std::int64_t number) const;

  // Whether that block is on this branch; nothing when the number is below or above the window, where the branch is
  // unknown.
  std::optional<bool> contains(std::int64_t number, std::string_view hash) const;

  // The headers from that block (inclusive) to the head; their number is its confirmations. Empty when contains() is
  // not true.
  std::vector<BlockHeader> confirmations(std::int64_t number, std::string_view hash) const;

  struct Applied {
    std::optional<std::int64_t> reorged_to;  // the last block that both branches share; none: no reorg
  };
  // Appends headers of one branch, oldest first. They replace every header above the parent of the first one. An empty
  // window accepts any. Errors: `not_linked` when they do not link up or the parent is not in the window, which then
  // stays unchanged.
  Result<Applied> apply(std::span<const BlockHeader> headers);

  // Adds older headers at the bottom while there is room. Requires: sorted by number, lowest first. They may be of
  // several branches: headers that do not link up are ignored.
  void prepend(std::span<const BlockHeader> older);

  void clear() { headers_.clear(); }

 private:
  std::size_t capacity_;
  std::deque<BlockHeader> headers_;
};

// Whether `child` comes right after `parent`.
bool follows(const BlockHeader& child, const BlockHeader& parent);

}  // namespace fencepost::evm

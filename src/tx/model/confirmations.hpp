// The newFork protocol: what a consumer is told about the blocks that confirm a transaction.
//
// The list is the receipt's block and every block above it on the node's own branch, up to its head; it is empty while
// there is no receipt. A consumer appends what it is told with newFork=false and replaces everything it has with what
// it is told with newFork=true, and so always holds the node's list.
//
// Of what was told only the last block is remembered: a block hash stands for all of its ancestors, so if that block is
// in the list, so is everything that was told before it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "tx/model/block_ref.hpp"

namespace fencepost::tx {

// managed_tx.told_block and told_hash.
struct AnnouncedBlock {
  std::int64_t number = 0;
  std::string hash;

  friend bool operator==(const AnnouncedBlock&, const AnnouncedBlock&) = default;
};

struct Announced {
  std::optional<AnnouncedBlock> last;  // none: the consumer holds nothing
  // A receipt that the consumer was told of has vanished since: whatever comes next is a new fork to it, also when it
  // holds nothing any more.
  bool withdrawn = false;

  friend bool operator==(const Announced&, const Announced&) = default;
};

struct Announcement {
  bool new_fork = false;
  std::span<const BlockRef> headers;  // into the list; empty with new_fork: the receipt is gone
  Announced then;                     // what to remember once this is told
};

// Nothing when the consumer holds the list already. A list that ends below the last told block is a new fork like any
// other: a node that is only behind, and not reorged, should not ask before it has caught up.
// Throws Exception `broken_header_walk` when the list is not a chain of parent hashes.
std::optional<Announcement> next_announcement(std::span<const BlockRef> list, const Announced& announced);

}  // namespace fencepost::tx

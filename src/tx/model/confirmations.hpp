// The newFork protocol: what a consumer is told about the blocks that confirm a transaction. Whether a block is final
// is finality.hpp's question.
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
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json/array.hpp>

#include "base/uuid.hpp"
#include "evm/header_window.hpp"
#include "tx/model/event_type.hpp"
#include "tx/model/lease.hpp"

namespace fencepost::tx {

// A block by its place on a branch.
struct BlockRef {
  std::int64_t number = 0;
  std::string hash;
  std::string parent_hash;

  friend bool operator==(const BlockRef&, const BlockRef&) = default;
};

// The list of a receipt in that block: from it (first) to the window's head. Empty when the block is not on the branch.
std::vector<BlockRef> confirmation_list(const evm::HeaderWindow& window, std::int64_t number, std::string_view hash);

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

// [{"blockNumber": 12, "blockHash": "0x…"}, …]
boost::json::array to_json(std::span<const BlockRef> list);
// TxConfirmations, as type and data.
std::pair<TxEvent, std::string> confirmations_event(const SignerKey& key, const Uuid& tx_id,
                                                    const Announcement& announcement);

}  // namespace fencepost::tx

// The newFork protocol: how the blocks that confirm a transaction are announced to consumers. finality.hpp decides
// whether a block is final.
//
// The list is the receipt's block and every block above it on the node's own branch, up to its head. The list is empty
// while there is no receipt. A consumer appends the blocks of an announcement with newFork=false, and replaces its list
// by the blocks of an announcement with newFork=true. So it always holds the node's list.
//
// Only the last announced block is stored. A block hash implies all of its ancestors: if the list contains that block,
// it contains everything that was announced before.
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

// The list for a receipt in that block: from the block (first) to the window's head. Empty when the block is not in the
// window.
std::vector<BlockRef> confirmation_list(const evm::HeaderWindow& window, std::int64_t number, std::string_view hash);

// tx_open.announced_block and announced_hash.
struct AnnouncedBlock {
  std::int64_t number = 0;
  std::string hash;

  friend bool operator==(const AnnouncedBlock&, const AnnouncedBlock&) = default;
};

struct Announced {
  std::optional<AnnouncedBlock> last;  // nullopt: the consumer's list is empty
  // An announced receipt was withdrawn: the next announcement is a new fork, even if the consumer's list is empty.
  bool withdrawn = false;

  friend bool operator==(const Announced&, const Announced&) = default;
};

struct Announcement {
  bool new_fork = false;
  std::span<const BlockRef> headers;  // points into the list; empty with new_fork: the receipt was withdrawn
  Announced then;                     // what to store together with the announcement
};

// nullopt when the consumer already holds the list. A list that ends below the last announced block counts as a new
// fork, so a node that only lags behind must not call this before it has caught up.
// Throws Exception `broken_header_walk` when the list is not a chain of parent hashes.
std::optional<Announcement> next_announcement(std::span<const BlockRef> list, const Announced& announced);

// [{"blockNumber": 12, "blockHash": "0x…"}, …]
boost::json::array to_json(std::span<const BlockRef> list);
// The event TxConfirmations, as type and data.
std::pair<TxEvent, std::string> confirmations_event(const SignerKey& key, const Uuid& tx_id,
                                                    const Announcement& announcement);

}  // namespace fencepost::tx

// The transactions in blocks: in those of a node's own branch, within its window, or in others that a reader asked for.
//
// A block that lists a transaction proves that it was mined on that branch, even if an endpoint has no receipt for it.
// Stores only the first eight bytes of each hash: two megabytes for 256 blocks of a thousand transactions. Pinned to
// one loop.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "evm/chain_connector.hpp"
#include "evm/header_window.hpp"

namespace fencepost::evm {

struct Listing {
  std::int64_t block_number = 0;
  std::string block_hash;

  friend bool operator==(const Listing&, const Listing&) = default;
};

class ListedTransactions {
 public:
  // Adds a block; replaces a block with the same number. Beyond kMostBlocks, it takes the place of the lowest one.
  void add(const Block& block);
  // Removes the blocks that are not in the window.
  void keep_only(const HeaderWindow& window);

  // The block that lists this transaction ("0x…", lowercase); nothing when no block does.
  std::optional<Listing> find(std::string_view tx_hash) const;

  // Whether that block lists the transaction; nothing when the block's transactions are not known.
  std::optional<bool> lists(std::int64_t block_number, std::string_view block_hash, std::string_view tx_hash) const;

  // However long the window is: the newest blocks count.
  static constexpr std::size_t kMostBlocks = 2'048;
  std::size_t blocks() const { return blocks_.size(); }

 private:
  struct Entry {
    std::string hash;
    std::vector<std::uint64_t> prefixes;  // sorted
  };
  std::map<std::int64_t, Entry> blocks_;
};

}  // namespace fencepost::evm

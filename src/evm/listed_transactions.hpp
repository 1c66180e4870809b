// Which transactions the blocks of a node's own branch contain, as far as its window reaches.
//
// A block that lists a transaction proves that it was mined on that branch, whatever an endpoint says of its receipt.
// Of each hash only the first eight bytes are kept: two megabytes for 256 blocks of a thousand transactions. Belongs to
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
  // Takes the place of a block with the same number.
  void add(const Block& block);
  // Forgets the blocks that are not in the window.
  void keep_only(const HeaderWindow& window);

  // The block that lists this transaction ("0x…", lowercase); nothing when no block does.
  std::optional<Listing> find(std::string_view tx_hash) const;

  std::size_t blocks() const { return blocks_.size(); }

 private:
  struct Entry {
    std::string hash;
    std::vector<std::uint64_t> prefixes;  // sorted
  };
  std::map<std::int64_t, Entry> blocks_;
};

}  // namespace fencepost::evm

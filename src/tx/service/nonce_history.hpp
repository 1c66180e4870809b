// What signers' transaction counts were at blocks of the node's own branch, noted while those blocks were new.
//
// A block becomes final long after it was new, and by then many endpoints have dropped its state. In memory only: after
// a restart, the history starts anew. Pinned to one loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace fencepost::tx {

struct SeenCount {
  std::int64_t block_number = 0;
  std::string block_hash;
  std::int64_t count = 0;

  friend bool operator==(const SeenCount&, const SeenCount&) = default;
};

class NonceHistory {
 public:
  static constexpr std::size_t kPerSigner = 64;

  // Keeps the first block for each count. Further counts are ignored while the signer's history is full.
  void note(const std::string& signer, SeenCount seen);
  // The newest entry that is not above that block. Drops the entries before it, which say less.
  std::optional<SeenCount> newest_until(const std::string& signer, std::int64_t block_number);
  // Removes an entry whose block is not on the branch any more.
  void forget(const std::string& signer, const SeenCount& seen);

 private:
  std::map<std::string, std::vector<SeenCount>> seen_;  // oldest first
};

}  // namespace fencepost::tx

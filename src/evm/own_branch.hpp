// The node's own branch of a chain, also below the follower's window: the stored headers that link up, by parent hash,
// with the window's oldest header.
//
// Finality by a tag may be thousands of blocks behind the head, and the window is short. Headers are loaded when they
// are first asked for and kept in memory. Pinned to the follower's loop. Methods throw database errors (pg/error.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "evm/block_follower.hpp"
#include "evm/header_store.hpp"
#include "runtime/async.hpp"

namespace fencepost::evm {

class OwnBranch {
 public:
  // Keeps the references.
  OwnBranch(std::int64_t chain_id, const HeaderWindow& window, PgHeaderStore& headers)
      : chain_id_(chain_id), window_(window), headers_(headers) {}

  // Whether that block is on the branch; nothing when it is above the head, or when the stored headers do not reach it.
  awaitable<std::optional<bool>> contains(std::int64_t number, std::string hash);
  // The branch from block `first` up, at most `count` headers, lowest first. Empty when the stored headers do not reach
  // `first`.
  awaitable<std::vector<BlockHeader>> from(std::int64_t first, std::size_t count);

 private:
  // Loads what is missing between the window and `number`. False when the headers do not reach that far.
  awaitable<bool> reach(std::int64_t number);
  awaitable<> close_gap(const BlockHeader& bottom);
  awaitable<bool> extend(BlockHeader child, std::int64_t number);
  const BlockHeader* find(std::int64_t number) const;

  std::int64_t chain_id_;
  const HeaderWindow& window_;
  PgHeaderStore& headers_;
  // Consecutive and linked. The last one was the parent of the window's oldest header when it was loaded; the window
  // has moved since.
  std::deque<BlockHeader> below_;
};

}  // namespace fencepost::evm

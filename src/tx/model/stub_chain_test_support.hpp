// A chain in memory, for tests: one account, a pool, blocks in a tree. Reorgs go no deeper than the finality depth
// unless a test asks for it, so a block that deep below the highest head ever is final in every view.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tx/model/confirmations.hpp"

namespace fencepost::tx::stub {

struct Transaction {
  std::string hash;
  std::int64_t nonce = 0;
  bool succeeds = true;
};

struct Block {
  std::int64_t number = 0;
  std::string hash;
  std::shared_ptr<const Block> parent;
  std::vector<Transaction> transactions;
  std::int64_t next_nonce = 0;  // the account's transaction count after this block
};
using Head = std::shared_ptr<const Block>;  // a branch, by its newest block

// The branch's block at that height; nullptr above the head or below 0.
inline const Block* at(const Head& head, std::int64_t number) {
  const auto* block = head.get();
  while (block != nullptr && block->number > number) block = block->parent.get();
  return block != nullptr && block->number == number ? block : nullptr;
}

struct Located {
  const Block* block = nullptr;  // nullptr: not on this branch
  const Transaction* transaction = nullptr;
};
template <class Predicate>
Located locate(const Head& head, Predicate wanted) {
  for (const auto* block = head.get(); block != nullptr; block = block->parent.get()) {
    const auto found = std::ranges::find_if(block->transactions, wanted);
    if (found != block->transactions.end()) return {block, &*found};
  }
  return {};
}

inline std::vector<BlockRef> walk(const Head& head) {
  std::vector<BlockRef> out;
  for (const auto* block = head.get(); block != nullptr; block = block->parent.get()) {
    out.push_back({block->number, block->hash, block->parent ? block->parent->hash : "none"});
  }
  std::ranges::reverse(out);
  return out;
}

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}
  // From 0 to bound - 1.
  std::size_t below(std::size_t bound) { return engine_() % bound; }
  bool chance(std::size_t percent) { return below(100) < percent; }

 private:
  std::mt19937_64 engine_;
};

class Chain {
 public:
  Chain(Dice& dice, std::int64_t depth) : dice_(dice), depth_(depth), head_(std::make_shared<Block>()) {
    remember(head_);
  }

  const Head& head() const { return head_; }
  // The highest block that no allowed reorg can undo.
  std::int64_t final_number() const { return std::max<std::int64_t>(0, highest_ - depth_); }

  void broadcast(Transaction transaction) {
    if (std::ranges::find(pool_, transaction.hash, &Transaction::hash) == pool_.end()) {
      pool_.push_back(std::move(transaction));
    }
  }
  void evict_some() {
    std::erase_if(pool_, [&](const auto&) { return dice_.chance(30); });
  }

  void mine() {
    head_ = child_of(head_);
    remember(head_);
  }
  // Removes up to `blocks` blocks, and evicts some transactions from the pool.
  void reorg(std::int64_t blocks) {
    move_to(std::max(final_number(), head_->number - blocks));
    evict_some();
    mine();
  }
  // A reorg deeper than the finality depth, which finality assumes never to happen.
  void reorg_to(std::int64_t number) {
    move_to(number);
    while (head_->number <= highest_) head_ = child_of(head_);
    remember(head_);
  }

  // A view that some node may have: the current branch, an older head, or a side branch.
  Head any_view() {
    if (dice_.chance(60)) return head_;
    if (dice_.chance(60)) return recent_[dice_.below(recent_.size())];
    auto side = head_;
    const auto from = final_number() + static_cast<std::int64_t>(dice_.below(static_cast<std::size_t>(depth_) + 1));
    while (side->number > from) side = side->parent;
    while (side->number < highest_ && !dice_.chance(15)) side = child_of(side);
    return side;
  }

 private:
  static constexpr std::size_t kRecent = 8;

  void move_to(std::int64_t number) {
    while (head_->number > number) head_ = head_->parent;
  }

  Head child_of(const Head& parent) {
    auto block = std::make_shared<Block>();
    block->number = parent->number + 1;
    block->hash = "b" + std::to_string(++blocks_made_);
    block->parent = parent;
    block->next_nonce = parent->next_nonce;
    while (dice_.chance(60)) {
      std::vector<const Transaction*> candidates;
      for (const auto& one : pool_) {
        if (one.nonce == block->next_nonce) candidates.push_back(&one);
      }
      if (candidates.empty()) break;
      block->transactions.push_back(*candidates[dice_.below(candidates.size())]);
      ++block->next_nonce;
    }
    return block;
  }

  void remember(const Head& head) {
    highest_ = std::max(highest_, head->number);
    if (recent_.size() < kRecent) {
      recent_.push_back(head);
    } else {
      recent_[dice_.below(kRecent)] = head;
    }
  }

  Dice& dice_;
  std::int64_t depth_;
  Head head_;
  std::int64_t highest_ = 0;
  std::size_t blocks_made_ = 0;
  std::vector<Transaction> pool_;
  std::vector<Head> recent_;
};

}  // namespace fencepost::tx::stub

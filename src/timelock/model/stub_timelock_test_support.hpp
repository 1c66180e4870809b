// One flow of a timelock contract on a chain in memory, for tests: blocks in a tree, random transactions that the
// contract's own rules accept, and the generations as the contract's state has them. These do not come from the events,
// so that tests can compare them with what is folded from the events.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "timelock/model/event_test_support.hpp"
#include "timelock/model/fold.hpp"

namespace fencepost::timelock::stub {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}
  // From 0 to bound - 1.
  std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(bound));
  }
  bool chance(std::int64_t percent) { return below(100) < percent; }
  std::mt19937_64& engine() { return engine_; }

 private:
  std::mt19937_64 engine_;
};

struct Block {
  std::int64_t number = 0;
  std::int64_t timestamp = kGenesis;
  std::string hash;
  std::shared_ptr<const Block> parent;
  std::vector<RawEvent> events;
  // The contract after this block.
  bool pending = false;
  bool done = false;  // OpenZeppelin: executed, and never to be scheduled again
  std::int64_t eta = 0;
  std::vector<Generation> generations;
};
using Head = std::shared_ptr<const Block>;

struct Contract {
  Standard standard = Standard::kCompound;
  std::int64_t eta = 0;         // Compound: part of the id, so the same for every generation
  std::int64_t grace = 0;       // Compound
  std::int64_t calls = 1;       // OpenZeppelin: the size of the batch; 0: an empty batch, which emits no calls
  bool has_salt = false;        // OpenZeppelin
  std::int64_t activity = 100;  // percent of the transactions that really happen
};

inline Contract random_contract(Dice& dice) {
  Contract out;
  out.standard = dice.chance(50) ? Standard::kCompound : Standard::kOpenZeppelin;
  out.eta = kGenesis + 40 + dice.below(160);
  out.grace = 20 + dice.below(80);
  if (out.standard == Standard::kOpenZeppelin) out.calls = dice.chance(5) ? 0 : 1 + dice.below(4);
  out.has_salt = dice.chance(50);
  out.activity = 5 + dice.below(96);
  return out;
}

class Timelock {
 public:
  Timelock(Dice& dice, Contract contract) : dice_(dice), contract_(contract) {}

  Head mine(const Head& parent) {
    auto block = std::make_shared<Block>(parent ? *parent : Block{});
    block->number += 1;
    block->timestamp += 1 + dice_.below(20);
    block->hash = hash_of("block " + std::to_string(++made_));
    block->parent = parent;
    block->events.clear();
    for (auto transactions = dice_.below(3); transactions > 0; --transactions) {
      if (!dice_.chance(contract_.activity)) continue;
      tx_hash_ = hash_of("tx " + std::to_string(++made_));
      act(*block);
      if (dice_.chance(15)) act(*block);  // a contract that does two things in one transaction
    }
    return block;
  }

 private:
  void act(Block& block) {
    const auto choice = dice_.below(10);
    if (contract_.standard == Standard::kCompound) {
      if (choice < 5) return queue(block);
      if (choice < 7) return cancel_transaction(block);
      return execute_transaction(block);
    }
    if (choice < 5) return schedule(block);
    if (choice < 7) return cancel(block);
    execute(block);
  }

  RawEvent& emit(Block& block, EventType type) {
    // Logs of other contracts come between ours.
    next_log_ = block.events.empty() ? 0 : next_log_;
    next_log_ += 1 + dice_.below(3);
    auto& out = block.events.emplace_back(event(type, {.block = block.number, .log = next_log_}));
    out.block_hash = block.hash;
    out.block_timestamp = block.timestamp;
    out.tx_hash = tx_hash_;
    return out;
  }
  // A generation with the facts of an event that was just emitted.
  Generation& begin(Block& block, const RawEvent& first) {
    Generation out{
        .number = std::ssize(block.generations) + 1,
        .queue = {first.position, first.block_hash, first.tx_hash, first.block_timestamp, first.tx_from, first.tx_to},
        .predecessor = first.predecessor};
    return block.generations.emplace_back(std::move(out));
  }
  static void end(Block& block, FlowStatus status, const RawEvent& first) {
    block.generations.back().end =
        EndFacts{status, first.position, first.block_hash, first.tx_hash, first.block_timestamp};
  }

  // Compound: emits while it is queued already, too.
  void queue(Block& block) {
    if (contract_.eta < block.timestamp) return;
    auto& out = emit(block, EventType::kQueueTransaction);
    out.eta = contract_.eta;
    if (!block.pending) {
      auto& flow = begin(block, out);
      flow.eta = contract_.eta;
      flow.calls = {out.call};
    }
    block.pending = true;
  }
  // Compound: emits for what was never queued, too.
  void cancel_transaction(Block& block) {
    auto& out = emit(block, EventType::kCancelTransaction);
    if (block.pending) end(block, FlowStatus::kCancelled, out);
    block.pending = false;
  }
  void execute_transaction(Block& block) {
    const bool in_time = block.timestamp >= contract_.eta && block.timestamp <= contract_.eta + contract_.grace;
    if (!block.pending || !in_time) return;
    end(block, FlowStatus::kExecuted, emit(block, EventType::kExecuteTransaction));
    block.pending = false;
  }

  void schedule(Block& block) {
    if (block.pending || block.done) return;
    const auto delay = dice_.below(80);
    for (std::int64_t i = 0; i < contract_.calls; ++i) {
      auto& out = emit(block, EventType::kCallScheduled);
      out.delay = delay;
      out.call.index = i;
      if (i == 0) {
        auto& flow = begin(block, out);
        flow.delay = delay;
        flow.eta = block.timestamp + delay;
      }
      block.generations.back().calls.push_back(out.call);
    }
    if (contract_.has_salt) {
      auto& out = emit(block, EventType::kCallSalt);
      out.salt = hash_of("salt");
      if (contract_.calls > 0) block.generations.back().salt = out.salt;
    }
    block.pending = true;
    block.eta = block.timestamp + delay;
  }
  void cancel(Block& block) {
    if (!block.pending) return;
    auto& out = emit(block, EventType::kCancelled);
    if (contract_.calls > 0) end(block, FlowStatus::kCancelled, out);
    block.pending = false;
  }
  void execute(Block& block) {
    if (!block.pending || block.timestamp < block.eta) return;
    for (std::int64_t i = 0; i < contract_.calls; ++i) {
      auto& out = emit(block, EventType::kCallExecuted);
      out.call.index = i;
      if (i == 0) end(block, FlowStatus::kExecuted, out);
    }
    block.pending = false;
    block.done = true;
  }

  Dice& dice_;
  Contract contract_;
  std::string tx_hash_;
  std::int64_t next_log_ = 0;
  std::int64_t made_ = 0;
};

// Events of the branch, from block `first` on.
inline std::vector<RawEvent> events_of(const Head& head, std::int64_t first = 0) {
  std::vector<const Block*> blocks;
  for (const auto* block = head.get(); block != nullptr && block->number >= first; block = block->parent.get()) {
    blocks.push_back(block);
  }
  std::vector<RawEvent> out;
  for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) {
    out.insert(out.end(), (*block)->events.begin(), (*block)->events.end());
  }
  return out;
}

}  // namespace fencepost::timelock::stub

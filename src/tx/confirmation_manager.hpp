// Counts confirmations on the node's own branch and ends transactions: CONFIRMED or FAILED_FINAL. Withdraws receipts
// whose block has died (newFork), and notices when even a final one has.
#pragma once

#include "runtime/worker.hpp"
#include "tx/chain_context.hpp"
#include "tx/final_block.hpp"

namespace fencepost::tx {

class ConfirmationManager {
 public:
  explicit ConfirmationManager(ChainContext& chain);

  void start() { worker_.start(); }
  awaitable<> stop() { return worker_.stop(); }
  void wake() { worker_.wake(); }

  // Blocks above `ancestor` are gone: withdraws what was mined there. Before the new blocks are matched.
  awaitable<> on_reorg(std::int64_t ancestor);

 private:
  awaitable<Worker::Next> advance();
  awaitable<std::size_t> finish(FinalBlock final, std::int64_t from, std::int64_t& last);
  awaitable<> look_for_violations(const FinalBlock& final);
  awaitable<> tell_progress(std::int64_t final_number);
  awaitable<std::optional<bool>> is_canonical(const MinedTx& tx, const FinalBlock& final);
  std::size_t kept_blocks(const MinedTx& tx, const FinalBlock& final) const;
  std::optional<Step> judge(const MinedTx& tx, const FinalBlock& final, std::optional<bool> canonical);

  ChainContext& chain_;
  Metrics::Counter& new_fork_total_;
  Metrics::Counter& violated_total_;
  Metrics::Histogram& create_to_final_;
  Worker worker_;
  struct Undone {
    std::int64_t above;  // the lowest ancestor of the reorgs
    std::int64_t until;  // once this block is final, nothing below it changes any more
  };
  std::optional<Undone> undone_;           // where ended transactions may have been undone
  std::optional<std::int64_t> told_head_;  // progress was told up to this head
};

}  // namespace fencepost::tx

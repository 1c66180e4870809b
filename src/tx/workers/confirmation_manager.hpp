// Counts confirmations on the node's own branch and ends transactions: CONFIRMED or FAILED_FINAL. Withdraws receipts
// whose block was orphaned (newFork), and reports when a reorg orphans even a final block.
#pragma once

#include <map>

#include "runtime/worker.hpp"
#include "tx/service/chain_context.hpp"
#include "tx/store/work_store.hpp"

namespace fencepost::tx {

class ConfirmationManager {
 public:
  explicit ConfirmationManager(ChainContext& chain);

  void start() { worker_.start(); }
  awaitable<> stop() { return worker_.stop(); }
  void wake() { worker_.wake(); }

  // A reorg removed the blocks above `ancestor`: withdraws the receipts in them. Requires: called before the new blocks
  // are matched.
  awaitable<> on_reorg(std::int64_t ancestor);
  // The follower skipped blocks: ended transactions may have been undone meanwhile.
  void on_missed();
  // A receipt in this block was stored.
  void on_mined(std::int64_t block);
  // This node took over signers: blocks of their stored receipts may have been orphaned while no node checked.
  void on_taken();

 private:
  // By height: the block hash that an endpoint reports; nullopt when it has none. Asked once per pass.
  using Asked = std::map<std::int64_t, std::optional<std::string>>;

  awaitable<Worker::Next> advance();
  awaitable<> withdraw_dead(bool head_went_back);
  awaitable<> finish(evm::FinalBlock final);
  awaitable<bool> finish_pass(evm::FinalBlock final, bool all);
  awaitable<> look_for_violations(const evm::FinalBlock& final);
  awaitable<> tell_progress(std::int64_t final_number);
  awaitable<std::optional<bool>> is_canonical(const MinedTx& tx, const evm::FinalBlock& final, Asked& asked);
  std::size_t kept_blocks(const MinedTx& tx, const evm::FinalBlock& final) const;
  // The step that announces new confirmations to consumers; nullopt when there are none.
  std::optional<Step> announcement_step(const MinedTx& tx, bool only_new_fork);
  // The blocks that made a transaction final, and whether they replace those that were announced.
  struct Confirming {
    boost::json::array blocks;
    bool new_fork = false;
  };
  awaitable<Confirming> blocks_of(const MinedTx& tx, const evm::FinalBlock& final);
  std::optional<Step> judge(const MinedTx& tx, const evm::FinalBlock& final, std::optional<bool> canonical,
                            Confirming confirming);
  void observe_age(std::chrono::milliseconds age);

  ChainContext& chain_;
  Metrics::Counter& new_fork_total_;
  Metrics::Counter& violated_total_;
  Metrics::Histogram* create_to_final_ = nullptr;  // made by the first transaction: a chain may have none
  Worker worker_;
  struct Undone {
    std::int64_t above;  // the lowest ancestor of the reorgs
    std::int64_t until;  // once this block is final, nothing below it changes any more
    bool below;          // what ended at or below `above` may have been undone, too

    friend bool operator==(const Undone&, const Undone&) = default;
  };
  std::optional<Undone> undone_;                     // where ended transactions may have been undone
  SteadyClock::TimePoint look_for_violations_at_{};  // not before: the endpoints could not say of all blocks
  std::int64_t highest_head_ = 0;

  std::int64_t finished_through_ = -1;  // up to this block, everything was looked at since it became final
  std::int64_t passing_to_ = -1;        // the same, with the blocks of the pass that runs now
  bool look_at_all_ = true;             // something may be left below finished_through_
  bool undecided_ = false;              // something is left there
  SteadyClock::TimePoint looked_at_all_;
  bool first_look_ = true;
  bool unchecked_ = true;                 // there may be receipts that this process did not store
  std::optional<std::string> told_head_;  // progress was announced up to this head
};

}  // namespace fencepost::tx

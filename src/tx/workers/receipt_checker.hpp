// Finds receipts: each new block's transactions are matched against the attempts that are open, so the cost grows with
// blocks and not with what waits. What has not been seen for `confirmations.stale_receipt_timeout` is asked for by
// hash, in batches, by at most `confirmations.receipt_workers` at a time.
//
// A block on the node's own branch may list one of our transactions while no endpoint gives the receipt: nodes are
// known to answer null for minutes. Such a receipt is asked for again, endpoint by endpoint, until it comes or a reorg
// removes the block (missing_receipts.hpp).
#pragma once

#include "runtime/worker.hpp"
#include "tx/service/chain_context.hpp"
#include "tx/store/work_store.hpp"
#include "tx/workers/missing_receipts.hpp"

namespace fencepost::tx {

class ReceiptChecker {
 public:
  explicit ReceiptChecker(ChainContext& chain);

  void start() { worker_.start(); }
  awaitable<> stop();
  void wake() { worker_.wake(); }

  awaitable<> on_blocks(const std::vector<evm::Block>& blocks);
  // Blocks went by unseen: every open transaction's receipt is asked for by hash, once, without waiting for the
  // timeout.
  void on_missed();

 private:
  struct StaleBatch;

  awaitable<Worker::Next> check();
  awaitable<> check_missing();
  awaitable<Worker::Next> check_stale();
  std::chrono::milliseconds stale_after();
  awaitable<> check_batch(std::shared_ptr<StaleBatch> batch);
  awaitable<> store(std::vector<std::pair<Match, evm::Receipt>> found);
  // Those that somebody moved first.
  awaitable<std::vector<std::pair<Match, evm::Receipt>>> store_once(std::vector<std::pair<Match, evm::Receipt>> found);
  void count(std::string_view result, std::size_t n);

  ChainContext& chain_;
  std::optional<std::chrono::steady_clock::time_point> missed_since_;
  TaskGroup checks_;
  MissingReceipts missing_;
  Metrics::Histogram& submit_to_mined_;
  Worker worker_;
};

}  // namespace fencepost::tx

// Finds receipts. The transactions of each new block are matched against the open attempts, so the cost grows with the
// blocks and not with the backlog. A transaction without a receipt for `confirmations.stale_receipt_timeout` is looked
// up by hash, in batches, at most `confirmations.receipt_workers` batches at a time.
//
// A block on the node's own branch may list a transaction while no endpoint returns its receipt: endpoints are known to
// answer null for minutes. Such a receipt is looked up again, on one endpoint after the other, until one returns it or
// a reorg removes the block (missing_receipts.hpp).
//
// A block may also list a transaction that had ended as never to be mined. That is reported (mined_after_end.hpp).
#pragma once

#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/worker.hpp"
#include "tx/service/chain_context.hpp"
#include "tx/store/mined_after_end_store.hpp"
#include "tx/store/work_store.hpp"
#include "tx/workers/missing_receipts.hpp"

namespace fencepost::tx {

class ReceiptChecker {
 public:
  explicit ReceiptChecker(ChainContext& chain);

  void start() { worker_.start(); }
  awaitable<> stop();
  void wake() { worker_.wake(); }

  // Stores the receipts of these blocks' transactions. Does not fail when an endpoint does: what cannot be had now is
  // looked up later.
  awaitable<> on_blocks(const std::vector<evm::Block>& blocks);
  // The follower skipped blocks: looks up the receipt of every open transaction by hash, once, without waiting for the
  // timeout.
  void on_missed();
  // The block on the node's own branch that lists the transaction: from the follower's blocks, or from a receipt that
  // is still missing, however old its block is. Nothing when this node knows of none.
  std::optional<evm::Listing> listing(const std::string& tx_hash) const;
  // A block on the node's own branch has this transaction: asks for its receipt until there is one.
  void expect(const std::string& tx_hash, evm::Listing listing) { missing_.add(tx_hash, std::move(listing)); }

 private:
  struct StaleBatch;
  using Found = std::vector<std::pair<Match, evm::Receipt>>;
  using BlockOf = std::unordered_map<std::string_view, const evm::Block*>;  // by hash of a transaction
  using RevertReasons = std::unordered_map<std::string, std::string>;       // by hash

  // The transactions that the node leads and has sent under one of these hashes.
  awaitable<std::vector<Match>> find_matches(std::span<const std::string> hashes);
  // Reports those of the hashes that are of transactions that had ended without being mined.
  awaitable<> report_ended(std::span<const std::string> hashes, const std::vector<Match>& matches,
                           const BlockOf& block_of);
  awaitable<> report_ended();
  awaitable<std::unordered_map<std::string, evm::Receipt>> receipts_of(const evm::Block& block,
                                                                       const std::vector<const Match*>& matches,
                                                                       std::set<std::size_t>& failed);
  awaitable<Worker::Next> check();
  awaitable<Worker::Next> check_missing();
  awaitable<> look_up(std::vector<Match> matches, std::size_t endpoint);
  awaitable<Worker::Next> check_stale();
  std::chrono::milliseconds stale_after();
  awaitable<> check_batch(std::shared_ptr<StaleBatch> batch);
  awaitable<> store(Found found);
  awaitable<> store_all(Found found, const RevertReasons& reasons);
  // Returns the matches whose transaction another writer changed first; they were not stored.
  awaitable<Found> store_once(Found found, const RevertReasons& reasons);
  void count(std::string_view result, std::size_t n);
  void observe_wait(std::chrono::milliseconds since_submit);

  ChainContext& chain_;
  std::optional<std::chrono::steady_clock::time_point> missed_since_;
  TaskGroup checks_;
  MissingReceipts missing_;
  std::vector<ListedTx> ended_;                    // in blocks, although they had ended unmined, and not reported yet
  Metrics::Histogram* submit_to_mined_ = nullptr;  // made by the first receipt: a chain may have no transactions
  Worker worker_;
};

}  // namespace fencepost::tx

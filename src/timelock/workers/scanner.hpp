// Scans one chain for events of the watched contracts, block by block as they come. The history of contracts that were
// added is scanned beside it (history_scanner.hpp).
//
// The scanner pulls. Each step reads the chain's row, plans what comes next (scan_planner.hpp), asks the chain for it
// and commits it. After a reorg, the events of the old branch are orphaned in the transaction that stores those of the
// new one, so that what merely moved is not taken back.
//
// A failed step changes nothing and is tried again, with backoff: the place in the chain never passes what was not
// stored. All nodes have a scanner; one works at a time, by a claim. What is written is compared with what was read
// (scan_store.hpp), so two that work at once are safe.
//
// Pinned to the chain's loop.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "evm/chain.hpp"
#include "pg/database.hpp"
#include "runtime/metrics.hpp"
#include "runtime/worker.hpp"
#include "timelock/options.hpp"
#include "timelock/service/event_processor.hpp"
#include "timelock/store/history_store.hpp"
#include "timelock/store/scan_store.hpp"
#include "timelock/workers/log_source.hpp"
#include "timelock/workers/scan_planner.hpp"
#include "timelock/workers/scanner_parts.hpp"

namespace fencepost::timelock {

class Scanner {
 public:
  // `on_moved` is called on the chain's loop after the chain's clock may have moved.
  Scanner(ScannerParts parts, const ScannerOptions& options, std::function<void()> on_moved);

  // Requires: before the chain's follower starts.
  void subscribe();
  void start() { worker_.start(); }
  awaitable<> stop();
  void wake() { worker_.wake(); }

 private:
  awaitable<Worker::Next> step();
  awaitable<bool> work(const ScanState& state);
  awaitable<bool> follow(const ScanState& state, const std::vector<Watched>& contracts);
  awaitable<ScannedBlocks> read(const ScanPlan& plan, const std::vector<Watched>& contracts);
  // False: another node was faster, or the contracts have changed.
  awaitable<bool> commit(const ScanState& state, const ScanPlan& plan, ScannedBlocks blocks);
  awaitable<bool> tell(const ScanState& state);
  // From an endpoint that has the block `scanned`.
  awaitable<> read_rules(const std::vector<Watched>& contracts, std::int64_t scanned);
  void show(const ScanState& state, const std::vector<Watched>& contracts);
  ChainView view_of(const ScanPoint& point) const;

  ScannerParts parts_;
  ScannerOptions options_;
  std::function<void()> on_moved_;
  LogSource source_;
  EventProcessor processor_;
  ScanPlanner planner_;
  std::int64_t planned_from_ = 0;  // the first block of the last plan
  bool failing_ = true;            // the chain's row may say that a step failed, perhaps on another node
  Metrics::Gauge& scanned_block_;
  Metrics::Gauge& lag_blocks_;
  Metrics::Gauge& clock_age_;
  Metrics::Counter& events_total_;
  Worker worker_;
};

}  // namespace fencepost::timelock

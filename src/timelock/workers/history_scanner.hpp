// Scans the past of contracts that were added: ranges of blocks, for all contracts that need the same ones at once.
// Beside the scanner of new blocks, so that a long or failing history delays nothing.
//
// Works on the node that has the chain's claim. Each transaction compares what it starts from with what is stored, and
// the number of reorgs, so it never adds events of a block that was orphaned meanwhile.
//
// Pinned to the chain's loop.
#pragma once

#include <vector>

#include "runtime/worker.hpp"
#include "timelock/options.hpp"
#include "timelock/service/event_processor.hpp"
#include "timelock/store/history_store.hpp"
#include "timelock/store/scan_store.hpp"
#include "timelock/workers/log_source.hpp"
#include "timelock/workers/scanner_parts.hpp"

namespace fencepost::timelock {

class HistoryScanner {
 public:
  HistoryScanner(ScannerParts parts, const ScannerOptions& options);

  void start() { worker_.start(); }
  awaitable<> stop() { return worker_.stop(); }
  void wake() { worker_.wake(); }

 private:
  awaitable<Worker::Next> step();
  awaitable<Worker::Next> scan(const ScanState& state, const std::vector<Watched>& contracts, HistoryRange range);
  awaitable<bool> commit(const ScanState& state, const HistoryRange& range, const ScannedBlocks& blocks);
  void show(const std::vector<Watched>& contracts);

  ScannerParts parts_;
  ScannerOptions options_;
  LogSource source_;
  EventProcessor processor_;
  Metrics::Gauge& left_;
  Metrics::Counter& events_total_;
  Worker worker_;
};

}  // namespace fencepost::timelock

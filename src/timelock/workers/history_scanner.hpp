// Scans the past of contracts that were added: ranges of blocks, for all contracts that need the same ones at once.
// Beside the scanner of new blocks, so that a long or failing history delays nothing.
//
// If a group of contracts fails twice, its contracts are scanned alone, in turn, each until it succeeds: the logs of
// one may be the reason, and the others go on.
//
// Works on the node that has the chain's claim. Each transaction compares what it starts from with what is stored, and
// the number of reorgs, so it never adds events of a block that was orphaned meanwhile.
//
// Pinned to the chain's loop.
#pragma once

#include <set>
#include <string>
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
  // The contracts that are scanned in this step: those without suspects, or one suspect.
  std::vector<Watched> in_turn(const std::vector<Watched>& contracts);
  void note_failure(const std::vector<std::string>& addresses);
  awaitable<Worker::Next> scan(const ScanState& state, const std::vector<Watched>& contracts, HistoryRange range);
  awaitable<bool> commit(const ScanState& state, const HistoryRange& range, const ScannedBlocks& blocks);
  void show(const std::vector<Watched>& contracts);

  ScannerParts parts_;
  ScannerOptions options_;
  LogSource source_;
  EventProcessor processor_;
  std::vector<std::string> failed_;  // the group that failed last
  std::set<std::string> suspects_;   // contracts of groups that failed twice in a row
  std::size_t turn_ = 0;
  bool others_go_on_ = false;  // there are contracts that are no suspects
  Metrics::Gauge& left_;
  Metrics::Counter& events_total_;
  Worker worker_;
};

}  // namespace fencepost::timelock

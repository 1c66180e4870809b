// Moves flows by the chain's clock, the time of the last scanned block: waiting to ready, and Compound's flows to
// expired. Runs on every node: each flow is moved once, because the step is guarded by its status.
//
// A batch is one transaction of `flow_refresh_batch_size` flows, by their time. While there is more, two batches run at
// once, and the next two begin when both have ended: each holds the chain's row shared, and in between the scanner gets
// it. Two lanes that begin whenever they like would keep it waiting.
//
// The scanner wakes it after each block, so a flow is ready as soon as the block that makes it so was scanned. The
// interval finds what a lost wake left.
//
// Pinned to the chain's loop.
#pragma once

#include "runtime/worker.hpp"
#include "timelock/options.hpp"
#include "timelock/workers/scanner_parts.hpp"

namespace fencepost::timelock {

class FlowStatusRefresher {
 public:
  FlowStatusRefresher(ScannerParts parts, const ScannerOptions& options);

  void start() { worker_.start(); }
  awaitable<> stop() { return worker_.stop(); }
  void wake() { worker_.wake(); }

 private:
  awaitable<Worker::Next> step();
  awaitable<bool> move_batch();

  ScannerParts parts_;
  ScannerOptions options_;
  Metrics::Counter& ready_total_;
  Metrics::Counter& expired_total_;
  bool has_more_ = false;
  Worker worker_;
};

}  // namespace fencepost::timelock

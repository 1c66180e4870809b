// Moves flows by the chain's clock, the time of the last scanned block: waiting to ready, and Compound's flows to
// expired. Runs on every node: each flow is moved once, because the step is guarded by its status.
//
// A batch is one transaction of `flow_refresh_batch_size` flows, by their time. After a full batch a second lane helps,
// so that one lane works while the other one commits. Within a batch, events are in the order of time; batches of two
// lanes may overtake each other, as those of two nodes do.
//
// The scanner wakes it after each block, so a flow is ready as soon as the block that makes it so was scanned. The
// interval finds what a lost wake left.
//
// Pinned to the chain's loop.
#pragma once

#include <string>

#include "runtime/worker.hpp"
#include "timelock/options.hpp"
#include "timelock/workers/scanner_parts.hpp"

namespace fencepost::timelock {

class FlowStatusRefresher {
 public:
  FlowStatusRefresher(ScannerParts parts, const ScannerOptions& options);

  void start();
  awaitable<> stop();
  void wake() { worker_.wake(); }

 private:
  awaitable<Worker::Next> step();
  awaitable<Worker::Next> step_with_help();

  ScannerParts parts_;
  ScannerOptions options_;
  Metrics::Counter& ready_total_;
  Metrics::Counter& expired_total_;
  Worker worker_;
  Worker helper_;
};

}  // namespace fencepost::timelock

// Finishes removals of contracts that were interrupted, by a crash or a lost connection (store/removal_store.hpp).
// Works on every node: removals that two nodes finish at once are safe.
//
// Pinned to the chain's loop.
#pragma once

#include "runtime/worker.hpp"
#include "timelock/workers/scanner_parts.hpp"

namespace fencepost::timelock {

class RemovalSweeper {
 public:
  explicit RemovalSweeper(ScannerParts parts);

  void start() { worker_.start(); }
  awaitable<> stop() { return worker_.stop(); }

 private:
  awaitable<Worker::Next> step();

  ScannerParts parts_;
  Worker worker_;
};

}  // namespace fencepost::timelock

// Verifies all flows of a chain from time to time (service/verifier.hpp), and reports what differs by the log and by
// metrics. Works on the node that has the chain's claim, a page at a step.
//
// The first run begins at a random time within the interval: nodes that start together do not ask endpoints together.
//
// Pinned to the chain's loop.
#pragma once

#include <chrono>
#include <optional>

#include "base/random.hpp"
#include "runtime/worker.hpp"
#include "timelock/options.hpp"
#include "timelock/service/verifier.hpp"
#include "timelock/store/verify_store.hpp"
#include "timelock/workers/scanner_parts.hpp"

namespace fencepost::timelock {

// A run over the contracts of a chain.
struct VerifyRound {
  std::optional<ContractKey> contract;  // the one that is being verified, or was verified last
  std::string after;                    // the last flow of it; empty: go on with the next contract
  std::int64_t flows = 0;
  std::int64_t differences = 0;
  std::int64_t not_checked = 0;
  std::optional<VerifyFailure> failure;  // of this contract so far
};

class VerifyWorker {
 public:
  VerifyWorker(ScannerParts parts, const ScannerOptions& options, Verifier& verifier);

  void start();
  awaitable<> stop();

 private:
  awaitable<Worker::Next> step();
  awaitable<bool> verify_page();  // false: the round is over
  void log_page(const VerifiedPage& page) const;
  awaitable<> report_contract(const Timelock& contract, const VerifiedPage& page);
  void end_round();

  ScannerParts parts_;
  std::chrono::milliseconds interval_;
  Verifier& verifier_;
  SystemRandom random_;
  std::chrono::steady_clock::time_point due_;
  std::optional<VerifyRound> round_;
  Metrics::Gauge& differences_;
  Metrics::Gauge& last_success_;
  Worker worker_;
};

}  // namespace fencepost::timelock

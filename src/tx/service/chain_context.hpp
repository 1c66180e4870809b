// What the workers of one chain share, and the one way in which they write.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "evm/chain.hpp"
#include "evm/key_ring.hpp"
#include "pg/database.hpp"
#include "runtime/metrics.hpp"
#include "runtime/runtime.hpp"
#include "tx/options.hpp"
#include "tx/service/lease_manager.hpp"
#include "tx/service/tx_change_signal.hpp"
#include "tx/store/attempt_store.hpp"
#include "tx/store/step_store.hpp"

namespace fencepost::tx {

struct ChainContext {
  evm::Chain& evm_chain;
  Executor home;  // the chain's: the loop that all workers run on
  Runtime& runtime;
  pg::Database& database;
  evm::ChainConnector& connector;  // the chain's
  evm::BlockFollower& follower;    // the chain's
  evm::KeyRing& keys;
  LeaseManager& leases;
  TxChangeSignal& changes;
  Metrics& metrics;
  ChainOptions options;

  // Set by the owner of the workers. Any thread.
  std::function<void()> wake_submitter = {};
  std::function<void()> wake_promoter = {};
  std::function<void()> wake_resubmitter = {};
  std::function<void()> wake_receipts = {};
  std::function<void()> wake_stuck_watcher = {};

  const std::string& node() const { return leases.identity().node_id; }
  std::int64_t chain_id() const { return evm_chain.id(); }

  // Applies the steps in one commit, writes a log line for each, tells whoever waits, and drops the leases that turn
  // out to be lost. A step that PostgreSQL cannot store fails alone: it is logged, and answered as kMoved.
  awaitable<std::vector<StepOutcome>> apply(std::vector<Step> steps);
  // The same for claims.
  awaitable<std::vector<ClaimResult>> claim(std::vector<Claim> claims);

  // For what a worker is in the middle of when the node stops. Short: a step that is cut off is as safe as a crash, and
  // a database that hangs must not keep the node from giving its leases back.
  static constexpr std::chrono::milliseconds kStopGrace{500};

  // How long a broadcast that was begun is this worker's alone: when nothing was heard of it by then, the same bytes
  // are sent again.
  std::chrono::milliseconds claim_patience() const {
    return std::min<std::chrono::milliseconds>(options.resubmit.interval, std::chrono::seconds(30));
  }
  // Until what the chain has taken is sent again by itself.
  std::chrono::milliseconds until_resubmit() const {
    return options.resubmit.enabled ? options.resubmit.interval : kNever;
  }

  // How long until the next try of something that failed `tries` times in a row: 1 s, 2 s, 4 s, … 60 s.
  static std::chrono::milliseconds retry_delay(std::int32_t tries);
};

}  // namespace fencepost::tx

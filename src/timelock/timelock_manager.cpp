#include "timelock/timelock_manager.hpp"

#include "runtime/gather.hpp"
#include "runtime/on_loop.hpp"
#include "runtime/worker_set.hpp"
#include "timelock/workers/flow_status_refresher.hpp"
#include "timelock/workers/history_scanner.hpp"
#include "timelock/workers/removal_sweeper.hpp"
#include "timelock/workers/scanner.hpp"
#include "timelock/workers/verify_worker.hpp"

namespace fencepost::timelock {

// The workers of one chain, all on the chain's loop.
class TimelockManager::ChainWork {
 public:
  ChainWork(const Parts& parts, const ChainSetup& setup)
      : chain_(setup.chain),
        verifier_(setup.chain, parts.database, setup.options.confirmations),
        refresher_(workers_.add<FlowStatusRefresher>(scanner_parts(parts, setup), setup.options)),
        history_(workers_.add<HistoryScanner>(scanner_parts(parts, setup), setup.options)),
        scanner_(workers_.add<Scanner>(scanner_parts(parts, setup), setup.options, [this] { refresher_.wake(); })) {
    scanner_.subscribe();
    workers_.add<VerifyWorker>(scanner_parts(parts, setup), setup.options, verifier_);
    workers_.add<RemovalSweeper>(scanner_parts(parts, setup));
  }

  evm::Chain& chain() { return chain_; }
  Verifier& verifier() { return verifier_; }
  // Any thread.
  void wake() {
    scanner_.wake();
    history_.wake();
  }
  // On the chain's loop.
  awaitable<> start() {
    workers_.start();
    co_return;
  }
  awaitable<> stop() { return workers_.stop(); }

 private:
  static ScannerParts scanner_parts(const Parts& parts, const ChainSetup& setup) {
    return {.chain = setup.chain, .database = parts.database, .metrics = parts.metrics, .node = parts.node_id};
  }

  evm::Chain& chain_;
  Verifier verifier_;
  WorkerSet workers_;
  FlowStatusRefresher& refresher_;
  HistoryScanner& history_;
  Scanner& scanner_;
};

TimelockManager::TimelockManager(Parts parts, const std::vector<ChainSetup>& chains) : parts_(std::move(parts)) {
  std::map<std::int64_t, TimelockService::ChainPart> parts_by_chain;
  for (const auto& setup : chains) {
    auto work = std::make_unique<ChainWork>(parts_, setup);
    parts_by_chain.emplace(setup.chain.id(), TimelockService::ChainPart{
                                                 &setup.chain, [one = work.get()] { one->wake(); }, &work->verifier()});
    chains_.emplace(setup.chain.id(), std::move(work));
  }
  service_ = std::make_unique<TimelockService>(parts_.database, std::move(parts_by_chain));
}

TimelockManager::~TimelockManager() = default;

awaitable<> TimelockManager::start() {
  for (auto& [id, work] : chains_) {
    co_await on_loop(work->chain().home(), [one = work.get()] { return one->start(); });
  }
}

// All chains at once: one that is slow to stop delays no other.
awaitable<> TimelockManager::stop() {
  std::vector<awaitable<>> stops;
  stops.reserve(chains_.size());
  for (auto& [id, work] : chains_) {
    stops.push_back(on_loop(work->chain().home(), [one = work.get()] { return one->stop(); }));
  }
  co_await gather(std::move(stops));
}

}  // namespace fencepost::timelock

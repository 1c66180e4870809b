#include "tx/workers/outage_recovery.hpp"

#include "runtime/log.hpp"
#include "tx/store/work_store.hpp"

namespace fencepost::tx {
namespace {

// An endpoint that refuses broadcasts and answers reads fails and recovers every second: then the retries must slow
// down.
constexpr std::chrono::seconds kShortestOutage{3};
constexpr std::size_t kMadeDueAtOnce = 1'000;  // for each signer
constexpr std::chrono::hours kRarely{1};

}  // namespace

OutageRecovery::OutageRecovery(ChainContext& chain)
    : chain_(chain),
      worker_(
          chain.home,
          {.name = "tx_outage_recovery",
           .chain = chain.evm_chain.name(),
           .interval = kRarely,
           .stop_grace = ChainContext::kStopGrace},
          [this] { return recover(); }, chain.metrics) {}

void OutageRecovery::on_usable(std::chrono::milliseconds lasted) {
  if (lasted < kShortestOutage) return;
  due_ = true;
  worker_.wake();
}

awaitable<Worker::Next> OutageRecovery::recover() {
  if (!due_) co_return Worker::Next::kRest;
  const auto count =
      co_await make_failed_broadcasts_due(chain_.database.pool(), chain_.node(), chain_.chain_id(), kMadeDueAtOnce);
  due_ = false;
  log::info("an RPC endpoint answers again: failed broadcasts are retried now",
            {{"chain", chain_.evm_chain.name()}, {"transactions", count}});
  chain_.wake_submitter(std::nullopt);
  chain_.wake_resubmitter();
  co_return Worker::Next::kRest;
}

}  // namespace fencepost::tx

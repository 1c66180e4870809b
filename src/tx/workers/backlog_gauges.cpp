#include "tx/workers/backlog_gauges.hpp"

#include "tx/store/tx_store.hpp"

namespace fencepost::tx {

BacklogGauges::BacklogGauges(ChainContext& chain)
    : chain_(chain),
      receipt_gauge_(chain.metrics.gauge("receipt_backlog", "Broadcast transactions without a receipt",
                                         {{"chain", chain.evm_chain.name()}})),
      ceiling_gauge_(chain.metrics.gauge("tx_above_ceiling",
                                         "Transactions that wait because the chain asks more than a ceiling allows",
                                         {{"chain", chain.evm_chain.name()}})),
      worker_(
          chain.home,
          {.name = "tx_backlog_gauges",
           .chain = chain.evm_chain.name(),
           .interval = std::chrono::seconds(10),
           .stop_grace = ChainContext::kStopGrace},
          [this] { return refresh(); }, chain.metrics) {
  for (const auto* state : {"CREATED", "ALLOCATED", "TRACKING", "STUCK"}) open_gauge(state);
}

Metrics::Gauge& BacklogGauges::open_gauge(const std::string& state) {
  return chain_.metrics.gauge("tx_backlog", "Open transactions of the signers that this node leads",
                              {{"chain", chain_.evm_chain.name()}, {"state", state}});
}

Metrics::Gauge& BacklogGauges::age_gauge(const std::string& signer) {
  return chain_.metrics.gauge("tx_oldest_open_seconds", "Age of the oldest open transaction of a signer",
                              {{"chain", chain_.evm_chain.name()}, {"signer", signer}});
}

awaitable<Worker::Next> BacklogGauges::refresh() {
  const auto all = co_await backlogs(chain_.database.pool(), chain_.node(), chain_.chain_id());
  Backlog sum;
  std::set<std::string> now;
  for (const auto& one : all) {
    sum.created += one.created;
    sum.allocated += one.allocated;
    sum.tracking += one.tracking;
    sum.stuck += one.stuck;
    sum.without_receipt += one.without_receipt;
    sum.above_ceiling += one.above_ceiling;
    age_gauge(one.key.signer).Set(one.oldest_age_seconds);
    now.insert(one.key.signer);
  }
  for (const auto& signer : shown_) {
    if (!now.contains(signer)) age_gauge(signer).Set(0);
  }
  shown_ = std::move(now);
  open_gauge("CREATED").Set(static_cast<double>(sum.created));
  open_gauge("ALLOCATED").Set(static_cast<double>(sum.allocated));
  open_gauge("TRACKING").Set(static_cast<double>(sum.tracking));
  open_gauge("STUCK").Set(static_cast<double>(sum.stuck));
  receipt_gauge_.Set(static_cast<double>(sum.without_receipt));
  ceiling_gauge_.Set(static_cast<double>(sum.above_ceiling));
  co_return Worker::Next::kRest;
}

}  // namespace fencepost::tx

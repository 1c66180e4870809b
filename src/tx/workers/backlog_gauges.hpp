// Gauges of the backlog: how many transactions are open, and the age of the oldest, for each signer that this node
// leads.
#pragma once

#include <set>

#include "runtime/worker.hpp"
#include "tx/service/chain_context.hpp"

namespace fencepost::tx {

class BacklogGauges {
 public:
  explicit BacklogGauges(ChainContext& chain);

  void start() { worker_.start(); }
  awaitable<> stop() { return worker_.stop(); }

 private:
  awaitable<Worker::Next> refresh();
  Metrics::Gauge& open_gauge(const std::string& state);
  Metrics::Gauge& age_gauge(const std::string& signer);

  ChainContext& chain_;
  Metrics::Gauge& receipt_gauge_;
  Metrics::Gauge& ceiling_gauge_;
  std::set<std::string> shown_;  // signers whose gauge is not zero
  Worker worker_;
};

}  // namespace fencepost::tx

// One counter for each chain of the configuration, by the chain's name. Any thread may count.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "runtime/metrics.hpp"

namespace fencepost::tx {

using ChainNames = std::map<std::int64_t, std::string>;  // by chain id

class ChainCounters {
 public:
  ChainCounters(Metrics& metrics, const ChainNames& chains, const std::string& name, const std::string& help,
                Metrics::Labels labels = {}) {
    for (const auto& [chain_id, chain] : chains) {
      labels["chain"] = chain;
      counters_.emplace(chain_id, &metrics.counter(name, help, labels));
    }
  }

  // Ignores a chain that is not configured: this node does nothing there.
  void add(std::int64_t chain_id, double count = 1) const {
    if (const auto found = counters_.find(chain_id); found != counters_.end()) found->second->Increment(count);
  }

 private:
  std::map<std::int64_t, Metrics::Counter*> counters_;
};

}  // namespace fencepost::tx

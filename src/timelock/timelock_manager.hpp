// The timelock domain: creates the scanners and refreshers of each chain, and starts and stops them in order.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/uuid.hpp"
#include "evm/chain.hpp"
#include "pg/database.hpp"
#include "runtime/metrics.hpp"
#include "timelock/options.hpp"
#include "timelock/service/timelock_service.hpp"

namespace fencepost::timelock {

// A chain and the options for its timelocks. Requires: the chain outlives the manager and is started after it.
struct ChainSetup {
  evm::Chain& chain;
  ScannerOptions options;
};

class TimelockManager {
 public:
  struct Parts {
    pg::Database& database;
    Metrics& metrics;
    std::string node_id;
  };
  TimelockManager(Parts parts, const std::vector<ChainSetup>& chains);
  ~TimelockManager();

  // Requires: called after the database was migrated and before the chains start.
  awaitable<> start();
  awaitable<> stop();

  TimelockService& service() { return *service_; }

 private:
  class ChainWork;

  Parts parts_;
  std::map<std::int64_t, std::unique_ptr<ChainWork>> chains_;
  std::unique_ptr<TimelockService> service_;
};

}  // namespace fencepost::timelock

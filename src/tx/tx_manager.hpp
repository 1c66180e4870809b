// The transaction manager as a whole: puts the parts together, starts and stops them in order.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <vector>

#include "base/secret.hpp"
#include "base/uuid.hpp"
#include "evm/chain_connector.hpp"
#include "evm/key_ring.hpp"
#include "pg/database.hpp"
#include "pg/listener.hpp"
#include "runtime/runtime.hpp"
#include "tx/options.hpp"
#include "tx/service/lease_manager.hpp"
#include "tx/service/operator_service.hpp"
#include "tx/service/transaction_writer.hpp"
#include "tx/service/tx_service.hpp"
#include "tx/service/tx_watch.hpp"

namespace fencepost::tx {

struct ChainSetup {
  ChainOptions options;
  std::vector<Secret> rpc_urls;  // in order of preference
  std::chrono::milliseconds poll_interval{1000};
};

// What a node knows of a chain.
struct ChainStatus {
  std::int64_t chain_id = 0;
  std::string name;
  std::optional<evm::BlockHeader> head;
  bool synced = false;
  Finality required;
  std::vector<evm::EndpointStatus> endpoints;
};

class TxManager {
 public:
  struct Parts {
    Runtime& runtime;
    pg::Database& database;
    pg::Listener& listener;  // not started yet
    evm::KeyRing& keys;
    const Clock& clock;
    Random& random;
    UuidGenerator& ids;
    Metrics& metrics;
  };
  TxManager(Parts parts, NodeIdentity identity, TxOptions options, LeaseOptions lease, std::vector<ChainSetup> chains);
  ~TxManager();

  // Lists the node, before it starts: nobody's lease may name one that is not listed. May be done again. Throws as
  // pg::Pool.
  awaitable<> join();
  // On loop 0, once the database is migrated.
  awaitable<> start();
  awaitable<> stop(std::chrono::milliseconds limit);

  TxService& service() { return *service_; }
  OperatorService& operators() { return *operators_; }
  LeaseManager& leases() { return leases_; }
  // Any loop.
  awaitable<std::vector<ChainStatus>> chains();

 private:
  class Chain;

  Parts parts_;
  TxWatch watch_;
  LeaseManager leases_;
  std::map<std::int64_t, std::unique_ptr<Chain>> chains_;
  TransactionWriter writer_;
  LeaderClient leaders_;
  std::unique_ptr<TxService> service_;
  std::unique_ptr<OperatorService> operators_;
};

}  // namespace fencepost::tx

// The transaction manager: creates its parts, and starts and stops them in order.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <vector>

#include "base/uuid.hpp"
#include "evm/chain.hpp"
#include "evm/keys/key_ring.hpp"
#include "pg/database.hpp"
#include "pg/listener.hpp"
#include "runtime/runtime.hpp"
#include "tx/options.hpp"
#include "tx/rpc/rpc_service.hpp"
#include "tx/service/hash_waits.hpp"
#include "tx/service/lease_manager.hpp"
#include "tx/service/lease_watch.hpp"
#include "tx/service/operator_service.hpp"
#include "tx/service/transaction_writer.hpp"
#include "tx/service/tx_change_signal.hpp"
#include "tx/service/tx_service.hpp"
#include "tx/workers/unled_gauge.hpp"

#include "cluster/node_registry.hpp"

namespace fencepost::tx {

// A chain and the options for its transactions. Requires: the chain outlives the manager and is started after it.
struct ChainSetup {
  evm::Chain& chain;
  ChainOptions options;
};

class TxManager {
 public:
  struct Parts {
    Runtime& runtime;
    pg::Database& database;
    pg::Listener& listener;  // not started yet
    evm::KeyRing& keys;
    UuidGenerator& ids;
    Metrics& metrics;
  };
  TxManager(Parts parts, cluster::NodeIdentity identity, TxOptions options, LeaseOptions lease,
            const std::vector<ChainSetup>& chains);
  ~TxManager();

  // Registers the node. Requires: called before start(), because a lease may name only a registered node. May be
  // repeated. Throws as pg::Pool.
  awaitable<> join();
  // Requires: called on loop 0, after the database was migrated and before the chains start.
  awaitable<> start();
  awaitable<> stop(std::chrono::milliseconds limit);

  TxService& service() { return *service_; }
  OperatorService& operators() { return *operators_; }
  RpcService& rpc() { return *rpc_; }
  LeaseManager& leases() { return leases_; }
  // Any thread.
  std::vector<std::int64_t> chain_ids() const;
  // In wei. A signer is missing when its chain gave no answer within `limit`. Any loop.
  awaitable<std::map<SignerKey, Uint256>> balances(std::vector<SignerKey> signers, std::chrono::milliseconds limit);

 private:
  class ChainWork;

  awaitable<> cancel_rejected(Uuid tx_id, std::string why);

  Parts parts_;
  TxChangeSignal changes_;
  HashWaits hashes_;
  LeaseManager leases_;
  LeaseWatch watch_;
  UnledGauge unled_;
  std::map<std::int64_t, std::unique_ptr<ChainWork>> chains_;
  TransactionWriter writer_;
  LeaderClient leaders_;
  std::unique_ptr<TxService> service_;
  std::unique_ptr<OperatorService> operators_;
  std::unique_ptr<RpcService> rpc_;
};

}  // namespace fencepost::tx
